//! Entry points for fuzzing with input that processes control.

use std::path::Path;

use super::{CommandLines, cgroup, process_reader::ProcessReader};
use crate::model::Owner;

/// Returns the owners in the text of a process's `cgroup` file.
pub fn cgroup(text: &str) -> Owner {
    let mut owner = Owner::default();
    cgroup::fill_owner(text, &mut owner);
    owner
}

/// Runs both stages of reading a process, using the directory `proc` instead of `/proc`. Returns
/// `None` if there is no such process.
pub fn owner(proc: &Path, pid: u32) -> Option<Owner> {
    let reader = ProcessReader::new(proc.to_owned(), CommandLines::All);
    let basics = reader.read_basics(pid).ok()?;
    Some(reader.read_details(pid, &basics, None).owner)
}
