//! The workload runner, which runs, measures and verifies workloads on GPUs and CPUs in a separate
//! process.
//!
//! - [`protocol`] defines the messages between the worker process and the process that started it:
//!   jobs and reports.
//! - [`child`] is the worker process. [`parent`] starts it, reads its reports and ends it, both for
//!   the terminal and for the server.
//! - `workload` defines workloads, and [`catalogue`] lists all of them. `bench` runs one workload
//!   and returns its outcome: it checks that memory suffices, times the workload, and verifies
//!   every element of the result.
//! - `burn` is the stress test, which checks every matrix product. [`tutorials`] contains the small
//!   programs of tutorials in all variants, with the times of other frameworks for comparison.
//!   [`oom`] demonstrates running out of memory. `selftest` compares known loads with gpumon's
//!   readings.
//! - `cuda` wraps the driver, and `gpu` is a device that runs workloads. On the CPU, only rayon is
//!   needed.
//! - [`info`] describes the machine and its theoretical peaks.
//!
//! The runner uses the probe's data model, but neither a terminal nor the network. It needs
//! NVIDIA's driver, but no CUDA toolkit, because it contains its kernels.

pub mod catalogue;
pub mod child;
pub mod info;
pub mod lock_file;
pub mod oom;
pub mod parent;
pub mod suggest;
pub mod tutorials;

mod bench;
mod burn;
mod check;
mod cpu_product;
mod cuda;
mod error;
mod frameworks;
mod gpu;
mod kernels;
mod measure;
mod memory_budget;
mod numbers;
mod parallel;
mod selftest;
mod workload;

pub use gpumon_workload_protocol as protocol;

pub use self::{cuda::DriverUnavailable, workload::WorkloadDescription};
