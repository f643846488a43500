//! A GPU's MIG devices and their readings.

use super::{
    error::to_absence,
    gpm::GpmReader,
    querier::Querier,
    query::Query as Q,
    to_model::{TimedAnswers, make_mig_device, make_mig_sample, read_mode},
};
use crate::{
    model::{Absence, MigDevice, MigSample, Reading},
    vendor::ReadDepth,
};

/// The queries that run only once for each MIG device.
const CONSTANT_QUERIES: [Q; 4] = [Q::Uuid, Q::Name, Q::MigInstance, Q::MigAttributes];

pub(super) struct MigReader {
    devices: Reading<Vec<MigDeviceReader>>,
}

/// A MIG device, and the reader for its activity.
struct MigDeviceReader {
    identity: MigDevice,
    gpm: GpmReader,
}

impl MigReader {
    pub(super) fn new() -> Self {
        Self {
            devices: Reading::Absent(Absence::NoAnswer),
        }
    }

    /// Looks up the MIG devices. Returns `true` if the devices have changed. If MIG mode is off,
    /// this call costs 0.4 ms.
    pub(super) fn update(&mut self, querier: &mut Querier) -> bool {
        let known = self.identities();
        querier.run_queries(None, &[Q::MigMode]);
        let mode = read_mode(TimedAnswers::new(&querier.read_cache(), 0), Q::MigMode);
        let found = match mode {
            Reading::Absent(reason) => Err(reason),
            Reading::Now(mode) | Reading::Earlier { value: mode, .. } if mode.current => {
                find_devices(querier)
            }
            Reading::Now(_) | Reading::Earlier { .. } => Ok(Vec::new()),
        };
        match found {
            Err(reason) => self.devices = Reading::Absent(reason),
            // If the devices have not changed, their readers are kept, because the next activity of
            // a device is calculated from the last GPM sample in its reader.
            Ok(found) if self.devices.value().is_none() || found != known => {
                let part = |identity| MigDeviceReader {
                    identity,
                    gpm: GpmReader::default(),
                };
                self.devices = Reading::Now(found.into_iter().map(part).collect());
            }
            Ok(_) => {}
        }
        self.identities() != known
    }

    pub(super) fn identities(&self) -> Vec<MigDevice> {
        self.devices
            .value()
            .into_iter()
            .flatten()
            .map(|part| part.identity.clone())
            .collect()
    }

    /// Reads the MIG devices. The second value of the result is `true` if a device has disappeared.
    /// The caller must then look up the devices again.
    pub(super) fn read(
        &mut self,
        querier: &mut Querier,
        depth: ReadDepth,
    ) -> (Reading<Vec<MigSample>>, bool) {
        let parts = match &mut self.devices {
            Reading::Absent(reason) => return (Reading::Absent(reason.clone()), false),
            Reading::Now(parts) | Reading::Earlier { value: parts, .. } => parts,
        };
        let samples: Vec<_> = parts
            .iter_mut()
            .map(|part| {
                let index = part.identity.index;
                querier.run_queries(Some(index), &[Q::MemoryInfo]);
                let activity = match depth {
                    // GPM is the only source of a MIG device's activity.
                    ReadDepth::Full | ReadDepth::Unwatched { .. } => {
                        part.gpm.read(querier, Some(index)).activity
                    }
                    ReadDepth::OneShot | ReadDepth::Metered => Reading::Absent(Absence::WarmingUp),
                };
                make_mig_sample(
                    TimedAnswers::new(&querier.read_cache(), 0).for_mig_device(index),
                    &part.identity,
                    activity,
                )
            })
            .collect();
        let gone = samples
            .iter()
            .any(|sample| sample.memory.total_bytes.value().is_none());
        (Reading::Now(samples), gone)
    }
}

/// Returns the existing MIG devices. A listed device that no longer exists is skipped.
fn find_devices(querier: &mut Querier) -> Result<Vec<MigDevice>, Absence> {
    querier.forget_mig_devices();
    querier.run_queries(None, &[Q::MigDevices]);
    let answer = querier
        .read_cache()
        .get(None, Q::MigDevices)
        .map(|own| own.answer.clone());
    let listed = answer.ok_or(Absence::NoAnswer)?.map_err(to_absence)?;
    let indices = listed
        .numbers()
        .iter()
        .filter_map(|index| u32::try_from(*index).ok());
    Ok(indices
        .filter_map(|index| {
            querier.run_queries(Some(index), &CONSTANT_QUERIES);
            make_mig_device(
                TimedAnswers::new(&querier.read_cache(), 0).for_mig_device(index),
                index,
            )
        })
        .collect())
}
