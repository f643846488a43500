//! A line on standard error that is written anew in its place.

use std::io::{self, IsTerminal, Write};

use super::screen::is_dumb;

/// A line of standard error that shows how far something is. It is taken away before anything else
/// is printed.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    shown: String,
}

impl StatusLine {
    pub(crate) fn is_possible() -> bool {
        io::stderr().is_terminal() && !is_dumb()
    }

    /// A line that fills the terminal to its edge would begin the next.
    pub(crate) fn columns() -> usize {
        rustix::termios::tcgetwinsize(io::stderr())
            .map_or(80, |size| usize::from(size.ws_col))
            .saturating_sub(1)
    }

    pub(crate) fn show(&mut self, line: &str) {
        if self.shown != line {
            // A terminal that is gone takes its reader along.
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
