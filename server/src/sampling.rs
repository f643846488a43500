//! How often samples are taken and sent: the sampling interval that clients request, the selection
//! of samples for one client, and the number of viewers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::lock;

/// The intervals requested by clients, and the collector's resulting interval: the shortest one.
#[derive(Debug)]
pub(crate) struct SamplingInterval {
    wanted: Mutex<RequestedIntervals>,
    interval: watch::Sender<Duration>,
}

#[derive(Debug)]
struct RequestedIntervals {
    /// The interval that applies if no client requests a shorter one. Longer intervals are not
    /// possible, because history and `/metrics` need this one.
    base: Duration,
    requested: BTreeMap<Duration, usize>,
}

impl SamplingInterval {
    pub(crate) fn new(base: Duration) -> Arc<Self> {
        let wanted = Mutex::new(RequestedIntervals {
            base,
            requested: BTreeMap::new(),
        });
        Arc::new(Self {
            wanted,
            interval: watch::Sender::new(base),
        })
    }

    /// Returns the interval that applies if no client requests a shorter one.
    pub(crate) fn base_interval(&self) -> Duration {
        lock::lock(&self.wanted).base
    }

    pub(crate) fn set_base_interval(&self, base: Duration) {
        self.change_requests(|wanted| wanted.base = base);
    }

    pub(crate) fn subscribe_interval(&self) -> watch::Receiver<Duration> {
        self.interval.subscribe()
    }

    /// Returns a handle with which one more client can request an interval. Initially, it requests
    /// none.
    pub(crate) fn new_request(self: &Arc<Self>) -> IntervalRequest {
        IntervalRequest {
            shared: Arc::clone(self),
            requested: None,
        }
    }

    fn replace_request(&self, old: Option<Duration>, new: Option<Duration>) {
        self.change_requests(|RequestedIntervals { requested, .. }| {
            if let Some(count) = old.and_then(|old| requested.get_mut(&old)) {
                *count -= 1;
            }
            if let Some(new) = new {
                *requested.entry(new).or_default() += 1;
            }
            requested.retain(|_, count| *count > 0);
        });
    }

    fn change_requests(&self, change: impl FnOnce(&mut RequestedIntervals)) {
        let mut wanted = lock::lock(&self.wanted);
        change(&mut wanted);
        let RequestedIntervals { base, requested } = &*wanted;
        let interval = requested
            .keys()
            .next()
            .map_or(*base, |smallest| *smallest.min(base));
        // The interval is sent while the lock is held. Changes therefore arrive in order.
        self.interval
            .send_if_modified(|known| std::mem::replace(known, interval) != interval);
    }
}

/// The interval that one client requests. The request ends when this is dropped.
#[derive(Debug)]
pub(crate) struct IntervalRequest {
    shared: Arc<SamplingInterval>,
    requested: Option<Duration>,
}

impl IntervalRequest {
    /// Replaces the requested interval. `None` withdraws the request.
    pub(crate) fn set_interval(&mut self, interval: Option<Duration>) {
        self.shared
            .replace_request(std::mem::replace(&mut self.requested, interval), interval);
    }
}

impl Drop for IntervalRequest {
    fn drop(&mut self) {
        self.set_interval(None);
    }
}

/// Selects the samples that one client receives: at most one per requested interval.
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

    /// Decides whether the client receives the newest sample, which arrived at `at`. The next
    /// sample is expected after `spacing`. Returns `None` if the client does not receive the
    /// sample. Otherwise, returns the number of samples that the client missed since the one that
    /// it received before.
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
        // The client receives the sample nearest to the due time. The sample may therefore be
        // slightly early.
        let early = spacing / 2;
        let due = *self.due.get_or_insert(at);
        let late = (at + early).checked_duration_since(due)?;
        let turns = (late.as_nanos() / self.interval.as_nanos().max(1)) as u64;
        // The due times remain regular, so that early and late samples balance out. After a gap of
        // an interval or more, they start anew.
        self.due = Some(if turns > 0 {
            at + self.interval
        } else {
            due + self.interval
        });
        Some(unseen.min(turns))
    }
}

/// The time for which a client counts as a viewer after it has requested current data.
const REQUEST_VIEW_DURATION: Duration = Duration::from_secs(10);

