//! Workload runs: those that this server starts, and those that terminals announce.
//!
//! `gpumon_workload` (`parent`, `protocol`) handles the process, its reports and its end, as for a
//! run in a terminal.
//!
//! - [`state`] contains a run's state as clients receive it. [`record`] collects the run's reports,
//!   and [`report_item`] converts them.
//! - [`registry`] keeps all runs. Their beginnings, steps and ends are events. Clients that
//!   requested runs receive all changes ([`follower`]). [`job_request`] limits what jobs may
//!   request.
//! - [`routes`] contains the endpoints, and [`external_runs`] the endpoint for terminals.
//!   [`access`] decides who may start and stop runs, and [`catalogue`] lists everything that can be
//!   run.

pub(crate) mod access;
mod catalogue;
pub(crate) mod registry;
pub(crate) mod routes;
pub mod state;

use gpumon_workload::parent::WorkerCommand;

pub use self::catalogue::{Catalogue, CatalogueEntry};
pub(crate) use self::{
    access::{find_refusal, has_gpumon_header, require_run_permission},
    registry::Runs,
    routes::{RunList, build_announcement_router, build_router},
    state::RunDetails,
};
pub(crate) use registry::RunFollower;

/// The settings for starting runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The command that starts the worker process, which is gpumon itself.
    pub worker: WorkerCommand,
}
