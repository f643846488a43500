//! The probe: what a GPU and its host can tell, read into one model.
//!
//! - [`model`] is the data model, which all of gpumon shares.
//! - [`vendor`] is where a GPU's readings come from: NVIDIA's driver, a simulation; one folder
//!   each.
//! - [`host`] reads the machine around the GPUs.
//! - [`sampler`] decides when each thing is read, with one thread per GPU.
//! - [`derive`] makes of samples what no single reading tells: rates, conditions, events.
//! - [`owner`] tells whose process a PID is.
//! - [`own_processes`] describes a user's own processes where a collector of somebody else's may
//!   not.
//! - [`allocation`] tells to whom schedulers have given GPUs.
//! - [`usage`] adds up who used how much.
//! - [`stat`] has the minimum, mean and maximum of a reading in a window.
//! - [`surroundings`] detects a container or WSL, which get the driver in another way.
//! - [`child`] starts programs without this one's secrets.
//! - [`benchmarks`] is what benchmarks of each GPU have shown, kept over time in a file.
//! - [`bounded`] reads files whose length somebody else decides, [`private_file`] files that nobody
//!   else may change.
//! - [`safe_file`] writes files in directories that somebody else may have prepared.
//! - [`toml_error`] says what is wrong with a file of TOML, and where.
//! - [`local_time`] is the time zone in which times are shown and read.
//! - [`units`] formats bytes and durations for people.
//! - [`untrusted`] makes text that somebody else chose safe to print.
//!
//! The probe knows no async runtime, no network and no terminal.

pub mod allocation;
pub mod benchmarks;
pub mod bounded;
pub mod child;
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
