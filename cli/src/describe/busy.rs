//! Formats the utilization of a GPU as a single number.

use gpumon_probe::model::{Activity, GpuSample, Reading};

use crate::terminal::units::ABSENT;

/// The width of a utilization with the label `SM`.
pub(crate) const BUSY_WIDTH_WITH_SM: usize = "SM 100 %".len();
pub(crate) const BUSY_WIDTH: usize = "100 %".len();

/// Formats the utilization of a GPU, such as `93 %`: the percentage of time in which any kernel
/// ran. In MIG mode, the driver does not report this percentage, and the SM activity is returned
/// instead, such as `SM 45 %`.
pub(crate) fn format_utilization(gpu: &GpuSample) -> String {
    match (
        gpu.utilization.gpu_percent.value(),
        read_sm_percent(gpu.activity.value()),
    ) {
        (Some(percent), _) => format!("{percent:.0} %"),
        (None, Some(percent)) => format_sm_activity(percent),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Formats the utilization of a part of a GPU: the SM activity of a MIG device, such as `SM 45 %`,
/// or the percentage of time in which an AMD partition was busy, such as `45 %`.
pub(crate) fn format_part_utilization(activity: &Reading<Activity>) -> String {
    let activity = activity.value();
    let graphics = activity.and_then(|activity| activity.graphics_percent.value());
    match (read_sm_percent(activity), graphics) {
        (Some(percent), _) => format_sm_activity(percent),
        (None, Some(percent)) => format!("{percent:.0} %"),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns `true` if SM activity is shown instead of the GPU's utilization, because the utilization
/// is absent.
pub(crate) fn shows_sm_activity(gpu: &GpuSample) -> bool {
    gpu.utilization.gpu_percent.value().is_none() && read_sm_percent(gpu.activity.value()).is_some()
}

fn format_sm_activity(percent: f64) -> String {
    format!("SM {percent:.0} %")
}

fn read_sm_percent(activity: Option<&Activity>) -> Option<f64> {
    activity?.sm_percent.value().copied()
}
