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

use self::loads::Steady;
pub(crate) use self::{
    check::check_expectation,
    expectation::{Expectation, Whose},
    loads::ALL,
    sample_window::SampleWindow,
};
use crate::{error::RunError, gpu::Gpu};

/// A load whose effect is counted.
pub(crate) struct KnownLoad {
    /// The name, such as `read`.
    pub id: &'static str,
    /// A few words, such as `half of the multiprocessors are busy`.
    pub does: &'static str,
    work: LoadWork,
}

/// Puts a load on a GPU for a while, and returns the time and the expected readings; `None` if this
/// GPU cannot do it.
type PutOn = fn(&LoadContext<'_>) -> Result<Option<Made>, RunError>;

enum LoadWork {
    Own(PutOn),
    /// A workload of the catalogue.
    Steady(Steady),
}

impl KnownLoad {
    /// The number of GPUs: the one that it is given, and those behind it.
    pub(crate) fn gpus(&self) -> usize {
        match &self.work {
            LoadWork::Own(_) => 1,
            LoadWork::Steady(steady) => steady.gpus(),
        }
    }

    pub(crate) fn put_on(&self, context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
        match &self.work {
            LoadWork::Own(put_on) => put_on(context),
            LoadWork::Steady(steady) => steady.put_on(context),
        }
    }
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
