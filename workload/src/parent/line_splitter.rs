//! A splitter that divides an untrusted byte stream into lines.

/// The maximum length of a line in bytes. A result with all its times is a few KB long.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Splits a byte stream into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// The bytes after the last line end.
    rest: Vec<u8>,
}

/// The error for a line that is longer than any report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than 64 KiB")]
pub struct LineTooLong;

impl LineSplitter {
    /// Adds bytes, and passes each complete line to `on_line`, without its line end.
    ///
    /// # Errors
    /// Returns [`LineTooLong`], or the error of `on_line`.
    pub fn push<E: From<LineTooLong>>(
        &mut self,
        bytes: &[u8],
        mut on_line: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.rest.len() + part.len() > MAX_LINE_BYTES {
                return Err(LineTooLong.into());
            }
            self.rest.extend_from_slice(part);
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                on_line(String::from_utf8_lossy(&line).trim())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_chunks(chunks: &[&[u8]]) -> Result<Vec<String>, LineTooLong> {
        let (mut lines, mut found) = (LineSplitter::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, |line| {
                found.push(line.to_owned());
                Ok::<(), LineTooLong>(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn lines_are_split_across_chunks() {
        assert_eq!(
            split_chunks(&[b"a\nb", b"", b"c\r\n\nd", b"e"]).unwrap(),
            ["a", "bc", ""]
        );
        assert_eq!(
            split_chunks(&[b"\xff\xfe\n"]).unwrap(),
            ["\u{fffd}\u{fffd}"]
        );
    }

    #[test]
    fn endless_line_is_refused() {
        let chunk = vec![b'x'; 40_000];
        assert_eq!(split_chunks(&[&chunk]).unwrap(), Vec::<String>::new());
        assert_eq!(split_chunks(&[&chunk, &chunk]), Err(LineTooLong));
        assert_eq!(
            split_chunks(&[&vec![b'x'; MAX_LINE_BYTES], b"\n"])
                .unwrap()
                .len(),
            1
        );
    }
}
