//! Lines out of a stream of bytes that nobody vouches for.

/// The longest line that is taken in. A result with all its times has a few KB.
const LONGEST: usize = 64 * 1024;

/// Cuts a stream into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// What came behind the last end of a line.
    rest: Vec<u8>,
}

/// A line was longer than any that is taken in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Takes in what has come, and gives each line that is whole now, without its end, to `take`.
    ///
    /// # Errors
    /// [`TooLong`], and whatever `take` fails with.
    pub(crate) fn push<E: From<TooLong>>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.rest.len() + part.len() > LONGEST {
                return Err(TooLong.into());
            }
            self.rest.extend_from_slice(part);
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                take(String::from_utf8_lossy(&line).trim())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunks: &[&[u8]]) -> Result<Vec<String>, TooLong> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, |line| {
                found.push(line.to_owned());
                Ok::<(), TooLong>(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn lines_are_cut_wherever_the_stream_is() {
        assert_eq!(cut(&[b"a\nb", b"", b"c\r\n\nd", b"e"]).unwrap(), ["a", "bc", ""]);
        assert_eq!(cut(&[b"\xff\xfe\n"]).unwrap(), ["\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let chunk = vec![b'x'; 40_000];
        assert_eq!(cut(&[&chunk]).unwrap(), Vec::<String>::new());
        assert_eq!(cut(&[&chunk, &chunk]), Err(TooLong));
        assert_eq!(cut(&[&vec![b'x'; LONGEST], b"\n"]).unwrap().len(), 1);
    }
}
