//! How busy a GPU is, in one figure.

use gpumon_probe::model::{Activity, GpuSample, Reading};

use crate::terminal::units::ABSENT;

/// The columns of what [`busy`] says with a mark, and without.
pub(crate) const BUSY_WIDTH_WITH_SM: usize = "SM 100 %".len();
pub(crate) const BUSY_WIDTH: usize = "100 %".len();

/// `93 %`: the time in which anything ran. The driver does not tell it of a GPU that is divided:
/// there it is `SM 45 %`, the share of the multiprocessors that the hardware counts as active.
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

/// Returns the use of a part of a GPU: that of its multiprocessors, or else `45 %`, the time in
/// which the dies of a partition of AMD were busy.
pub(crate) fn of_part(activity: &Reading<Activity>) -> String {
    let activity = activity.value();
    let graphics = activity.and_then(|activity| activity.graphics_percent.value());
    match (sm(activity), graphics) {
        (Some(percent), _) => from_sm_activity(percent),
        (None, Some(percent)) => format!("{percent:.0} %"),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Whether a GPU's utilization is absent, and its multiprocessors stand in for it.
pub(crate) fn is_sm_activity(gpu: &GpuSample) -> bool {
    gpu.utilization.gpu_percent.value().is_none() && sm(gpu.activity.value()).is_some()
}

fn from_sm_activity(percent: f64) -> String {
    format!("SM {percent:.0} %")
}

fn sm(activity: Option<&Activity>) -> Option<f64> {
    activity?.sm_percent.value().copied()
}
