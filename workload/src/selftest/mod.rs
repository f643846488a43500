//! Is what gpumon shows what the GPU did? Loads of which it is known what they are, one after the
//! other, and what the probe's readings of the same time should be.
//!
//! - [`loads`] are the loads, a file for each kind; each says what it [expects](Expectation) of
//!   which reading.
//! - [`SampleWindow`] is what was read of a GPU from when to when, and a
//!   [`Check`](crate::protocol::Check) what came of one expectation.
//!
//! What a load made is known without the driver's readings: by counting bytes and operations, by
//! the clocks of host and device, and by what each block says of itself.

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
    /// How much of that goes by until readings have come to it: the driver averages over up to a
    /// second.
    pub settling: Duration,
    pub interrupted: &'a AtomicBool,
}

pub(crate) struct Made {
    pub from_ms: u64,
    pub to_ms: u64,
    pub expectations: Vec<Expectation>,
}
