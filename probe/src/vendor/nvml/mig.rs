//! The MIG devices of a GPU, and their readings.

use super::{
    cached::Answers,
    error::absence,
    gpm::GpmReader,
    querier::Querier,
    to_model::{mig_device, mig_mode, mig_sample},
};
use crate::{
    model::{Absence, MigDevice, MigSample, Reading},
    vendor::ReadDepth,
    vendor::nvml::query::Query as Q,
};

/// The queries that are asked once for each MIG device.
const ONCE: [Q; 4] = [Q::Uuid, Q::Name, Q::MigInstance, Q::MigAttributes];

pub(super) struct MigReader {
    devices: Reading<Vec<Part>>,
}

/// A MIG device and the reader of its activity.
struct Part {
    identity: MigDevice,
    gpm: GpmReader,
}

impl MigReader {
    pub(super) fn new() -> Self {
        Self {
            devices: Reading::Absent(Absence::NoAnswer),
        }
    }

    /// Looks up the MIG devices. Returns `true` if they changed. If MIG is off, this costs 0.4 ms.
    pub(super) fn look(&mut self, querier: &mut Querier) -> bool {
        let known = self.identities();
        querier.ask(None, &[Q::MigMode]);
        let mode = mig_mode(Answers::new(&querier.cached(), 0));
        match mode {
            Reading::Absent(reason) => self.devices = Reading::Absent(reason),
            Reading::Now(mode) | Reading::Earlier { value: mode, .. } => {
                match if mode.current {
                    found(querier)
                } else {
                    Ok(Vec::new())
                } {
                    Err(reason) => self.devices = Reading::Absent(reason),
                    // If the devices have not changed, they keep the GPM sample from which the next
                    // activity is computed.
                    Ok(found) if self.devices.value().is_none() || found != known => {
                        let part = |identity| Part {
                            identity,
                            gpm: GpmReader::default(),
                        };
                        self.devices = Reading::Now(found.into_iter().map(part).collect());
                    }
                    Ok(_) => {}
                }
            }
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

    /// Reads the MIG devices. Also returns whether a device is gone, so that they must be looked up
    /// again.
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
                querier.ask(Some(index), &[Q::MemoryInfo]);
                let activity = match depth {
                    // GPM is the only source of a MIG device's activity.
                    ReadDepth::Full | ReadDepth::Unwatched { .. } => {
                        part.gpm.read(querier, Some(index)).activity
                    }
                    ReadDepth::OneShot | ReadDepth::Metered => Reading::Absent(Absence::WarmingUp),
                };
                mig_sample(
                    Answers::new(&querier.cached(), 0).of_mig_device(index),
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

/// Returns the existing MIG devices. NVML reports the maximum number, and slots without a device
/// are skipped.
fn found(querier: &mut Querier) -> Result<Vec<MigDevice>, Absence> {
    querier.forget_mig_devices();
    querier.ask(None, &[Q::MigDevices]);
    let answer = querier
        .cached()
        .get(None, Q::MigDevices)
        .map(|own| own.answer.clone());
    let listed = answer.ok_or(Absence::NoAnswer)?.map_err(absence)?;
    let indices = listed
        .numbers()
        .iter()
        .filter_map(|index| u32::try_from(*index).ok());
    Ok(indices
        .filter_map(|index| {
            querier.ask(Some(index), &ONCE);
            mig_device(
                Answers::new(&querier.cached(), 0).of_mig_device(index),
                index,
            )
        })
        .collect())
}
