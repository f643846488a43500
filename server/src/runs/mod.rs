//! Workload runs: those that this server starts, and those that terminals announce.
//!
//! `gpumon_workload` (`parent`, `protocol`) handles the process, its reports and its end, as for a
//! run in a terminal.
//!
//! - [`state`] contains a run's state as clients receive it, and collects the run's reports.
//! - [`registry`] keeps all runs, and limits what jobs may request. The beginnings, steps and ends
//!   of runs are events. Clients that requested runs receive all changes.
//! - [`routes`] contains the endpoints, and decides who may start and stop runs. [`catalogue`]
//!   lists everything that can be run.

mod catalogue;
pub(crate) mod registry;
pub(crate) mod routes;
pub mod state;

use gpumon_workload::parent::WorkerCommand;

pub use self::catalogue::{Catalogue, CatalogueEntry};
pub(crate) use self::{
    registry::{RunFollower, Runs},
    routes::{
        GPUMON_HEADER, RunList, build_announcement_router, build_router, find_run_refusal,
        has_gpumon_header, require_run_permission,
    },
    state::RunDetails,
};

/// The settings for starting runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The command that starts the worker process, which is gpumon itself.
    pub worker: WorkerCommand,
}
