//! Labels of MIG devices.

use gpumon_probe::model::{Gpu, MigDevice, MigInstance};

/// Returns the label of a MIG device, such as `6:0` for the first MIG device of GPU 6. Containers
/// select devices by this label.
pub(crate) fn format_mig_label(gpu: u32, device: &MigDevice) -> String {
    format!("{gpu}:{}", device.index)
}

pub(crate) fn find_mig_device(gpu: &Gpu, instance: MigInstance) -> Option<&MigDevice> {
    gpu.mig_devices
        .iter()
        .find(|device| device.instance == instance)
}
