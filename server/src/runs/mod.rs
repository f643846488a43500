//! Runs of the workload runner: those that were started here, and those that a terminal announces.
//!
//! The process that works, its reports and its end are `gpumon_workload`'s (`parent`, `protocol`),
//! as for a terminal.
//!
//! - [`state`] is what is known of a run, as it travels; [`record`] is what its reports come to,
//!   [`report_item`] what is kept of each.
//! - [`registry`] holds the runs and tells of them: their beginnings, steps and ends are events,
//!   and whoever asked for it gets the state while it changes ([`follower`]). [`job_request`] is
//!   what a job may ask for.
//! - [`routes`] are the endpoints, [`external_runs`] the one of terminals; [`access`] says who may
//!   start and stop a run, [`catalogue`] is what can be run.

pub(crate) mod access;
mod catalogue;
pub(crate) mod external_runs;
mod follower;
pub(crate) mod job_request;
mod record;
mod registry;
mod report_item;
pub(crate) mod routes;
pub mod state;

use gpumon_workload::parent::WorkerCommand;

pub use self::catalogue::{Catalogue, CatalogueEntry};
pub(crate) use self::{
    access::{is_meant, may_run, refusal},
    follower::Follower,
    registry::Runs,
    routes::{RunList, announcements, router},
    state::RunDetails,
};

/// How runs are started.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The process that works: gpumon itself.
    pub worker: WorkerCommand,
}
