//! Workload runs: those that this server starts, and those that a terminal announces.
//!
//! The process, its reports and its end are handled by `gpumon_workload` (`parent`, `protocol`), as
//! for a run in a terminal.
//!
//! - [`state`] is the state of a run as clients receive it; [`record`] collects its reports,
//!   [`report_item`] converts them.
//! - [`registry`] keeps all runs. Their beginnings, steps and ends are events; clients that
//!   requested it receive changes ([`follower`]). [`job_request`] limits the requests of jobs.
//! - [`routes`] has the endpoints, [`external_runs`] that of terminals; [`access`] decides who may
//!   start and stop runs, [`catalogue`] lists everything that can be run.

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

/// The settings for starting runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The command of the worker process, which is gpumon itself.
    pub worker: WorkerCommand,
}
