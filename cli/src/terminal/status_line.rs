//! A status line on standard error that is updated in place.

use std::io::{self, IsTerminal, Write};

use super::screen::is_dumb_terminal;

/// A progress line on standard error. It must be cleared before anything else is printed.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    shown: String,
}

impl StatusLine {
    pub(crate) fn is_possible() -> bool {
        io::stderr().is_terminal() && !is_dumb_terminal()
    }

    /// Returns the usable width, which excludes the last column. A line that fills the last column
    /// would move the cursor to the next line.
    pub(crate) fn columns() -> usize {
        rustix::termios::tcgetwinsize(io::stderr())
            .map_or(80, |size| usize::from(size.ws_col))
            .saturating_sub(1)
    }

    pub(crate) fn show(&mut self, line: &str) {
        if self.shown != line {
            // Errors are ignored, because nobody can read the line after the terminal is closed.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
            line.clone_into(&mut self.shown);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.show("");
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.clear();
    }
}
