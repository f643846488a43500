//! The index of a file: the positions of its blocks or, in a file of lines, of pieces of similar
//! size.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use flate2::read::MultiGzDecoder;
use gpumon_probe::{model::Record, untrusted::escaped};

use crate::{
    BadRecording, Cut, Kind,
    block::{self, FORMAT, Found, HEAD, Head, LARGEST_RATIO},
    error::shown,
    line::stamp,
};

/// The maximum length of a line. Collectors write no longer lines.
const LONGEST_LINE: u64 = 64 << 20;
/// The size of a piece of a file of lines, similar to that of a block.
const PIECE: u32 = 1 << 20;
/// The maximum number of bytes that are read at once, for example to find the next block after a
/// damaged one.
const WINDOW: usize = 1 << 20;

/// A file with the index of its blocks.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) file: File,
    pub(crate) is_packed: bool,
    /// The offset and head of each block.
    pub(crate) blocks: Vec<(u64, Head)>,
    pub(crate) cuts: Vec<Cut>,
}

impl Index {
    pub(crate) fn of(path: &Path) -> Result<Self, BadRecording> {
        let name = shown(path);
        let unreadable = |cause| BadRecording::Unreadable {
            file: name.clone(),
            cause,
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let mut first = Vec::with_capacity(HEAD);
        (&file)
            .take(HEAD as u64)
            .read_to_end(&mut first)
            .map_err(unreadable)?;
        match Head::read(&first) {
            Found::Block(_) | Found::TooLarge => Self::of_blocks(file, &name),
            Found::Newer(format) => Err(BadRecording::Newer {
                file: name,
                format,
                known: FORMAT,
            }),
            Found::Other if has_blocks(&first, &file).map_err(unreadable)? => {
                Self::of_blocks(file, &name)
            }
            Found::Other => Self::of_lines(first, file, &name),
        }
    }

    fn of_blocks(file: File, name: &str) -> Result<Self, BadRecording> {
        let unreadable = |cause| BadRecording::Unreadable {
            file: name.to_owned(),
            cause,
        };
        let length = file.metadata().map_err(unreadable)?.len();
        let mut index = Self {
            file,
            is_packed: true,
            blocks: Vec::new(),
            cuts: Vec::new(),
        };
        let (mut offset, mut is_too_large) = (0, false);
        while offset < length {
            let head = read_at_most(&index.file, offset, HEAD).map_err(unreadable)?;
            let found = Head::read(&head);
            is_too_large |= found == Found::TooLarge;
            offset = match found {
                Found::Block(head) if offset + u64::from(head.bytes) <= length => {
                    index.blocks.push((offset, head));
                    offset + u64::from(head.bytes)
                }
                Found::Newer(format) => {
                    return Err(BadRecording::Newer {
                        file: name.to_owned(),
                        format,
                        known: FORMAT,
                    });
                }
                Found::Block(_) | Found::TooLarge | Found::Other => {
                    let next = next_block(&index.file, offset + 1, length).map_err(unreadable)?;
                    let after_ms = index.blocks.last().map_or(0, |(_, head)| head.last_ms);
                    index.cuts.push(Cut {
                        file: name.to_owned(),
                        after_ms,
                        bytes: next - offset,
                        is_at_end: next == length,
                    });
                    next
                }
            };
        }
        if is_too_large && index.blocks.is_empty() {
            return Err(BadRecording::TooLarge {
                file: name.to_owned(),
            });
        }
        Ok(index)
    }

    /// Indexes a file with one record per line, which may have been compressed by another program.
    /// `first` are the bytes that were already read.
    fn of_lines(first: Vec<u8>, file: File, name: &str) -> Result<Self, BadRecording> {
        let unreadable = |cause| BadRecording::Unreadable {
            file: name.to_owned(),
            cause,
        };
        let is_gzip = first.starts_with(&[0x1f, 0x8b]);
        // Blocks are read by their offset, so a pipe or a compressed file is copied to a temporary
        // file.
        if !is_gzip && file.metadata().map_err(unreadable)?.is_file() {
            (&file).rewind().map_err(unreadable)?;
            return lines_of(file, name);
        }
        let packed_bytes = Cell::new(0);
        let whole = Counted {
            input: io::Cursor::new(first).chain(file),
            bytes: &packed_bytes,
        };
        let mut input: Box<dyn Read> = if is_gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        let mut unpacked = tempfile::tempfile().map_err(unreadable)?;
        let mut piece = vec![0; WINDOW];
        let mut unpacked_bytes = 0;
        loop {
            match input.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    unpacked_bytes += length as u64;
                    if unpacked_bytes > LARGEST_RATIO * packed_bytes.get() {
                        let cause =
                            format!("it would become more than {LARGEST_RATIO} times as large");
                        let cause = io::Error::new(io::ErrorKind::InvalidData, cause);
                        return Err(BadRecording::NotUnpacked {
                            file: name.to_owned(),
                            cause,
                        });
                    }
                    unpacked.write_all(&piece[..length]).map_err(unreadable)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A truncated file is read up to its end.
                Err(_) if unpacked.stream_position().map_err(unreadable)? > 0 => break,
                Err(cause) => {
                    return Err(BadRecording::NotUnpacked {
                        file: name.to_owned(),
                        cause,
                    });
                }
            }
        }
        unpacked.rewind().map_err(unreadable)?;
        lines_of(unpacked, name)
    }

