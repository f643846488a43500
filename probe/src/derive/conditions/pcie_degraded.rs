//! The condition that the PCIe link has too few lanes.
//!
//! The link's generation is not checked: it is low while the GPU is idle, and the driver reports
//! changes late.

use super::{hysteresis::Observation, rule::View};
use crate::model::ConditionKind;

/// The minimum utilization at which a GPU's lanes are checked, because some boards use fewer lanes
/// while idle.
const BUSY_PERCENT: f64 = 20.0;

pub(super) fn observe(view: &View<'_>, _: bool) -> Observation<ConditionKind> {
    let width = view
        .fresh_value(&view.sample.pcie.width)
        .filter(|width| **width > 0);
    let Some((&width, &max_width)) = width.zip(view.board.pcie_max_width.value()) else {
        return Observation::Unknown;
    };
    if width >= max_width {
        return Observation::Inactive;
    }
    let gpu_percent = view
        .fresh_value(&view.sample.utilization.gpu_percent)
        .copied();
    let sm_percent = view.fresh_activity(|activity| &activity.sm_percent);
    match gpu_percent.into_iter().chain(sm_percent).reduce(f64::max) {
        None => Observation::Unknown,
        Some(percent) if percent < BUSY_PERCENT => Observation::Inconclusive,
        Some(_) => Observation::Active(ConditionKind::PcieDegraded { width, max_width }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::{
        derive::examples,
        model::{GpuSample, Reading},
    };

    fn set_pcie_link(width: u32, gpu_percent: f64) -> impl Fn(&mut GpuSample) {
        move |sample| {
            examples::set_gpu_use(sample, gpu_percent, gpu_percent);
            sample.pcie.width = Reading::Now(width);
        }
    }

    #[test]
    fn busy_gpu_with_few_lanes_is_degraded() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(60, set_pcie_link(8, 90.0));
        assert_eq!(
            timeline.take_events(),
            [expected_event(11, "+pcie_degraded")]
        );
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::PcieDegraded {
                width: 8,
                max_width: 16
            }
        );
        timeline.advance_with_sample(600, set_pcie_link(8, 0.0));
        assert_eq!(
            timeline.take_events(),
            [],
            "it is still true while nothing runs"
        );
        timeline.advance_with_sample(60, set_pcie_link(16, 0.0));
        assert_eq!(
            timeline.take_events(),
            [expected_event(671, "-pcie_degraded")]
        );
    }

    #[test]
    fn idle_gpu_may_use_fewer_lanes() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(600, set_pcie_link(4, 0.0))
            .advance_with_sample(5, set_pcie_link(4, 90.0))
            .advance_with_sample(60, set_pcie_link(16, 90.0));
        assert_eq!(timeline.take_events(), []);
        timeline.board.pcie_max_generation = Reading::Now(5);
        timeline.advance_with_sample(600, set_pcie_link(16, 90.0));
        assert_eq!(timeline.take_events(), []);
    }
}
