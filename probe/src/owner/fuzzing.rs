//! What fuzzing feeds with what processes choose themselves.

use std::path::Path;

use super::{CommandLines, cgroup, process_reader::ProcessReader};
use crate::model::Owner;

/// What a process's `cgroup` tells.
pub fn cgroup(text: &str) -> Owner {
    let mut owner = Owner::default();
    cgroup::read(text, &mut owner);
    owner
}

/// Both stages of looking for whose a process is, by the files below a folder that stands for
/// `/proc`; `None` where there is no such process.
pub fn owner(proc: &Path, pid: u32) -> Option<Owner> {
    let reader = ProcessReader::new(proc.to_owned(), CommandLines::All);
    let basics = reader.basics(pid).ok()?;
    Some(reader.details(pid, &basics, None).owner)
}
