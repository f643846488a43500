//! The workload runner, which runs, measures and verifies workloads on GPUs and CPUs in a process
//! of its own.
//!
//! - [`protocol`] defines the messages between the worker process and the process that started it:
//!   jobs and reports.
//! - [`child`] is the worker process. [`parent`] starts it, reads its reports and ends it, both for
//!   the terminal and for the server.
//! - `workload` defines workloads, and [`catalogue`] lists all of them. `bench` runs one and
//!   returns its outcome: it checks that memory suffices, times the workload, and verifies every
//!   element of the result.
//! - `burn` is the stress test, which checks every matrix product. [`tutorials`] are the small
//!   programs of tutorials in all variants, with the times of frameworks for comparison. [`oom`]
//!   demonstrates running out of memory. `selftest` compares known loads with the readings of the
//!   probe.
//! - `cuda` wraps the driver, and `gpu` is a device that runs workloads. The CPU needs only rayon.
//! - [`info`] describes the machine and its theoretical peaks.
//!
//! The runner uses the probe's vocabulary, but no terminal and no network. It needs NVIDIA's driver
//! but no toolkit, because it contains its kernels.

pub mod catalogue;
pub mod child;
pub mod info;
pub mod lock_file;
pub mod oom;
pub mod parent;
pub mod suggest;
pub mod tutorials;

mod bench;
mod beside;
mod burn;
mod check;
mod cpu_product;
mod cuda;
mod error;
mod functions;
mod gpu;
mod kernels;
mod measure;
mod memory_budget;
mod parallel;
mod random;
mod real;
mod roofline;
mod selftest;
mod statistics;
mod workload;

pub use gpumon_workload_protocol as protocol;

pub use self::{cuda::Unavailable, workload::About};
