//! What fuzzing feeds with what processes choose themselves.

use std::path::Path;

use super::{Resolver, cgroup};
use crate::model::{Owner, Process};

/// What a process's `cgroup` tells.
pub fn cgroup(text: &str) -> Owner {
    let mut owner = Owner::default();
    cgroup::read(text, &mut owner);
    owner
}

/// Whose a process is, by the files below a folder that stands for `/proc`.
pub fn fill(proc: &Path, process: &mut Process) {
    Resolver::new(proc, super::CommandLines::All).fill(std::slice::from_mut(process));
}
