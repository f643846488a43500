//! The destination to which each round's text is written.

use std::{
    io::{self, Write},
    path::Path,
};

use gpumon_probe::safe_file;

use super::Refusal;

/// Standard output, or the file given with `-f`.
pub(crate) struct Output(Box<dyn Write>);

impl Output {
    pub(crate) fn to_stdout() -> Self {
        Self(Box::new(io::stdout()))
    }

    /// Opens and empties the file at `path`, or uses standard output if no path is given. Like
    /// nvidia-smi, reports errors in different words if the output is that of a query.
    pub(crate) fn open(path: Option<&Path>, is_query: bool) -> Result<Self, Refusal> {
        let Some(path) = path else {
            return Ok(Self::to_stdout());
        };
        let log_file = if is_query { "log file" } else { "the log file" };
        let failed = |_| {
            Refusal::new(
                255,
                format!("Failed to create {log_file} {}\n\n", path.display()),
            )
        };
        Ok(Self(Box::new(
            safe_file::create_empty(path).map_err(failed)?,
        )))
    }

    /// Writes and flushes a complete round, so that a reader never has to wait for the rest of it.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}
