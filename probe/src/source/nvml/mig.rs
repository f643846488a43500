//! The MIG devices of a GPU.

use nvml_wrapper::{Device, Nvml, error::NvmlError};

use super::{ask::Asker, error::absence, gpm::GpmReader, raw};
use crate::{
    model::{Absence, MemorySample, MigDevice, MigInstance, MigSample, Mode, Reading},
    source::Extent,
};

/// Remembers the devices between two looks at which there are.
pub(super) struct MigReader {
    /// As it was read at the last look.
    mode: Reading<Mode>,
    devices: Reading<Vec<Part>>,
}

/// One MIG device, and what its activity is reckoned from.
struct Part {
    identity: MigDevice,
    device: Device<'static>,
    gpm: GpmReader,
}

impl MigReader {
    pub(super) fn new() -> Self {
        Self { mode: Reading::Absent(Absence::NoAnswer), devices: Reading::Absent(Absence::NoAnswer) }
    }

    /// Looks which devices there are; true where they are others than before. It costs 0.4 ms where MIG is off.
    pub(super) fn look(&mut self, parent: &Device<'static>, asker: &mut Asker) -> bool {
        let known = self.identities();
        self.mode = asker
            .ask("MIG mode", || parent.mig_mode())
            .map(|mode| Mode { current: mode.current != 0, pending: mode.pending != 0 });
        match &self.mode {
            Reading::Absent(reason) => self.devices = Reading::Absent(reason.clone()),
            Reading::Now(mode) | Reading::Earlier { value: mode, .. } => {
                let found = if mode.current { parts(parent) } else { Vec::new() };
                let found_now: Vec<_> = found.iter().map(|part| part.identity.clone()).collect();
                // Those that stay keep the sample that their next activity is reckoned from.
                if self.devices.value().is_none() || found_now != known {
                    self.devices = Reading::Now(found);
                }
            }
        }
        self.identities() != known
    }

    /// Whether MIG is on, and will be after the next reset.
    pub(super) fn mode(&self) -> Reading<Mode> {
        self.mode.clone()
    }

    /// What never changes about them.
    pub(super) fn identities(&self) -> Vec<MigDevice> {
        self.devices.value().into_iter().flatten().map(|part| part.identity.clone()).collect()
    }

    /// Their readings, and whether one of them is gone, so that it is time for another look.
    pub(super) fn read(
        &mut self,
        nvml: &'static Nvml,
        parent: &Device<'static>,
        extent: Extent,
        asker: &mut Asker,
    ) -> (Reading<Vec<MigSample>>, bool) {
        let mut gone = false;
        let samples = match &mut self.devices {
            Reading::Absent(reason) => Reading::Absent(reason.clone()),
            Reading::Now(devices) | Reading::Earlier { value: devices, .. } => Reading::Now(
                devices
                    .iter_mut()
                    .map(|part| {
                        let memory = memory(&part.device);
                        gone |= memory.total_bytes.value().is_none();
                        let instance = part.identity.instance;
                        let activity = match extent {
                            Extent::Whole => part.gpm.read(nvml, parent, Some(instance.gpu_instance), asker).activity,
                            Extent::Glance | Extent::Metered => Reading::Absent(Absence::WarmingUp),
                        };
                        MigSample { uuid: part.identity.uuid.clone(), instance, memory, activity }
                    })
                    .collect(),
            ),
        };
        (samples, gone)
    }
}

/// Slots without a device are left out: NVML tells how many there can be, not how many there are.
fn parts(parent: &Device<'static>) -> Vec<Part> {
    let most = parent.mig_device_count().unwrap_or(0);
    let device = |index| {
        let device = parent.mig_device_by_index(index).ok()?;
        let identity = identity(&device, index).ok()?;
        Some(Part { identity, device, gpm: GpmReader::new() })
    };
    (0..most).filter_map(device).collect()
}

fn identity(device: &Device<'_>, index: u32) -> Result<MigDevice, NvmlError> {
    let (gpu_instance, compute_instance) = raw::mig_instance(device)?;
    let attributes = device.attributes();
    let number = |pick: fn(&nvml_wrapper::struct_wrappers::device::DeviceAttributes) -> u32| match &attributes {
        Ok(attributes) => Reading::Now(pick(attributes)),
        Err(error) => Reading::Absent(absence(error)),
    };
    Ok(MigDevice {
        index,
        uuid: device.uuid()?,
        instance: MigInstance { gpu_instance, compute_instance },
        profile: match device.name() {
            Ok(name) => profile(&name),
            Err(error) => Reading::Absent(absence(&error)),
        },
        multiprocessors: number(|attributes| attributes.multiprocessor_count),
        copy_engines: number(|attributes| attributes.shared_copy_engine_count),
        decoders: number(|attributes| attributes.shared_decoder_count),
        encoders: number(|attributes| attributes.shared_encoder_count),
    })
}

/// A MIG device's name ends in its profile: `NVIDIA H200 MIG 1g.18gb`.
fn profile(name: &str) -> Reading<String> {
    match name.split_once(" MIG ") {
        Some((_, profile)) => Reading::Now(profile.to_owned()),
        None => Reading::Absent(Absence::Unknown),
    }
}

/// Not through an [`Asker`], which would take what one device does not have for what none of them has.
fn memory(device: &Device<'_>) -> MemorySample {
    match device.memory_info() {
        Ok(memory) => MemorySample {
            total_bytes: Reading::Now(memory.total),
            used_bytes: Reading::Now(memory.used),
            reserved_bytes: Reading::Now(memory.reserved),
            free_bytes: Reading::Now(memory.free),
        },
        Err(error) => {
            let reason = absence(&error);
            MemorySample {
                total_bytes: Reading::Absent(reason.clone()),
                used_bytes: Reading::Absent(reason.clone()),
                reserved_bytes: Reading::Absent(reason.clone()),
                free_bytes: Reading::Absent(reason),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mig_devices_name_ends_in_its_profile() {
        assert_eq!(profile("NVIDIA H200 MIG 1g.18gb"), Reading::Now("1g.18gb".to_owned()));
        assert_eq!(profile("NVIDIA H200"), Reading::Absent(Absence::Unknown));
    }
}
