//! One measurement: under way, waiting for what the driver tells later, or done.

use std::time::{Duration, Instant};

use gpumon_probe::{
    model::{Cost, Gpu, Record},
    usage::cost::CostMeter,
};

use crate::process_tree::ProcessTree;

/// The driver's records come within two seconds, where they come.
const RECORDS_COME_WITHIN: Duration = Duration::from_secs(3);

pub(super) enum Measurement {
    Open {
        meter: Box<CostMeter>,
        /// The root of the tree of processes.
        root: u32,
        /// Since when it is over, by this process's clock.
        ended: Option<Instant>,
    },
    Done(Box<Cost>),
}

impl Measurement {
    pub(super) fn new(name: Option<String>, root: u32, at_ms: f64) -> Self {
        Self::Open {
            meter: Box::new(CostMeter::new(name, at_ms)),
            root,
            ended: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Open { ended: None, .. })
    }

    pub(super) fn root(&self) -> Option<u32> {
        match self {
            Self::Open { root, .. } => Some(*root),
            Self::Done(_) => None,
        }
    }

    pub(super) fn end(&mut self, at_ms: f64) {
        if let Self::Open {
            meter,
            ended: ended @ None,
            ..
        } = self
        {
            meter.end(at_ms);
            *ended = Some(Instant::now());
        }
    }

    pub(super) fn push(&mut self, record: &Record, tree: &mut ProcessTree) {
        if let Self::Open { meter, .. } = self {
            tree.measure(meter, record);
        }
    }

    pub(super) fn meter(&mut self) -> Option<&mut CostMeter> {
        match self {
            Self::Open { meter, .. } => Some(meter),
            Self::Done(_) => None,
        }
    }

    /// When it is done with what is known by then; `None` where it goes on, or is done.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Open {
                ended: Some(ended), ..
            } => Some(*ended + RECORDS_COME_WITHIN),
            _ => None,
        }
    }

    /// Makes it done where everything is known that will be. `is_over` says that no more will be.
    pub(super) fn finish(&mut self, gpus: &[Gpu], is_over: bool) {
        let Self::Open {
            meter,
            ended: Some(_),
            ..
        } = self
        else {
            return;
        };
        if is_over || meter.is_final() || self.due().is_some_and(|due| due <= Instant::now()) {
            let Self::Open { meter, .. } = std::mem::replace(self, Self::Done(Box::default()))
            else {
                return;
            };
            *self = Self::Done(Box::new(meter.into_cost(gpus)));
        }
    }

    /// What it has found so far.
    pub(super) fn cost(&mut self, now_ms: f64, gpus: &[Gpu]) -> Cost {
        match self {
            Self::Open { meter, .. } => meter.cost(now_ms, gpus),
            Self::Done(cost) => (**cost).clone(),
        }
    }
}
