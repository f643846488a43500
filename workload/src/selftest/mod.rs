//! Is what gpumon shows what the GPU did? Loads of which it is known what they are, one after the other, and what the
//! probe's readings of the same time should be.
//!
//! - [`loads`] are the loads, a file for each kind; each says what it [expects](Expectation) of which reading.
//! - [`SampleWindow`] is what was read of a GPU from when to when, and a [`Check`](crate::protocol::Check) what came of one expectation.
//!
//! What a load made is known without the driver's readings: by counting bytes and operations, by the clocks of host and
//! device, and by what each block says of itself.

mod check;
mod expectation;
mod loads;
mod sample_window;

use std::{sync::atomic::AtomicBool, time::Duration};

pub(crate) use self::{
    check::check_expectation,
    expectation::{Expectation, Whose},
    loads::ALL,
    sample_window::SampleWindow,
};
use crate::{error::RunError, gpu::Gpu};

/// A load of which it is known what it is.
pub(crate) trait KnownLoad: Sync {
    /// Its name, as `read`.
    fn id(&self) -> &'static str;

    /// What is done, in a few words, as `half of the multiprocessors are busy`.
    fn does(&self) -> &'static str;

    /// How many GPUs it takes: the one that it is given, and those behind it.
    fn gpus(&self) -> usize {
        1
    }

    /// Puts it on the GPU for a while, and says when that was and what readings should say of it. `None` where this GPU
    /// cannot do it.
    fn put_on(&self, context: &LoadContext<'_>) -> Result<Option<Made>, RunError>;
}

pub(crate) struct LoadContext<'a> {
    pub gpu: &'a Gpu,
    pub time: Duration,
    /// How much of that goes by until readings have come to it: the driver averages over up to a second.
    pub settling: Duration,
    pub interrupted: &'a AtomicBool,
}

pub(crate) struct Made {
    pub from_ms: u64,
    pub to_ms: u64,
    pub expectations: Vec<Expectation>,
}
