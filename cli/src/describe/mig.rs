//! The labels of MIG devices.

use gpumon_probe::model::{Gpu, MigDevice, MigInstance};

/// Returns the label by which containers select a device, such as `6:0` for the first MIG device of
/// GPU 6.
pub(crate) fn label(gpu: u32, device: &MigDevice) -> String {
    format!("{gpu}:{}", device.index)
}

pub(crate) fn device_of(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices
        .iter()
        .find(|device| device.instance == instance)
}
