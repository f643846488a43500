//! The probe, which reads GPUs and their host into one data model.
//!
//! - [`model`] contains the data model of all of gpumon.
//! - [`vendor`] contains the sources of readings, with one folder each: the vendors' drivers, and a
//!   simulation.
//! - [`host`] reads the host machine.
//! - [`sampler`] schedules all readings, with one thread per GPU.
//! - [`mod@derive`] derives rates, conditions and events from several readings.
//! - [`owner`] finds the owners of a process: user, job, pod, notebook.
//! - [`own_processes`] adds details of the current user's processes that another user's collector
//!   may not report.
//! - [`allocation`] finds the jobs and pods to which schedulers have allocated GPUs.
//! - [`usage`] computes GPU use by owner.
//! - [`process_stat`] reads the start time, state and parent of a process.
//! - [`stat`] computes the minimum, mean and maximum of a reading in a window.
//! - [`surroundings`] detects containers and WSL, which provide the driver differently.
//! - [`cpu_use`] measures the CPU use of the processes that use a GPU.
//! - [`child`] starts programs without this process's secrets.
//! - [`benchmarks`] stores the benchmark results of each GPU in a file.
//! - [`bounded`] reads files of unknown length, [`private_file`] reads files that no other user may
//!   change.
//! - [`file_stamp`] detects changed files.
//! - [`safe_file`] writes files in directories that another user may have prepared.
//! - [`toml_error`] explains errors in TOML files, with their position.
//! - [`local_time`] provides the time zone for displaying and parsing times.
//! - [`units`] formats and parses bytes and durations.
//! - [`untrusted`] makes untrusted text safe to print.
//!
//! The probe uses no async runtime, no network and no terminal.

pub mod allocation;
pub mod benchmarks;
pub mod bounded;
pub mod child;
pub mod cpu_use;
pub mod derive;
pub mod file_stamp;
pub mod host;
pub mod local_time;
pub mod model;
pub mod own_processes;
pub mod owner;
pub mod private_file;
pub mod process_stat;
pub mod safe_file;
pub mod sampler;
pub mod stat;
pub mod surroundings;
mod thread;
pub mod toml_error;
pub mod units;
pub mod untrusted;
pub mod usage;
pub mod vendor;
