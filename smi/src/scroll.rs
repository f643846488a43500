//! Scrolling output in which the heading is repeated.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use gpumon_probe::safe_file;

/// An output for rounds of rows. The heading is written before the first row and again after every
/// `every` rows.
pub(crate) struct ScrollingOutput<'a> {
    output: Box<dyn Write + 'a>,
    heading: String,
    every: usize,
    rows: Option<usize>,
}

impl<'a> ScrollingOutput<'a> {
    /// Creates an output that writes to `output`, or to a new file if `file` is set.
    pub(crate) fn new(
        output: &'a mut dyn Write,
        file: Option<&str>,
        heading: String,
        every: usize,
    ) -> io::Result<Self> {
        let output: Box<dyn Write + 'a> = match file {
            Some(path) => Box::new(BufWriter::new(safe_file::create_empty(Path::new(path))?)),
            None => Box::new(output),
        };
        Ok(Self {
            output,
            heading,
            every,
            rows: None,
        })
    }

    /// Writes all rows of a round together, so that a reader always sees complete rounds.
    pub(crate) fn write_round(&mut self, rows: &[String]) -> io::Result<()> {
        let mut text = String::new();
        if self.rows.is_none_or(|rows| rows >= self.every) {
            text.push_str(&self.heading);
            self.rows = Some(0);
        }
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        self.rows = self.rows.map(|before| before + rows.len());
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_repeats_after_44_rows() {
        let mut output = Vec::new();
        let mut scroll = ScrollingOutput::new(&mut output, None, "#\n".to_owned(), 44).unwrap();
        for _ in 0..23 {
            scroll
                .write_round(&["a".to_owned(), "b".to_owned()])
                .unwrap();
        }
        drop(scroll);
        let text = String::from_utf8(output).unwrap();
        let headings: Vec<_> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| *line == "#")
            .map(|(number, _)| number)
            .collect();
        assert_eq!(headings, [0, 45]);
    }
}
