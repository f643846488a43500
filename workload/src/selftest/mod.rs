//! The self-test, which checks whether gpumon's readings show what the GPU did. Known loads run one
//! after another, and the readings are compared with expected values.
//!
//! - [`loads`] contains the loads. Each load returns an [`Expectation`] for some of the readings.
//! - [`SampleWindow`] contains the readings of a GPU in a time range. They are checked against the
//!   expectations.
//!
//! The effect of a load is known independently of the driver's readings: from counted bytes and
//! operations, from the clocks of the host and the device, and from measurements made by the
//! blocks.

mod check;
mod expectation;
mod loads;
mod sample_window;

use std::{sync::atomic::AtomicBool, time::Duration};

pub(crate) use self::{
    check::check_expectation,
    expectation::{Expectation, TestedGpu},
    loads::{KNOWN_LOADS, KnownLoad},
    sample_window::SampleWindow,
};
use crate::gpu::Gpu;

pub(crate) struct LoadContext<'a> {
    pub gpu: &'a Gpu,
    pub time: Duration,
    /// The first part of the load's time range, in which readings do not show the load yet. The
    /// driver averages readings over up to a second.
    pub settling: Duration,
    pub interrupted: &'a AtomicBool,
}

pub(crate) struct LoadResult {
    pub from_ms: u64,
    pub to_ms: u64,
    pub expectations: Vec<Expectation>,
}
