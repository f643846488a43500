//! Events for new memory errors, derived from counters.

use crate::model::{EventKind, GpuDetails, Reading};

/// The latest values of one GPU's memory error counters.
#[derive(Debug, Default)]
pub struct EccTracker {
    corrected: Option<u64>,
    uncorrected: Option<u64>,
}

impl EccTracker {
    /// Returns an event with the errors since the previous details, if any. The first details yield
    /// no event, because it is unknown when their errors occurred. Counters that have decreased
    /// yield no event, because the driver has reset them.
    pub fn update(&mut self, details: &GpuDetails) -> Option<EventKind> {
        let counts = &details.ecc.volatile;
        let corrected = update_counter(&mut self.corrected, &counts.corrected_total);
        let uncorrected = update_counter(&mut self.uncorrected, &counts.uncorrected_total);
        (corrected > 0 || uncorrected > 0).then_some(EventKind::EccErrors {
            corrected,
            uncorrected,
        })
    }
}

/// Returns the growth of a counter. If a counter was temporarily absent, it is compared with its
/// last value.
fn update_counter(before: &mut Option<u64>, total: &Reading<u64>) -> u64 {
    let Reading::Now(total) = total else { return 0 };
    before
        .replace(*total)
        .map_or(0, |before| total.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{derive::examples, model::Absence};

    fn make_details(corrected: u64, uncorrected: u64) -> GpuDetails {
        let mut details = examples::make_details(0);
        details.ecc.volatile.corrected_total = Reading::Now(corrected);
        details.ecc.volatile.uncorrected_total = Reading::Now(uncorrected);
        details
    }

    #[test]
    fn errors_are_reported_once_with_count() {
        let mut tracker = EccTracker::default();
        assert_eq!(tracker.update(&make_details(5, 1)), None, "they may be old");
        assert_eq!(tracker.update(&make_details(5, 1)), None);
        assert_eq!(
            tracker.update(&make_details(8, 2)),
            Some(EventKind::EccErrors {
                corrected: 3,
                uncorrected: 1
            })
        );
        assert_eq!(tracker.update(&make_details(8, 2)), None);
    }

    #[test]
    fn counter_reset_does_not_create_event() {
        let mut tracker = EccTracker::default();
        tracker.update(&make_details(100, 3));
        assert_eq!(tracker.update(&make_details(2, 0)), None);
        assert_eq!(
            tracker.update(&make_details(3, 0)),
            Some(EventKind::EccErrors {
                corrected: 1,
                uncorrected: 0
            })
        );
    }

    #[test]
    fn errors_while_counter_is_absent_are_reported() {
        let mut tracker = EccTracker::default();
        tracker.update(&make_details(1, 1));
        let mut absent = make_details(1, 1);
        absent.ecc.volatile.corrected_total = Reading::Absent(Absence::NoAnswer);
        absent.ecc.volatile.uncorrected_total = Reading::Earlier { value: 0, at_ms: 0 };
        assert_eq!(tracker.update(&absent), None);
        assert_eq!(
            tracker.update(&make_details(4, 1)),
            Some(EventKind::EccErrors {
                corrected: 3,
                uncorrected: 0
            })
        );
    }
}
