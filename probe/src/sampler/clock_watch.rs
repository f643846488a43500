//! Detection of changes to the system clock, by comparison with the time since boot.

use rustix::time::{ClockId, clock_gettime};

/// The minimum change that is reported. Time synchronization constantly causes smaller changes.
const MIN_CHANGE_MS: u64 = 10_000;

/// Compares the system clock with the time since boot at every tick.
#[derive(Debug, Default)]
pub(super) struct ClockWatch {
    /// The system clock minus the time since boot, in milliseconds.
    ahead_ms: Option<i64>,
}

impl ClockWatch {
    /// Returns how far the system clock was set since the previous call, in milliseconds, or `None`
    /// if it was not set. The time since boot includes suspended time.
    pub(super) fn update(&mut self, now_ms: u64) -> Option<i64> {
        let since_start = clock_gettime(ClockId::Boottime);
        self.compare(
            now_ms,
            since_start.tv_sec as u64 * 1000 + since_start.tv_nsec as u64 / 1_000_000,
        )
    }

    fn compare(&mut self, now_ms: u64, since_start_ms: u64) -> Option<i64> {
        let ahead_ms = now_ms.cast_signed() - since_start_ms.cast_signed();
        let by_ms = ahead_ms - self.ahead_ms.replace(ahead_ms)?;
        (by_ms.unsigned_abs() >= MIN_CHANGE_MS).then_some(by_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_change_is_reported_once() {
        let mut watch = ClockWatch::default();
        let changes = [
            (1_000_000, 1000),
            (1_001_000, 2000),
            (9_002_000, 3000),
            (9_003_000, 4000),
            (1_004_000, 5000),
        ];
        let found: Vec<_> = changes
            .map(|(now_ms, since_start_ms)| watch.compare(now_ms, since_start_ms))
            .into();
        assert_eq!(found, [None, None, Some(8_000_000), None, Some(-8_000_000)]);
    }

    #[test]
    fn slow_clock_correction_is_not_reported() {
        let mut watch = ClockWatch::default();
        let found =
            (0..1000).find_map(|second| watch.compare(1_000_000 + second * 1500, second * 1000));
        assert_eq!(found, None);
    }
}
