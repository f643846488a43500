//! The selection of samples for one client, which receives at most as many as it requested.

use std::time::Duration;

use tokio::time::Instant;

/// The state of one client's selection of samples.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    interval: Duration,
    /// The time at which the next sample is due; `None` before the first.
    due: Option<Instant>,
    /// The number of the newest sample that was offered to the client.
    seen: u64,
}

impl RateLimiter {
    /// Creates a limiter that selects one sample per `interval`, starting after the sample number
    /// `seen`.
    pub(crate) fn new(interval: Duration, seen: u64) -> Self {
        Self {
            interval,
            due: None,
            seen,
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Sets the interval, starting with the next sample.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.due = self
            .due
            .and_then(|due| due.checked_sub(self.interval))
            .map(|last| last + interval);
        self.interval = interval;
    }

    /// Records a sample that the client does not receive.
    pub(crate) fn record_skipped_sample(&mut self, number: u64) {
        self.seen = number;
        self.due = None;
    }

    /// Decides whether the client receives the newest sample. The sample arrived at `at`, and the
    /// next one is expected after `spacing`. If the client receives it, returns the number of
    /// samples that the client missed since the previous one.
    pub(crate) fn admit_sample(
        &mut self,
        number: u64,
        at: Instant,
        spacing: Duration,
    ) -> Option<u64> {
        let unseen = number.saturating_sub(self.seen + 1);
        self.seen = number;
        if self.interval <= spacing {
            self.due = Some(at + self.interval);
            return Some(unseen);
        }
        // The client receives the sample nearest to the due time, even if the sample is slightly
        // early.
        let early = spacing / 2;
        let due = *self.due.get_or_insert(at);
        let late = (at + early).checked_duration_since(due)?;
        let turns = (late.as_nanos() / self.interval.as_nanos().max(1)) as u64;
        // The due times remain regular, so that early and late samples balance out. They start
        // again after a gap of an interval or more.
        self.due = Some(if turns > 0 {
            at + self.interval
        } else {
            due + self.interval
        });
        Some(unseen.min(turns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    /// Returns the times of the samples that a client receives if samples arrive at `at_ms`.
    fn admitted_times(interval_ms: u64, at_ms: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let start = Instant::now();
        let mut rate_limiter = RateLimiter::new(Duration::from_millis(interval_ms), 0);
        at_ms
            .into_iter()
            .zip(1..)
            .filter(|(at, number)| {
                let missed = rate_limiter.admit_sample(
                    *number,
                    start + Duration::from_millis(*at),
                    INTERVAL,
                );
                assert!(
                    missed.is_none_or(|missed| missed == 0),
                    "nothing was missed: every sample was offered"
                );
                missed.is_some()
            })
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn slow_client_gets_one_sample_per_interval() {
        assert_eq!(
            admitted_times(1000, (0..30).map(|tick| tick * 100)),
            [0, 1000, 2000]
        );
        assert_eq!(
            admitted_times(1000, (0..30).map(|tick| tick * 100 + tick % 3 * 20)),
            [0, 1020, 2040],
            "late ones are no drift"
        );
        assert_eq!(
            admitted_times(1000, [0, 990, 1090, 2010, 2110]),
            [0, 990, 2010],
            "a little early is in time"
        );
        let odd = admitted_times(250, (0..41).map(|tick| tick * 100));
        assert!(
            (16..=18).contains(&odd.len()),
            "four a second on average: {odd:?}"
        );
        assert_eq!(
            admitted_times(100, [0, 60, 200, 290]),
            [0, 60, 200, 290],
            "who wants all gets all, be it early or late"
        );
    }

    #[test]
    fn skipped_samples_do_not_count_as_missed() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut slow = RateLimiter::new(Duration::from_secs(1), 0);
        assert_eq!(slow.admit_sample(1, at(0), INTERVAL), Some(0));
        assert_eq!(
            slow.admit_sample(11, at(1000), INTERVAL),
            Some(0),
            "nine came between that it had not asked for"
        );
        assert_eq!(slow.admit_sample(41, at(4000), INTERVAL), Some(2));
        assert_eq!(slow.admit_sample(42, at(4100), INTERVAL), None);
        assert_eq!(
            slow.admit_sample(43, at(9000), INTERVAL),
            Some(0),
            "none came, so none was missed"
        );
        let mut fast = RateLimiter::new(INTERVAL, 0);
        assert_eq!(fast.admit_sample(1, at(0), INTERVAL), Some(0));
        assert_eq!(fast.admit_sample(5, at(400), INTERVAL), Some(3));
    }

    #[test]
    fn new_interval_starts_at_last_sample() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut rate_limiter = RateLimiter::new(Duration::from_secs(10), 0);
        assert_eq!(rate_limiter.admit_sample(1, at(0), INTERVAL), Some(0));
        rate_limiter.set_interval(Duration::from_millis(300));
        assert_eq!(rate_limiter.admit_sample(2, at(100), INTERVAL), None);
        assert_eq!(rate_limiter.admit_sample(3, at(300), INTERVAL), Some(0));
    }
}
