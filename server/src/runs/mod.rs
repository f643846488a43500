//! Runs of the workload runner: those that were started here, and those that a terminal announces.
//!
//! - [`state`] is what is known of a run, as it travels; [`report`] understands the lines that the process says which
//!   works, [`lines`] cuts them out of a stream, and [`record`] is what they come to.
//! - [`registry`] holds the runs and tells of them: their beginnings, steps and ends are events, and whoever asked for
//!   it gets the state while it changes ([`follow`]).
//! - [`demand`] is what a job asks for, [`worker`] a process that does it, from its start to its end.
//! - [`routes`] are the endpoints, [`announced`] the one of terminals; [`access`] says who may start and stop a run,
//!   [`catalogue`] is what can be run.

mod access;
mod announced;
mod catalogue;
mod demand;
mod follow;
mod lines;
mod record;
mod registry;
mod report;
mod routes;
pub mod state;
mod worker;

use std::{ffi::OsString, path::PathBuf};

pub use self::catalogue::{Catalogue, CatalogueEntry};
pub(crate) use self::{
    follow::Follower,
    registry::Runs,
    routes::{announcements, router},
};

/// How runs are started, and by whom.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The program that works: gpumon itself.
    pub program: PathBuf,
    /// Its arguments, behind which the job is put.
    pub arguments: Vec<OsString>,
    /// Whether everybody who reaches the port may start and stop runs, and not only the server's own user.
    pub allowed_for_all: bool,
}
