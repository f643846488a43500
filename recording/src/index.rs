//! The index of a file: the positions of its blocks. A file of plain lines is divided into pieces
//! of a similar size instead.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use flate2::read::MultiGzDecoder;
use gpumon_probe::{model::Record, untrusted::escape_untrusted};

use crate::{
    RecordKind, RecordingError, UnreadablePart,
    block::{self, BlockHead, HEAD_BYTES, MAX_COMPRESSION_RATIO, ParsedHead},
    recording::{parse_kind_and_time, printable_path},
};

/// The maximum length of a line. Collectors never write longer lines.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// The size of a piece in a file of plain lines, similar to the size of a block.
const PIECE_BYTES: u32 = 1 << 20;
/// The maximum number of bytes to read in one step, for example while searching for the next block
/// after a damaged one.
const MAX_WINDOW_BYTES: usize = 1 << 20;

/// A recording file and the index of its blocks.
#[derive(Debug)]
pub(crate) struct FileIndex {
    pub(crate) file: File,
    pub(crate) is_packed: bool,
    /// The offset and head of each block.
    pub(crate) blocks: Vec<(u64, BlockHead)>,
    pub(crate) cuts: Vec<UnreadablePart>,
}

impl FileIndex {
    pub(crate) fn from_path(path: &Path) -> Result<Self, RecordingError> {
        let name = printable_path(path);
        let unreadable = |cause| RecordingError::Unreadable {
            file: name.clone(),
            cause,
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let mut first = Vec::with_capacity(HEAD_BYTES);
        (&file)
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut first)
            .map_err(unreadable)?;
        match BlockHead::parse(&first) {
            ParsedHead::Block(_) | ParsedHead::TooLarge => Self::from_blocks(file, &name),
            ParsedHead::Newer(format) => Err(RecordingError::Newer { file: name, format }),
            ParsedHead::Other if has_blocks_after_damage(&first, &file).map_err(unreadable)? => {
                Self::from_blocks(file, &name)
            }
            ParsedHead::Other => Self::from_lines(first, file, &name),
        }
    }