    /// Returns the text of a block.
    pub(crate) fn text(&self, block: usize) -> io::Result<Vec<u8>> {
        let (offset, head) = &self.blocks[block];
        let mut bytes = vec![0; head.bytes as usize];
        self.file.read_exact_at(&mut bytes, *offset)?;
        if self.is_packed {
            block::unpack(&bytes, head)
        } else {
            Ok(bytes)
        }
    }
}

/// A reader that counts the bytes read.
struct Counted<'a, R> {
    input: R,
    bytes: &'a Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.bytes.set(self.bytes.get() + length as u64);
        Ok(length)
    }
}

/// Returns `true` if a file with a damaged beginning contains a block. The beginning is damaged if
/// it is neither a block, a record nor gzip.
fn has_blocks(first: &[u8], file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if first.starts_with(b"{") || first.starts_with(&[0x1f, 0x8b]) || !metadata.is_file() {
        return Ok(false);
    }
    Ok(next_block(file, 1, metadata.len())? < metadata.len())
}

/// Indexes a file of lines. Every line is checked, so that errors are reported at once.
fn lines_of(file: File, name: &str) -> Result<Index, BadRecording> {
    let mut index = Index {
        file,
        is_packed: false,
        blocks: Vec::new(),
        cuts: Vec::new(),
    };
    let unreadable = |cause| BadRecording::Unreadable {
        file: name.to_owned(),
        cause,
    };
    let mut reader = BufReader::new(&index.file);
    let (mut offset, mut number, mut samples) = (0, 0, 0_u64);
    let (mut begin, mut head) = (0, Head::default());
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(unreadable)?;
        if length == 0 {
            break;
        }
        number += 1;
        match checked(&line) {
            Ok(Some((kind, at_ms))) => {
                head.count(kind, at_ms);
                samples += u64::from(kind == Kind::Sample);
            }
            Ok(None) => {}
            // A recorder that was killed leaves an incomplete last line.
            Err(_) if !line.ends_with(b"\n") && samples > 0 => {
                let after_ms = head.last_ms;
                index.cuts.push(Cut {
                    file: name.to_owned(),
                    after_ms,
                    bytes: length as u64,
                    is_at_end: true,
                });
                break;
            }
            // The message can quote the line, which can contain anything.
            Err(cause) => {
                return Err(BadRecording::BadLine {
                    file: name.to_owned(),
                    line: number,
                    cause: escaped(&cause),
                });
            }
        }
        offset += length as u64;
        head.bytes = u32::try_from(offset - begin).unwrap_or(u32::MAX);
        if head.bytes >= PIECE {
            head.text_bytes = head.bytes;
            index.blocks.push((begin, head));
            (begin, head) = (offset, head.next());
        }
    }
    if head.bytes > 0 {
        head.text_bytes = head.bytes;
        index.blocks.push((begin, head));
    }
    Ok(index)
}

/// Parses a line; returns `None` for an empty one.
fn checked(line: &[u8]) -> Result<Option<(Kind, u64)>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|_| "it is not text".to_owned())?
        .trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    Record::decode(text).map_err(|error| error.to_string())?;
    stamp(text).map(Some).map_err(|error| error.to_string())
}

fn read_at_most(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut length = 0;
    while length < most {
        match file.read_at(&mut bytes[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Returns the offset of the next whole block, or `length` if there is none.
fn next_block(file: &File, mut from: u64, length: u64) -> io::Result<u64> {
    // The window starts small and grows, because there may be only a few damaged bytes before each
    // block.
    let mut size = 4 * HEAD;
    while from < length {
        // The windows overlap by the size of a head, so that no head between two windows is missed.
        let window = read_at_most(file, from, size + HEAD)?;
        for at in 0..window.len().min(size) {
            if window[at] == 0x1f
                && let Found::Block(head) = Head::read(&window[at..])
                && from + at as u64 + u64::from(head.bytes) <= length
            {
                return Ok(from + at as u64);
            }
        }
        from += size as u64;
        size = (2 * size).min(WINDOW);
    }
    Ok(length)
}
