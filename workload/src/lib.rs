//! The workload runner: real work for GPUs and CPUs, measured and verified.
//!
//! - [`Workload`] is what can be run, and [`catalogue`] all that there is of it.
//! - [`bench`] runs one: it asks whether there is room, times it, checks every element of the result, and returns an
//!   [`Outcome`].
//! - [`burn`] makes products without end, and compares each. A [`job`] is what is asked of the runner, and a [`report`]
//!   what it says.
//! - [`seeds`] are the small programs of tutorials, in all their variants, beside the times that frameworks take.
//! - [`cuda`] is the driver, and [`Gpu`] a device on which something runs. The CPU needs nothing but rayon.
//! - [`oom`] shows how memory runs out.
//! - [`selftest`] puts known loads on, and says what the probe should report of them.
//! - [`info`] says what the machine has, and what that can do at best.
//!
//! The runner knows the probe's vocabulary, no terminal and no network. It needs NVIDIA's driver and no toolkit: its
//! kernels are in it.

pub mod bench;
pub mod burn;
pub mod catalogue;
pub mod cuda;
pub mod info;
pub mod job;
pub mod oom;
pub mod report;
pub mod seeds;
pub mod selftest;

mod check;
mod cpu_product;
mod error;
mod exact;
mod gpu;
mod kernels;
mod measure;
mod outcome;
mod random;
mod real;
mod roofline;
mod room;
mod sin_cos;
mod statistics;
mod workload;

pub use self::{
    check::Verification,
    error::RunError,
    gpu::Gpu,
    measure::{Limits, Now, Stopped},
    outcome::{DeviceName, Environment, Outcome, Rate},
    roofline::Roofline,
    room::Room,
    statistics::Times,
    workload::{About, Backend, Bound, Cost, Dtype, Engine, Extent, Prepared, Sample, Size, Workload},
};
