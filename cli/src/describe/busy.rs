//! The utilization of a GPU in one figure.

use gpumon_probe::model::{Activity, GpuSample, Reading};

use crate::terminal::units::ABSENT;

/// The width of the utilization's text with the label `SM`.
pub(crate) const BUSY_WIDTH_WITH_SM: usize = "SM 100 %".len();
pub(crate) const BUSY_WIDTH: usize = "100 %".len();

/// Returns the percentage of time in which anything ran, such as `93 %`. The driver does not report
/// it for a GPU in MIG mode, so `SM 45 %` is returned there: the SM activity counted by the
/// hardware.
pub(crate) fn busy(gpu: &GpuSample) -> String {
    match (
        gpu.utilization.gpu_percent.value(),
        sm(gpu.activity.value()),
    ) {
        (Some(percent), _) => format!("{percent:.0} %"),
        (None, Some(percent)) => from_sm_activity(percent),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns the utilization of a MIG device: its SM activity, or for an AMD partition, the
/// percentage of time in which its dies were busy, such as `45 %`.
pub(crate) fn of_part(activity: &Reading<Activity>) -> String {
    let activity = activity.value();
    let graphics = activity.and_then(|activity| activity.graphics_percent.value());
    match (sm(activity), graphics) {
        (Some(percent), _) => from_sm_activity(percent),
        (None, Some(percent)) => format!("{percent:.0} %"),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns `true` if a GPU's utilization is absent and its SM activity replaces it.
pub(crate) fn is_sm_activity(gpu: &GpuSample) -> bool {
    gpu.utilization.gpu_percent.value().is_none() && sm(gpu.activity.value()).is_some()
}

fn from_sm_activity(percent: f64) -> String {
    format!("SM {percent:.0} %")
}

fn sm(activity: Option<&Activity>) -> Option<f64> {
    activity?.sm_percent.value().copied()
}
