//! One complete reading of the driver, on a thread that is abandoned if the driver hangs.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::{GpuDetails, GpuSample, Health, Inventory, Record, Sample, Vendor},
    owner::CommandLines,
    vendor::SourceError,
};

use crate::options::SourceArgs;

/// The time limit for all GPUs to report everything once the driver has started.
const READING: Duration = Duration::from_secs(4);

pub(crate) enum Driver {
    Refused(SourceError),
    /// The driver does not respond.
    Silent,
    /// The driver responds, though perhaps not for every GPU.
    Answers(Box<Answer>),
}

pub(crate) struct Answer {
    pub(crate) inventory: Inventory,
    pub(crate) sample: Option<Sample>,
    /// The details of GPUs by index.
    pub(crate) details: BTreeMap<u32, GpuDetails>,
}

impl Driver {
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answers(answer) => Some(answer),
            Self::Refused(_) | Self::Silent => None,
        }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.inventory.platform.is_simulated)
    }

    /// Returns `true` if NVIDIA's driver responds, or if no driver does: NVIDIA's may be the
    /// missing one.
    pub(crate) fn uses_nvidia(&self) -> bool {
        self.answer().is_none_or(|answer| {
            let platform = &answer.inventory.platform;
            platform.find_driver(Vendor::Nvidia).is_some()
        })
    }
}

impl Answer {
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &GpuSample> {
        self.sample.iter().flat_map(|sample| &sample.gpus)
    }

    /// Returns the healthy GPUs, with their details if known.
    pub(crate) fn well(&self) -> impl Iterator<Item = (&GpuSample, Option<&GpuDetails>)> {
        let well = self.gpus().filter(|gpu| gpu.health == Health::Ok);
        well.map(|gpu| (gpu, self.details.get(&gpu.index)))
    }

    /// Returns `true` if a sample has arrived, and details of every healthy GPU.
    pub(crate) fn is_complete(&self) -> bool {
        self.sample.is_some() && self.well().all(|(_, details)| details.is_some())
    }
}

/// Reads records until `is_enough` returns `true` or the time is over. `opening` is the time limit
/// for the driver to start. `is_enough` is called after each record, with `true` for a sample.
pub(crate) fn read(
    source: &SourceArgs,
    commands: CommandLines,
    opening: Duration,
    mut is_enough: impl FnMut(&Answer, bool) -> bool,
) -> Driver {
    let records = source.records(commands);
    let mut answer = match records.recv_timeout(opening) {
        Ok(Ok(Record::Inventory(inventory))) => Answer {
            inventory,
            sample: None,
            details: BTreeMap::new(),
        },
        Ok(Err(error)) => return Driver::Refused(error),
        // The inventory always comes first, so anything else means that the driver hangs.
        Ok(Ok(_)) | Err(_) => return Driver::Silent,
    };
    let deadline = Instant::now() + READING;
    while let Ok(Ok(record)) =
        records.recv_timeout(deadline.saturating_duration_since(Instant::now()))
    {
        let is_sample = matches!(record, Record::Sample(_));
        match record {
            Record::Inventory(inventory) => answer.inventory = inventory,
            Record::Sample(sample) => answer.sample = Some(sample),
            Record::Details(details) => drop(answer.details.insert(details.index, details)),
            Record::Trace(_) | Record::Answers(_) | Record::Event(_) => {}
        }
        if is_enough(&answer, is_sample) {
            break;
        }
    }
    Driver::Answers(Box::new(answer))
}