    fn from_blocks(file: File, name: &str) -> Result<Self, RecordingError> {
        let unreadable = |cause| RecordingError::Unreadable {
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
            let head = read_at_most(&index.file, offset, HEAD_BYTES).map_err(unreadable)?;
            let found = BlockHead::parse(&head);
            is_too_large |= found == ParsedHead::TooLarge;
            offset = match found {
                ParsedHead::Block(head) if offset + u64::from(head.bytes) <= length => {
                    index.blocks.push((offset, head));
                    offset + u64::from(head.bytes)
                }
                ParsedHead::Newer(format) => {
                    return Err(RecordingError::Newer {
                        file: name.to_owned(),
                        format,
                    });
                }
                ParsedHead::Block(_) | ParsedHead::TooLarge | ParsedHead::Other => {
                    let next =
                        find_next_block(&index.file, offset + 1, length).map_err(unreadable)?;
                    let after_ms = index.blocks.last().map_or(0, |(_, head)| head.last_ms);
                    index.cuts.push(UnreadablePart {
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
            return Err(RecordingError::TooLarge {
                file: name.to_owned(),
            });
        }
        Ok(index)
    }

    /// Indexes a file with one record per line, which may have been compressed by another program.
    /// `first` contains the bytes that have already been read.
    fn from_lines(first: Vec<u8>, file: File, name: &str) -> Result<Self, RecordingError> {
        let unreadable = |cause| RecordingError::Unreadable {
            file: name.to_owned(),
            cause,
        };
        let is_gzip = first.starts_with(&[0x1f, 0x8b]);
        // Blocks are read by offset, so a pipe or a compressed file is first copied to a temporary
        // file.
        if !is_gzip && file.metadata().map_err(unreadable)?.is_file() {
            (&file).rewind().map_err(unreadable)?;
            return index_lines(file, name);
        }
        let packed_bytes = Cell::new(0);
        let whole = CountingReader {
            input: io::Cursor::new(first).chain(file),
            bytes: &packed_bytes,
        };
        let mut input: Box<dyn Read> = if is_gzip {
            Box::new(MultiGzDecoder::new(whole))
        } else {
            Box::new(whole)
        };
        let mut unpacked = tempfile::tempfile().map_err(unreadable)?;
        let mut piece = vec![0; MAX_WINDOW_BYTES];
        let mut unpacked_bytes = 0;
        loop {
            match input.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    unpacked_bytes += length as u64;
                    if unpacked_bytes > MAX_COMPRESSION_RATIO * packed_bytes.get() {
                        let cause = format!(
                            "it would expand to more than {MAX_COMPRESSION_RATIO} times its size"
                        );
                        let cause = io::Error::new(io::ErrorKind::InvalidData, cause);
                        return Err(RecordingError::NotUnpacked {
                            file: name.to_owned(),
                            cause,
                        });
                    }
                    unpacked.write_all(&piece[..length]).map_err(unreadable)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // If the compressed data ends early, the part before the end is used.
                Err(_) if unpacked.stream_position().map_err(unreadable)? > 0 => break,
                Err(cause) => {
                    return Err(RecordingError::NotUnpacked {
                        file: name.to_owned(),
                        cause,
                    });
                }
            }
        }
        unpacked.rewind().map_err(unreadable)?;
        index_lines(unpacked, name)
    }

    /// Returns the decompressed text of a block.
    pub(crate) fn read_block_text(&self, block: usize) -> io::Result<Vec<u8>> {
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
struct CountingReader<'a, R> {
    input: R,
    bytes: &'a Cell<u64>,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.bytes.set(self.bytes.get() + length as u64);
        Ok(length)
    }
}

/// Returns `true` if the start of a file is damaged, but the file contains a block. The start
/// counts as damaged if it is neither a block, a record nor gzip data.
fn has_blocks_after_damage(first: &[u8], file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if first.starts_with(b"{") || first.starts_with(&[0x1f, 0x8b]) || !metadata.is_file() {
        return Ok(false);
    }
    Ok(find_next_block(file, 1, metadata.len())? < metadata.len())
}

/// Indexes a file of plain lines. Every line is checked here, so that errors are reported before
/// playback starts.
fn index_lines(file: File, name: &str) -> Result<FileIndex, RecordingError> {
    let mut index = FileIndex {
        file,
        is_packed: false,
        blocks: Vec::new(),
        cuts: Vec::new(),
    };
    let unreadable = |cause| RecordingError::Unreadable {
        file: name.to_owned(),
        cause,
    };
    let mut reader = BufReader::new(&index.file);
    let (mut offset, mut number, mut samples) = (0, 0, 0_u64);
    let (mut begin, mut head) = (0, BlockHead::default());
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(unreadable)?;
        if length == 0 {
            break;
        }
        number += 1;
        match parse_line(&line) {
            Ok(Some((kind, at_ms))) => {
                head.add_record(kind, at_ms);
                samples += u64::from(kind == RecordKind::Sample);
            }
            Ok(None) => {}
            // A recorder that was killed may leave an incomplete last line.
            Err(_) if !line.ends_with(b"\n") && samples > 0 => {
                let after_ms = head.last_ms;
                index.cuts.push(UnreadablePart {
                    file: name.to_owned(),
                    after_ms,
                    bytes: length as u64,
                    is_at_end: true,
                });
                break;
            }
            // The message is escaped, because it can quote the line, which can contain any
            // characters.
            Err(cause) => {
                return Err(RecordingError::BadLine {
                    file: name.to_owned(),
                    line: number,
                    cause: escape_untrusted(&cause),
                });
            }
        }
        offset += length as u64;
        head.bytes = u32::try_from(offset - begin).unwrap_or(u32::MAX);
        if head.bytes >= PIECE_BYTES {
            head.text_bytes = head.bytes;
            index.blocks.push((begin, head));
            (begin, head) = (offset, head.next_empty_head());
        }
    }
    if head.bytes > 0 {
        head.text_bytes = head.bytes;
        index.blocks.push((begin, head));
    }
    Ok(index)
}

/// Parses the kind and time of a line's record; returns `None` for an empty line.
fn parse_line(line: &[u8]) -> Result<Option<(RecordKind, u64)>, String> {
    let text = std::str::from_utf8(line)
        .map_err(|_| "the line is not UTF-8 text".to_owned())?
        .trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    Record::decode(text).map_err(|error| error.to_string())?;
    parse_kind_and_time(text)
        .map(Some)
        .map_err(|error| error.to_string())
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

/// Returns the offset of the next complete block, or `length` if there is none.
fn find_next_block(file: &File, mut from: u64, length: u64) -> io::Result<u64> {
    // The window starts small and grows, because there may be only a few damaged bytes before a
    // block.
    let mut size = 4 * HEAD_BYTES;
    while from < length {
        // The windows overlap by the size of a head, so that no head at the end of a window is
        // missed.
        let window = read_at_most(file, from, size + HEAD_BYTES)?;
        for at in 0..window.len().min(size) {
            if window[at] == 0x1f
                && let ParsedHead::Block(head) = BlockHead::parse(&window[at..])
                && from + at as u64 + u64::from(head.bytes) <= length
            {
                return Ok(from + at as u64);
            }
        }
        from += size as u64;
        size = (2 * size).min(MAX_WINDOW_BYTES);
    }
    Ok(length)
}
