//! NVLinks are down that should be up.
//!
//! Some links of a board are not connected: a bridge between two boards connects 12 of 18. A link
//! should therefore be up if it was up before, if it reports the device at its other end, or if the
//! GPU is connected to switches, which use all links.

use std::collections::BTreeSet;

use super::{
    hysteresis::Observation,
    rule::{Rule, View},
};
use crate::model::{ConditionKind, NvLink, NvLinkRemote};

/// The links that have been up. They are kept while a GPU is lost, because a GPU that returns
/// should have them again.
#[derive(Default)]
pub(super) struct NvLinkDown {
    were_up: BTreeSet<u32>,
}

impl Rule for NvLinkDown {
    fn observe(&mut self, view: &View<'_>, _: bool) -> Observation<ConditionKind> {
        // MIG devices do not communicate with other GPUs, so that links may be off.
        if view
            .detail(|details| &details.modes.mig)
            .is_some_and(|mig| mig.current)
        {
            self.were_up.clear();
            return Observation::Inactive;
        }
        let Some(links) = view.detail(|details| &details.nvlinks) else {
            return Observation::Unknown;
        };
        let is = |link: &NvLink, active: bool| view.fresh(&link.active) == Some(&active);
        let up: Vec<&NvLink> = links.iter().filter(|link| is(link, true)).collect();
        self.were_up.extend(up.iter().map(|link| link.link));
        let has_switch = up
            .iter()
            .any(|link| view.fresh(&link.remote) == Some(&NvLinkRemote::Switch));
        let is_joined = |link: &NvLink| {
            let is_named = !up.is_empty() && view.fresh(&link.remote_pci_bus_id).is_some();
            self.were_up.contains(&link.link) || has_switch || is_named
        };
        let down: Vec<u32> = links
            .iter()
            .filter(|link| is(link, false) && is_joined(link))
            .map(|link| link.link)
            .collect();
        if down.is_empty() {
            let is_known = links.iter().all(|link| view.fresh(&link.active).is_some());
            return if is_known {
                Observation::Inactive
            } else {
                Observation::Unknown
            };
        }
        Observation::Active(ConditionKind::NvLinkDown { links: down })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_timeline::{TestTimeline, event, lost},
        *,
    };
    use crate::model::{Absence, GpuDetails, Mode, Reading};

    /// Sets links that are up, down or not known, all connected to `remote`.
    fn links(states: &[Option<bool>], remote: Option<NvLinkRemote>) -> impl Fn(&mut GpuDetails) {
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
    fn a_link_that_was_up_is_missed() {
        let mut timeline = TestTimeline::new();
        timeline.show_details(60, links(&[UP, UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(timeline.take_events(), [], "the third leads nowhere");
        timeline.show_details(60, links(&[UP, DOWN, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(timeline.take_events(), [event(66, "+nv_link_down")]);
        assert_eq!(
            timeline.only().kind,
            ConditionKind::NvLinkDown { links: vec![1] }
        );
        timeline.show_details(1, links(&[DOWN, DOWN, DOWN], None));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::NvLinkDown { links: vec![0, 1] }
        );
        assert!(
            timeline.only().text.starts_with("NVLinks 0 and 1 down"),
            "{}",
            timeline.only().text
        );
        timeline.show_details(60, links(&[UP, UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(timeline.take_events(), [event(132, "-nv_link_down")]);
    }

    #[test]
    fn it_is_missed_also_after_the_gpu_was_lost() {
        let mut timeline = TestTimeline::new();
        timeline.show_details(1, links(&[UP, UP], Some(NvLinkRemote::Gpu)));
        timeline
            .show(10, lost)
            .show_details(30, links(&[UP, DOWN], Some(NvLinkRemote::Gpu)));
        assert_eq!(timeline.take_events(), [event(17, "+nv_link_down")]);
    }

    #[test]
    fn beside_links_to_switches_every_link_should_be_up() {
        let mut timeline = TestTimeline::new();
        timeline.show_details(60, links(&[UP, UP, DOWN], Some(NvLinkRemote::Switch)));
        assert_eq!(
            timeline.only().kind,
            ConditionKind::NvLinkDown { links: vec![2] }
        );
        let mut timeline = TestTimeline::new();
        timeline.show_details(60, |details| {
            links(&[UP, DOWN], Some(NvLinkRemote::Gpu))(details);
            let Reading::Now(links) = &mut details.nvlinks else {
                panic!()
            };
            links[1].remote_pci_bus_id = Reading::Now("00000000:3B:00.0".into());
        });
        assert_eq!(
            timeline.only().kind,
            ConditionKind::NvLinkDown { links: vec![1] }
        );
    }

    #[test]
    fn no_links_unused_links_and_unknown_links_are_none_that_are_down() {
        for states in [&[][..], &[DOWN, DOWN], &[UP, None]] {
            let mut timeline = TestTimeline::new();
            timeline.show_details(60, links(states, Some(NvLinkRemote::Switch)));
            assert_eq!(timeline.take_events(), [], "{states:?}");
        }
    }

    #[test]
    fn with_mig_links_may_rest() {
        let mut timeline = TestTimeline::new();
        timeline.show_details(1, links(&[UP, UP], Some(NvLinkRemote::Switch)));
        timeline.show_details(60, |details| {
            links(&[DOWN, DOWN], None)(details);
            details.modes.mig = Reading::Now(Mode {
                current: true,
                pending: true,
            });
        });
        assert_eq!(timeline.take_events(), []);
    }
}
