//! The self-test, which answers whether gpumon's readings show what the GPU did. Known loads run
//! one after another, and the probe's readings are compared with expected values.
//!
//! - [`loads`] has the loads. Each one returns an [`Expectation`] for some readings.
//! - [`SampleWindow`] has the readings of a GPU in a time range, which are checked against the
//!   expectations.
//!
//! The effect of a load is known without the driver's readings: from counted bytes and operations,
//! from the clocks of the host and the device, and from measurements by the blocks.

mod check;
mod expectation;
mod loads;
mod sample_window;

use std::{sync::atomic::AtomicBool, time::Duration};

pub(crate) use self::{
    check::check_expectation,
    expectation::{Expectation, Whose},
    loads::{ALL, KnownLoad},
    sample_window::SampleWindow,
};
use crate::gpu::Gpu;

pub(crate) struct LoadContext<'a> {
    pub gpu: &'a Gpu,
    pub time: Duration,
    /// The first part of this time, in which readings do not show the load yet. The driver averages
    /// over up to a second.
    pub settling: Duration,
    pub interrupted: &'a AtomicBool,
}

pub(crate) struct Made {
    pub from_ms: u64,
    pub to_ms: u64,
    pub expectations: Vec<Expectation>,
}
