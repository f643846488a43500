//! The owners of processes: name, command line, user and start time, notebook, job, pod, container
//! and service.
//!
//! Everything is read below one root directory, which is `/proc` except in tests. A process can
//! block the reader: its command line can be in memory that another process must provide, and its
//! files can be on a file system that does not respond. Processes are therefore read by the threads
//! of a [`Finder`] in two stages, and only the second stage can block. Callers wait for a limited
//! time, and receive [`NotReadYet`](crate::model::Absence::NotReadYet) for details that are still
//! unknown then.

mod as_user;
mod cgroup;
mod finder;
mod jupyter;
mod lookup;
mod proc_fs;
mod process_reader;
mod table;
#[cfg(test)]
mod tests;

use crate::untrusted::is_invisible;

pub(crate) use self::{cgroup::is_sluid, process_reader::ProcessName, table::ProcessFields};
pub use self::{
    finder::{Finder, Resolver},
    proc_fs::read_children,
    process_reader::user_name,
};

/// The users whose command lines may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandLines {
    /// The command lines of all users are shown. Commands in a terminal use this variant, because
    /// `ps` shows the same command lines there.
    All,
    /// Only the user that gpumon runs as. This is used by a service, whose data other users can
    /// see.
    Own,
}

// Functions that shorten untrusted text and make it printable.
//
// An escape sequence in a name would control the terminal, a line break would forge a line of
// `/metrics`, and a name of several megabytes would make a sample larger than clients accept.

/// The maximum length in bytes of a program, user, kernel or unit name.
const MAX_NAME_BYTES: usize = 128;

/// The maximum length in bytes of a kernel or job ID.
const MAX_ID_BYTES: usize = 128;

/// The maximum length in bytes of a command line or path. These texts are part of every sample.
const MAX_LINE_BYTES: usize = 1024;

pub fn clean_name(text: &str) -> String {
    clean_text(text, MAX_NAME_BYTES)
}

fn clean_id(text: &str) -> String {
    clean_text(text, MAX_ID_BYTES)
}

pub fn clean_line(text: &str) -> String {
    clean_text(text, MAX_LINE_BYTES)
}

/// Shortens `text` and makes it printable. Shortened text ends with `…`.
fn clean_text(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    let mut clean: String = kept.chars().map(make_printable).collect();
    // The text is truncated again, because the replacement for a character can be longer than the
    // character.
    clean.truncate(clean.floor_char_boundary(longest));
    if kept.len() < text.len() || clean.chars().count() < kept.chars().count() {
        clean.push('…');
    }
    clean
}

fn make_printable(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        character if character.is_control() || is_invisible(character) => {
            char::REPLACEMENT_CHARACTER
        }
        character => character,
    }
}

/// Entry points for fuzzing with input that processes control.
#[cfg(any(fuzzing, test))]
pub mod fuzzing {
    use std::path::Path;

    use super::{CommandLines, cgroup, process_reader::ProcessReader};
    use crate::model::Owner;

    /// Returns the owners in the text of a process's `cgroup` file.
    pub fn cgroup(text: &str) -> Owner {
        let mut owner = Owner::default();
        cgroup::fill_owner_from_cgroup(text, &mut owner);
        owner
    }

    /// Runs both stages of reading a process, using the directory `proc` instead of `/proc`.
    /// Returns `None` if there is no such process.
    pub fn owner(proc: &Path, pid: u32) -> Option<Owner> {
        let reader = ProcessReader::new(proc.to_owned(), CommandLines::All);
        let basics = reader.read_basics(pid).ok()?;
        Some(reader.read_details(pid, &basics, None).owner)
    }
}

#[cfg(test)]
mod clean_text_tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(clean_line("python train.py"), "python train.py");
        let cut = clean_line(&"ä".repeat(MAX_LINE_BYTES));
        assert_eq!(cut.chars().count(), MAX_LINE_BYTES / 2 + 1);
        assert!(cut.ends_with("ä…"));
        assert_eq!(
            clean_name(&"x".repeat(131_072)).len(),
            MAX_NAME_BYTES + '…'.len_utf8()
        );
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            clean_name("a\u{1b}[31mb\u{7}\u{9b}c"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}c"
        );
        assert_eq!(
            clean_name("a\nb\tc\u{2028}\u{202e}d\u{2066}"),
            "a b c\u{fffd}\u{fffd}d\u{fffd}"
        );
        let long = clean_name(&"\u{1}".repeat(MAX_NAME_BYTES));
        assert!(
            long.len() <= MAX_NAME_BYTES + '…'.len_utf8() && long.ends_with('…'),
            "{long}"
        );
    }
}
