//! The conditions that a GPU's links are degraded: NVLinks that are down but should be up, and a
//! PCIe link with too few lanes.

use std::collections::BTreeSet;

use super::rule::{Observation, Rule, View};
use crate::model::{ConditionKind, NvLink, NvLinkRemote};

/// The minimum utilization at which a GPU's lanes are checked, because some boards use fewer lanes
/// while idle.
const BUSY_PERCENT: f64 = 20.0;

/// The rule for NVLinks that are down but should be up.
///
/// Some links of a board are not connected: a bridge between two boards connects 12 of 18 links. A
/// link should therefore be up if it was up before, if it reports the device at its other end, or
/// if the GPU is connected to switches, which use all links.
#[derive(Default)]
pub(super) struct NvLinkDown {
    /// The links that have been up. The list is kept while a GPU is lost, because the links should
    /// be up again when the GPU returns.
    were_up: BTreeSet<u32>,
}

impl Rule for NvLinkDown {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        // MIG devices do not communicate with other GPUs, so their GPU's links may be down.
        if view
            .fresh_detail(|details| &details.modes.mig)
            .is_some_and(|mig| mig.current)
        {
            self.were_up.clear();
            return Observation::Inactive;
        }
        let Some(links) = view.fresh_detail(|details| &details.nvlinks) else {
            return Observation::Unknown;
        };
        let is = |link: &NvLink, active: bool| view.fresh_value(&link.active) == Some(&active);
        let up: Vec<&NvLink> = links.iter().filter(|link| is(link, true)).collect();
        self.were_up.extend(up.iter().map(|link| link.link));
        let has_switch = up
            .iter()
            .any(|link| view.fresh_value(&link.remote) == Some(&NvLinkRemote::Switch));
        let is_joined = |link: &NvLink| {
            let is_named = !up.is_empty() && view.fresh_value(&link.remote_pci_bus_id).is_some();
            self.were_up.contains(&link.link) || has_switch || is_named
        };
        let down: Vec<u32> = links
            .iter()
            .filter(|link| is(link, false) && is_joined(link))
            .map(|link| link.link)
            .collect();
        if down.is_empty() {
            let is_known = links
                .iter()
                .all(|link| view.fresh_value(&link.active).is_some());
            return if is_known {
                Observation::Inactive
            } else {
                Observation::Unknown
            };
        }
        Observation::Active(ConditionKind::NvLinkDown { links: down })
    }
}

/// Observes whether the PCIe link has too few lanes. The link's generation is not checked, because
/// it is low while the GPU is idle, and the driver reports changes late.
pub(super) fn observe_pcie_lanes(view: &View<'_>, _: bool) -> Observation<ConditionKind> {
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
    use super::{
        super::test_timeline::{TestTimeline, expected_event, set_lost},
        *,
    };
    use crate::model::{Absence, GpuDetails, Mode, Reading};

    /// Sets links that are up, down or unknown. All are connected to `remote`.
    fn set_links(
        states: &[Option<bool>],
        remote: Option<NvLinkRemote>,
    ) -> impl Fn(&mut GpuDetails) {
        let absent = || Reading::Absent(Absence::NotSupported);
        let link = move |(number, active): (usize, &Option<bool>)| NvLink {
            link: number as u32,
            active: active.map_or(Reading::Absent(Absence::NoAnswer), Reading::Now),
            version: Reading::Absent(Absence::NotSupported),
            bytes_per_second: Reading::Absent(Absence::NotSupported),
            remote: remote
                .filter(|_| *active == Some(true))
                .map_or(Reading::Absent(Absence::Unknown), Reading::Now),
            remote_pci_bus_id: Reading::Absent(Absence::Unknown),
            tx_bytes_total: absent(),
            rx_bytes_total: absent(),
            errors_total: absent(),
            replays_total: absent(),
            recoveries_total: absent(),
            crc_errors_total: absent(),
        };
        let links: Vec<NvLink> = states.iter().enumerate().map(link).collect();
        move |details| details.nvlinks = Reading::Now(links.clone())
    }

    const UP: Option<bool> = Some(true);
    const DOWN: Option<bool> = Some(false);

    #[test]
    fn link_that_goes_down_is_reported() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(60, set_links(&[UP, UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(timeline.take_events(), [], "the third leads nowhere");
        timeline.advance_with_details(60, set_links(&[UP, DOWN, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(
            timeline.take_events(),
            [expected_event(66, "+nv_link_down")]
        );
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::NvLinkDown { links: vec![1] }
        );
        timeline.advance_with_details(1, set_links(&[DOWN, DOWN, DOWN], None));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::NvLinkDown { links: vec![0, 1] }
        );
        assert!(
            timeline
                .only_condition()
                .text
                .starts_with("NVLinks 0 and 1 down"),
            "{}",
            timeline.only_condition().text
        );
        timeline.advance_with_details(60, set_links(&[UP, UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(
            timeline.take_events(),
            [expected_event(132, "-nv_link_down")]
        );
    }

    #[test]
    fn lost_gpu_should_regain_its_links() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(1, set_links(&[UP, UP], Some(NvLinkRemote::Gpu)));
        timeline
            .advance_with_sample(10, set_lost)
            .advance_with_details(30, set_links(&[UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(
            timeline.take_events(),
            [expected_event(17, "+nv_link_down")]
        );
    }

    #[test]
    fn link_with_known_remote_is_expected_up() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(60, set_links(&[UP, UP, DOWN], Some(NvLinkRemote::Switch)));
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::NvLinkDown { links: vec![2] }
        );
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(60, |details| {
            set_links(&[UP, DOWN], Some(NvLinkRemote::Gpu))(details);
            let Reading::Now(links) = &mut details.nvlinks else {
                panic!()
            };
            links[1].remote_pci_bus_id = Reading::Now("00000000:3B:00.0".into());
        });
        assert_eq!(
            timeline.only_condition().kind,
            ConditionKind::NvLinkDown { links: vec![1] }
        );
    }

    #[test]
    fn unused_and_unknown_links_are_not_reported() {
        for states in [&[][..], &[DOWN, DOWN], &[UP, None]] {
            let mut timeline = TestTimeline::new();
            timeline.advance_with_details(60, set_links(states, Some(NvLinkRemote::Switch)));
            assert_eq!(timeline.take_events(), [], "{states:?}");
        }
    }

    #[test]
    fn inactive_links_of_mig_gpu_are_not_reported() {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_details(1, set_links(&[UP, UP], Some(NvLinkRemote::Switch)));
        timeline.advance_with_details(60, |details| {
            set_links(&[DOWN, DOWN], None)(details);
            details.modes.mig = Reading::Now(Mode {
                current: true,
                pending: true,
            });
        });
        assert_eq!(timeline.take_events(), []);
    }
}

#[cfg(test)]
mod pcie_degraded_tests {
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
    fn idle_gpu_with_few_lanes_is_not_degraded() {
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
