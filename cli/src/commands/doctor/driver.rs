//! Everything that the driver tells, read once, on a thread that is left behind where the driver hangs.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::{GpuDetails, GpuSample, Health, Inventory, Record, Sample},
    owner::CommandLines,
    vendor::SourceError,
};

use crate::options::SourceArgs;

/// How long the driver may take to start.
const OPENING: Duration = Duration::from_secs(10);
/// How long its GPUs may take to tell everything once it has.
const READING: Duration = Duration::from_secs(4);
/// Counters tell something from the second sample on, and the rates made of those from the third.
const SAMPLES: u32 = 4;

pub(super) enum Driver {
    Refused(SourceError),
    /// It has not come back.
    Silent,
    /// It answers, though not for every GPU perhaps.
    Answers(Box<Answer>),
}

pub(super) struct Answer {
    pub(super) inventory: Inventory,
    pub(super) sample: Option<Sample>,
    /// By index, of those that told them.
    pub(super) details: BTreeMap<u32, GpuDetails>,
}

impl Driver {
    pub(super) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answers(answer) => Some(answer),
            Self::Refused(_) | Self::Silent => None,
        }
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.inventory.platform.is_simulated)
    }
}

impl Answer {
    pub(super) fn gpus(&self) -> impl Iterator<Item = &GpuSample> {
        self.sample.iter().flat_map(|sample| &sample.gpus)
    }

    /// Those that answer, with what changes slowly about them where that was told.
    pub(super) fn well(&self) -> impl Iterator<Item = (&GpuSample, Option<&GpuDetails>)> {
        let well = self.gpus().filter(|gpu| gpu.health == Health::Ok);
        well.map(|gpu| (gpu, self.details.get(&gpu.index)))
    }

    fn is_complete(&self) -> bool {
        self.sample.is_some() && self.well().all(|(_, details)| details.is_some())
    }
}

/// Reads until all is told or the time is over.
pub(super) fn read(source: &SourceArgs) -> Driver {
    let telling = source.records(CommandLines::All);
    let mut answer = match telling.recv_timeout(OPENING) {
        Ok(Ok(Record::Inventory(inventory))) => Answer {
            inventory,
            sample: None,
            details: BTreeMap::new(),
        },
        Ok(Err(error)) => return Driver::Refused(error),
        // The inventory comes first, so that this is a driver that hangs.
        Ok(Ok(_)) | Err(_) => return Driver::Silent,
    };
    let deadline = Instant::now() + READING;
    let mut samples = 0;
    while samples < SAMPLES || !answer.is_complete() {
        match telling.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(Record::Inventory(inventory))) => answer.inventory = inventory,
            Ok(Ok(Record::Sample(sample))) => {
                samples += 1;
                answer.sample = Some(sample);
            }
            Ok(Ok(Record::Details(details))) => {
                answer.details.insert(details.index, details);
            }
            Ok(Ok(Record::Trace(_) | Record::Answers(_) | Record::Event(_))) => {}
            Ok(Err(_)) | Err(_) => break,
        }
    }
    Driver::Answers(Box::new(answer))
}
