//! The output of commands: text for people and JSON for programs on standard output, and a status
//! line on standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use serde::Serialize;

use super::{
    columns::terminal_columns,
    screen::{is_dumb_terminal, write_output},
    text::replace_unsupported_symbols,
};
use crate::exit::Failure;

/// Prints text. Styles are removed if standard output does not support them, and characters that
/// the locale does not support are replaced.
///
/// # Errors
/// Returns an error if the text cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(replace_unsupported_symbols(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a command's result as JSON, or as text that fits the terminal's width.
///
/// # Errors
/// Returns an error if the result cannot be written.
pub(crate) fn print_report<J: Serialize>(
    is_json: bool,
    json: impl FnOnce() -> J,
    text: impl FnOnce(Option<usize>) -> String,
) -> Result<(), Failure> {
    if is_json {
        print_json(&json())
    } else {
        print(&text(terminal_columns()))
    }
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// Returns an error if the value cannot be written.
pub(crate) fn print_json(value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
    let json = serde_json::to_string(value).context("cannot write JSON")?;
    print_raw(&(json + "\n"))
}

/// Prints text unchanged, such as a server's response.
///
/// # Errors
/// Returns an error if the text cannot be written.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    Ok(write_output(text)?)
}

/// A progress line on standard error that is updated in place. It must be cleared before anything
/// else is printed.
#[derive(Debug, Default)]
pub(crate) struct StatusLine {
    shown: String,
}

impl StatusLine {
    pub(crate) fn can_be_shown() -> bool {
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
