//! Whose process a PID is: its name, command line, user and start, its notebook, job, pod,
//! container and service.
//!
//! Everything is read below one root, which is `/proc` but in tests. A process decides fields long
//! that takes: its command line can lie in memory that another process has to provide, its files on
//! a file system that does not answer. So it is read on threads of a [`Finder`] (`workers.rs`) in
//! two stages, of which only the second can block, and whoever asks waits no longer than it wants
//! to. What is not known by then is [`NotReadYet`](crate::model::Absence::NotReadYet).

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
    clean::{line as clean_line, name as clean_name},
    finder::{Finder, Resolver},
    proc_fs::children,
    process_reader::user_name,
};

/// Whose command lines may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandLines {
    /// Everybody's: for a person at a terminal, who could as well ask `ps`.
    All,
    /// Only those of the user gpumon runs as: for a service, whose viewers may be others.
    Own,
}
