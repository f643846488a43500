//! Standard output of commands: text for people, JSON for programs.

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

use super::{columns::terminal_columns, text::for_locale};
use crate::exit::Failure;

/// Prints text. Its styles are left out if standard output shows none, and its characters are those
/// of the locale.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(for_locale(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a result of a command: as JSON, or as text that is laid out for the columns of the
/// terminal.
///
/// # Errors
/// If it cannot be written.
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
/// If it cannot be written.
pub(crate) fn print_json(value: &(impl Serialize + ?Sized)) -> Result<(), Failure> {
    let json = serde_json::to_string(value).context("cannot write JSON")?;
    print_raw(&(json + "\n"))
}

/// Prints text as it is, such as the answer of a server.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn print_raw(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
