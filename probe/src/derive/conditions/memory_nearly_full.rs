//! The condition that little memory is free.

use super::{hysteresis::Observation, rule::View};
use crate::model::ConditionKind;

const GIB: u64 = 1 << 30;

/// A bound on free memory. Free memory is below the bound if it is less than this share of the
/// total and also less than this number of bytes.
type Bound = (f64, u64);

/// The condition starts below this bound.
const BEGIN_BOUND: Bound = (0.03, 2 * GIB);

/// Above this bound, the condition weakens: it ends after a delay.
const WEAKEN_BOUND: Bound = (0.05, 3 * GIB);

/// Above this bound, the condition ends immediately, because the next allocation will not bring it
/// back.
const END_BOUND: Bound = (0.1, 6 * GIB);

/// The minimum duration of the condition, so that short allocations are ignored.
pub(super) const BEGIN_AFTER_MS: u64 = 3_000;

/// Returns `true` if the next allocation may fail, because less than 3 % and less than 2 GiB are
/// free.
pub fn is_memory_nearly_full(free_bytes: u64, total_bytes: u64) -> bool {
    is_below(BEGIN_BOUND, free_bytes, total_bytes)
}

fn is_below((share, bytes): Bound, free_bytes: u64, total_bytes: u64) -> bool {
    (free_bytes as f64) < total_bytes as f64 * share && free_bytes < bytes
}

/// Observes the free memory. The condition starts below 3 % and 2 GiB. It ends after a delay above
/// 5 % or 3 GiB, and immediately above 10 % or 6 GiB. While the condition lasts, its value is the
/// current free memory.
pub(super) fn observe(view: &View<'_>, lasts: bool) -> Observation<ConditionKind> {
    let memory = &view.sample.memory;
    let Some((&free_bytes, &total_bytes)) = view
        .fresh_value(&memory.free_bytes)
        .zip(memory.total_bytes.value())
    else {
        return Observation::Unknown;
    };
    if !is_below(
        if lasts { END_BOUND } else { BEGIN_BOUND },
        free_bytes,
        total_bytes,
    ) {
        return Observation::Ended;
    }
    let kind = ConditionKind::MemoryNearlyFull {
        free_bytes,
        total_bytes,
    };
    if lasts && !is_below(WEAKEN_BOUND, free_bytes, total_bytes) {
        Observation::Weakening(kind)
    } else {
        Observation::Active(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_timeline::{TestTimeline, expected_event};
    use super::*;
    use crate::model::{GpuSample, Reading};

    fn set_free_mib(mib: u64) -> impl Fn(&mut GpuSample) {
        move |sample| sample.memory.free_bytes = Reading::Now(mib << 20)
    }

    #[test]
    fn condition_has_separate_start_and_end_bounds() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(60, set_free_mib(2_100))
            .advance_with_sample(2, set_free_mib(100))
            .advance_with_sample(60, set_free_mib(2_100));
        assert_eq!(timeline.take_events(), []);
        timeline.advance_with_sample(60, set_free_mib(1_000));
        assert_eq!(
            timeline.take_events(),
            [expected_event(126, "+memory_nearly_full")]
        );
        assert_eq!(
            timeline.only_condition().text,
            "Memory nearly full: 1000 MiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline.advance_with_sample(60, set_free_mib(2_900));
        assert_eq!(timeline.take_events(), []);
        timeline.advance_with_sample(60, set_free_mib(3_100));
        assert_eq!(
            timeline.take_events(),
            [expected_event(253, "-memory_nearly_full")]
        );
    }

    #[test]
    fn freed_memory_ends_condition_at_once() {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(10, set_free_mib(100))
            .advance_with_sample(1, set_free_mib(3_584));
        assert_eq!(
            timeline.only_condition().text,
            "Memory nearly full: 3.50 GiB of 80.0 GiB free. The next allocation may fail."
        );
        timeline
            .advance_with_sample(3, set_free_mib(100))
            .advance_with_sample(1, set_free_mib(78_000));
        assert_eq!(timeline.last.conditions, []);
        assert_eq!(
            timeline.take_events(),
            [
                expected_event(4, "+memory_nearly_full"),
                expected_event(15, "-memory_nearly_full")
            ]
        );
    }

    #[test]
    fn small_board_uses_relative_bound() {
        let mut timeline = TestTimeline::new();
        let small = |mib| {
            move |sample: &mut GpuSample| {
                sample.memory.total_bytes = Reading::Now(8 * GIB);
                set_free_mib(mib)(sample);
            }
        };
        timeline.advance_with_sample(60, small(300));
        assert_eq!(timeline.take_events(), []);
        timeline
            .advance_with_sample(60, small(200))
            .advance_with_sample(60, small(300));
        assert_eq!(
            timeline.take_events(),
            [expected_event(64, "+memory_nearly_full")]
        );
        timeline.advance_with_sample(60, small(500));
        assert_eq!(timeline.take_events().len(), 1);
    }
}
