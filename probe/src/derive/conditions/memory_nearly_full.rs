//! Little memory is free.

use super::{hysteresis::Observation, rule::View};
use crate::model::ConditionKind;

const GIB: u64 = 1 << 30;

/// A bound, which the free memory is below if it is less than this share of the total and less than
/// this number of bytes.
type Bound = (f64, u64);

/// The bound below which the condition begins.
const NEARLY_FULL: Bound = (0.03, 2 * GIB);

/// The bound below which the condition does not weaken.
const STILL: Bound = (0.05, 3 * GIB);

/// The bound above which the condition ends at once, because the next allocation will not bring it
/// back.
const NEAR: Bound = (0.1, 6 * GIB);

/// The minimum duration, so that short allocations are ignored.
pub(super) const BEGIN_AFTER_MS: u64 = 3_000;

/// Returns `true` if the next allocation may fail, because less than 3 % and less than 2 GiB are
/// free.
pub fn is_memory_nearly_full(free_bytes: u64, total_bytes: u64) -> bool {
    is_below(NEARLY_FULL, free_bytes, total_bytes)
}

fn is_below((share, bytes): Bound, free_bytes: u64, total_bytes: u64) -> bool {
    (free_bytes as f64) < total_bytes as f64 * share && free_bytes < bytes
}

/// Observes the free memory. The condition begins below 3 % and 2 GiB. It ends after a delay above
/// 5 % or 3 GiB, and at once above twice these bounds. While it lasts, its value is the current
/// free memory.
pub(super) fn observe(view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
    let memory = &view.sample.memory;
    let Some((&free_bytes, &total_bytes)) = view
        .fresh(&memory.free_bytes)
        .zip(memory.total_bytes.value())
    else {
        return Observation::Unknown;
    };
    if !is_below(
        if lasts { NEAR } else { NEARLY_FULL },
        free_bytes,
        total_bytes,
    ) {
        return Observation::Ended;
    }
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    if lasts && !is_below(STILL, free_bytes, total_bytes) {
        Observation::Weakening(kind)
    } else {
        Observation::Active(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, event};
    use super::*;
    use crate::model::{GpuSample, Reading};

    fn free(mib: u64) -> impl Fn(&mut GpuSample) {
        move |sample| sample.memory.free_bytes = Reading::Now(mib << 20)
    }

    #[test]
    fn it_begins_below_two_gib_and_ends_above_three() {
        let mut timeline = TestTimeline::new();
        timeline
            .show(60, free(2_100))
            .show(2, free(100))
            .show(60, free(2_100));
        assert_eq!(timeline.take_events(), []);
        timeline.show(60, free(1_000));
        assert_eq!(timeline.take_events(), [event(126, "+memory_nearly_full")]);
        assert_eq!(
            timeline.only().text,
            "Memory nearly full: 1000 MiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline.show(60, free(2_900));
        assert_eq!(timeline.take_events(), []);
        timeline.show(60, free(3_100));
        assert_eq!(timeline.take_events(), [event(253, "-memory_nearly_full")]);
    }

    #[test]
    fn memory_that_is_given_back_ends_it_at_once_and_little_of_it_is_told_as_it_is_now() {
        let mut timeline = TestTimeline::new();
        timeline.show(10, free(100)).show(1, free(3_584));
        assert_eq!(
            timeline.only().text,
            "Memory nearly full: 3.50 GiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline.show(3, free(100)).show(1, free(78_000));
        assert_eq!(timeline.last.conditions, []);
        assert_eq!(
            timeline.take_events(),
            [
                event(4, "+memory_nearly_full"),
                event(15, "-memory_nearly_full")
            ]
        );
    }

    #[test]
    fn on_a_small_board_the_share_counts() {
        let mut timeline = TestTimeline::new();
        let small = |mib| {
            move |sample: &mut GpuSample| {
                sample.memory.total_bytes = Reading::Now(8 * GIB);
                free(mib)(sample);
            }
        };
        timeline.show(60, small(300));
        assert_eq!(timeline.take_events(), []);
        timeline.show(60, small(200)).show(60, small(300));
        assert_eq!(timeline.take_events(), [event(64, "+memory_nearly_full")]);
        timeline.show(60, small(500));
        assert_eq!(timeline.take_events().len(), 1);
    }
}
