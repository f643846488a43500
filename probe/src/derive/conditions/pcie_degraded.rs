//! The PCIe link has too few lanes.
//!
//! The link's generation is not checked: it is low while the GPU is idle, and the driver is slow to
//! report a change.

use super::{hysteresis::Observation, rule::View};
use crate::model::ConditionKind;

/// The minimum utilization of a GPU whose lanes are checked, because some boards use fewer lanes
/// while idle.
const BUSY_PERCENT: f64 = 20.0;

pub(super) fn observe(view: &View<'_>, _: bool) -> Observation<ConditionKind> {
    let width = view
        .fresh(&view.sample.pcie.width)
        .filter(|width| **width > 0);
    let Some((&width, &max_width)) = width.zip(view.board.pcie_max_width.value()) else {
        return Observation::Unknown;
    };
    if width >= max_width {
        return Observation::Inactive;
    }
    let gpu_percent = view.fresh(&view.sample.utilization.gpu_percent).copied();
    let sm_percent = view.activity(|activity| &activity.sm_percent);
    match gpu_percent.into_iter().chain(sm_percent).reduce(f64::max) {
        None => Observation::Unknown,
        Some(percent) if percent < BUSY_PERCENT => Observation::Inconclusive,
        Some(_) => Observation::Active(ConditionKind::PcieDegraded { width, max_width }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::{
        derive::examples,
        model::{GpuSample, Reading},
    };

    fn link(width: u32, gpu_percent: f64) -> impl Fn(&mut GpuSample) {
        move |sample| {
            examples::use_gpu(sample, gpu_percent, gpu_percent);
            sample.pcie.width = Reading::Now(width);
        }
    }

    #[test]
    fn a_busy_gpu_with_few_lanes_is_degraded_until_it_has_all() {
        let mut timeline = TestTimeline::new();
        timeline.show(60, link(8, 90.0));
        assert_eq!(timeline.take_events(), [event(11, "+pcie_degraded")]);
        assert_eq!(
            timeline.only().kind,
            ConditionKind::PcieDegraded {
                width: 8,
                max_width: 16
            }
        );
        timeline.show(600, link(8, 0.0));
        assert_eq!(
            timeline.take_events(),
            [],
            "it is still true while nothing runs"
        );
        timeline.show(60, link(16, 0.0));
        assert_eq!(timeline.take_events(), [event(671, "-pcie_degraded")]);
    }

    #[test]
    fn lanes_and_generation_may_rest_while_nothing_runs() {
        let mut timeline = TestTimeline::new();
        timeline
            .show(600, link(4, 0.0))
            .show(5, link(4, 90.0))
            .show(60, link(16, 90.0));
        assert_eq!(timeline.take_events(), []);
        timeline.board.pcie_max_generation = Reading::Now(5);
        timeline.show(600, link(16, 90.0));
        assert_eq!(timeline.take_events(), []);
    }
}
