//! How a part of a divided GPU is called.

use gpumon_probe::model::{Gpu, MigDevice, MigInstance};

/// `6:0` is the first part of GPU 6, as containers are given it.
pub(crate) fn label(gpu: u32, device: &MigDevice) -> String {
    format!("{gpu}:{}", device.index)
}

pub(crate) fn device_of(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices
        .iter()
        .find(|device| device.instance == instance)
}
