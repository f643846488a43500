//! The owners of processes: name, command line, user and start time, notebook, job, pod, container
//! and service.
//!
//! Everything is read below one root directory, which is `/proc` except in tests. A process can
//! block the reader: its command line can be in memory that another process must provide, and its
//! files can be on a file system that does not respond. Processes are therefore read by the threads
//! of a [`Finder`] (`workers.rs`) in two stages, and only the second stage can block. Callers wait
//! for a limited time, and receive [`NotReadYet`](crate::model::Absence::NotReadYet) for details
//! that are still unknown then.

mod as_user;
mod cgroup;
mod clean;
mod connection_file;
mod finder;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod jupyter;
mod lookup;
mod proc_fs;
mod process_reader;
mod table;
#[cfg(test)]
mod tests;
mod workers;

pub(crate) use self::{cgroup::is_sluid, process_reader::ProcessName, table::ProcessFields};
pub use self::{
    clean::{clean_line, clean_name},
    finder::{Finder, Resolver},
    proc_fs::read_children,
    process_reader::user_name,
};

/// The users whose command lines may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandLines {
    /// All users. This is used in a terminal, where `ps` shows the same command lines.
    All,
    /// Only the user that gpumon runs as. This is used by a service, whose data other users can
    /// see.
    Own,
}
