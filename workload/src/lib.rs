//! The workload runner: real work for GPUs and CPUs, measured and verified, in a process of its
//! own.
//!
//! - [`protocol`] is what crosses the pipe between that process and the one that started it: jobs
//!   and reports.
//! - [`child`] is the process that works, [`parent`] starts it, reads what it reports and ends it.
//!   Terminal and server alike are users of these two.
//! - `workload` says what can be run, and [`catalogue`] all that there is of it. `bench` runs one
//!   and returns its outcome: it asks whether memory suffices, times it and verifies every element
//!   of the result.
//! - `burn` makes products without end, and compares each. [`tutorials`] are the small programs of
//!   tutorials, in all their variants, beside the times of frameworks. [`oom`] shows how memory
//!   runs out. `selftest` puts known loads on, and says what the probe should report of them.
//! - `cuda` is the driver, and `gpu` a device on which something runs. The CPU needs nothing but
//!   rayon.
//! - [`info`] says what the machine has, and its theoretical peak.
//!
//! The runner knows the probe's vocabulary, no terminal and no network. It needs NVIDIA's driver
//! and no toolkit: its kernels are in it.

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
