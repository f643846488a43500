//! Reads the driver once, on a thread that is abandoned if the driver hangs.

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

/// The maximum time for all GPUs to report everything after the driver has started.
const READ_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) enum DriverState {
    Refused(SourceError),
    /// The driver has not responded.
    Silent,
    /// The driver has responded, but possibly not for every GPU.
    Answers(Box<DriverAnswer>),
}

pub(crate) struct DriverAnswer {
    pub(crate) inventory: Inventory,
    pub(crate) sample: Option<Sample>,
    /// The details of the GPUs, by GPU index.
    pub(crate) details: BTreeMap<u32, GpuDetails>,
}

impl DriverState {
    pub(crate) fn answer(&self) -> Option<&DriverAnswer> {
        match self {
            Self::Answers(answer) => Some(answer),
            Self::Refused(_) | Self::Silent => None,
        }
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.inventory.platform.is_simulated)
    }

    /// Returns `true` if NVIDIA's driver responds. Also returns `true` if no driver responds,
    /// because NVIDIA's driver may be the missing one.
    pub(crate) fn uses_nvidia(&self) -> bool {
        self.answer().is_none_or(|answer| {
            let platform = &answer.inventory.platform;
            platform.find_driver(Vendor::Nvidia).is_some()
        })
    }
}

impl DriverAnswer {
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &GpuSample> {
        self.sample.iter().flat_map(|sample| &sample.gpus)
    }

    /// Returns the healthy GPUs, each with its details if they have arrived.
    pub(crate) fn healthy_gpus(&self) -> impl Iterator<Item = (&GpuSample, Option<&GpuDetails>)> {
        let well = self.gpus().filter(|gpu| gpu.health == Health::Ok);
        well.map(|gpu| (gpu, self.details.get(&gpu.index)))
    }

    /// Returns `true` if a sample and the details of every healthy GPU have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.sample.is_some() && self.healthy_gpus().all(|(_, details)| details.is_some())
    }
}

/// Reads records until `is_enough` returns `true` or the time limit is reached. `opening` is the
/// maximum time for the driver to start. `is_enough` is called after each record; its second
/// argument is `true` for a sample.
pub(crate) fn read_driver(
    source: &SourceArgs,
    commands: CommandLines,
    opening: Duration,
    mut is_enough: impl FnMut(&DriverAnswer, bool) -> bool,
) -> DriverState {
    let records = source.start_reading(commands);
    let mut answer = match records.recv_timeout(opening) {
        Ok(Ok(Record::Inventory(inventory))) => DriverAnswer {
            inventory,
            sample: None,
            details: BTreeMap::new(),
        },
        Ok(Err(error)) => return DriverState::Refused(error),
        // The inventory always comes first. Any other result means that the driver hangs.
        Ok(Ok(_)) | Err(_) => return DriverState::Silent,
    };
    let deadline = Instant::now() + READ_TIMEOUT;
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
    DriverState::Answers(Box::new(answer))
}