/// A counter of the server's current viewers. Without viewers, the collector takes expensive
/// readings only as often as the history needs.
#[derive(Debug, Default)]
pub(crate) struct ViewerCounter {
    watchers: watch::Sender<usize>,
    /// The time until which a client that requested current data still counts as a viewer.
    looked_until: Mutex<Option<Instant>>,
}

/// A guard that counts as a viewer until it is dropped.
#[derive(Debug)]
pub(crate) struct ViewerGuard(Arc<ViewerCounter>);

impl ViewerCounter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns a channel with the number of viewers.
    pub(crate) fn subscribe_viewer_count(&self) -> watch::Receiver<usize> {
        self.watchers.subscribe()
    }

    /// Adds a viewer.
    pub(crate) fn add_viewer(self: &Arc<Self>) -> ViewerGuard {
        self.watchers.send_modify(|watchers| *watchers += 1);
        ViewerGuard(Arc::clone(self))
    }

    /// Counts the client as a viewer for some time, because it requested current data.
    pub(crate) fn add_temporary_viewer(self: &Arc<Self>) {
        self.add_viewer_for(REQUEST_VIEW_DURATION);
    }

    fn add_viewer_for(self: &Arc<Self>, time: Duration) {
        let until = Instant::now() + time;
        let counts = lock::lock(&self.looked_until).replace(until).is_some();
        if !counts {
            tokio::spawn(Arc::clone(self).remove_viewer_when_expired(self.add_viewer()));
        }
    }

    async fn remove_viewer_when_expired(self: Arc<Self>, _watcher: ViewerGuard) {
        loop {
            let until = {
                let mut until = lock::lock(&self.looked_until);
                *until = until.filter(|until| *until > Instant::now());
                *until
            };
            match until {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        self.0.watchers.send_modify(|watchers| *watchers -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn smallest_requested_interval_applies_until_client_disconnects() {
        let shared = SamplingInterval::new(MS(1000));
        let mut interval = shared.subscribe_interval();
        let (mut fast, mut same, mut slow) = (
            shared.new_request(),
            shared.new_request(),
            shared.new_request(),
        );
        slow.set_interval(Some(MS(5000)));
        assert!(
            !interval.has_changed().unwrap(),
            "nobody makes it slower than it is for nobody"
        );
        fast.set_interval(Some(MS(100)));
        same.set_interval(Some(MS(100)));
        assert_eq!(*interval.borrow_and_update(), MS(100));
        drop(fast);
        assert!(
            !interval.has_changed().unwrap(),
            "another asks for the same"
        );
        same.set_interval(Some(MS(250)));
        assert_eq!(*interval.borrow_and_update(), MS(250));
        same.set_interval(None);
        assert_eq!(*interval.borrow_and_update(), MS(1000));
        slow.set_interval(Some(MS(500)));
        shared.set_base_interval(MS(2000));
        assert_eq!(
            (*interval.borrow_and_update(), shared.base_interval()),
            (MS(500), MS(2000)),
            "a client asks for more"
        );
        shared.set_base_interval(MS(200));
        assert_eq!(*interval.borrow_and_update(), MS(200));
    }
}

#[cfg(test)]
mod rate_limiter_tests {
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

#[cfg(test)]
mod viewer_tests {
    use tokio::time::sleep;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn viewer_is_counted_until_dropped() {
        let watching = ViewerCounter::new();
        let mut watchers = watching.subscribe_viewer_count();
        let both = (watching.add_viewer(), watching.add_viewer());
        assert_eq!(*watchers.borrow_and_update(), 2);
        drop(both);
        assert_eq!(*watchers.borrow_and_update(), 0);
    }

    #[tokio::test]
    async fn request_is_counted_as_viewer_for_limited_time() {
        let watching = ViewerCounter::new();
        let mut watchers = watching.subscribe_viewer_count();
        let begun = Instant::now();
        watching.add_viewer_for(MS(300));
        sleep(MS(100)).await;
        watching.add_viewer_for(MS(600));
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "looking twice is one who watches"
        );
        watchers.changed().await.unwrap();
        assert_eq!(*watchers.borrow_and_update(), 0);
        assert!(begun.elapsed() >= MS(700));
        watching.add_temporary_viewer();
        assert_eq!(
            *watchers.borrow_and_update(),
            1,
            "the next time counts again"
        );
    }
}
