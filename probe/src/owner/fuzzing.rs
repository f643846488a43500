//! Entry points for fuzzing, with input that processes control.

use std::path::Path;

use super::{CommandLines, cgroup, process_reader::ProcessReader};
use crate::model::Owner;

/// Returns the owners in a process's `cgroup`.
pub fn cgroup(text: &str) -> Owner {
    let mut owner = Owner::default();
    cgroup::read(text, &mut owner);
    owner
}

/// Runs both stages of reading a process, with the files in a folder in place of `/proc`. Returns
/// `None` if there is no such process.
pub fn owner(proc: &Path, pid: u32) -> Option<Owner> {
    let reader = ProcessReader::new(proc.to_owned(), CommandLines::All);
    let basics = reader.basics(pid).ok()?;
    Some(reader.details(pid, &basics, None).owner)
}
