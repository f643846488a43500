//! The sampling interval: the shortest interval that any client requests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;

use crate::lock;

/// The intervals requested by clients, and the collector's resulting interval.
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

    pub(crate) fn interval(&self) -> watch::Receiver<Duration> {
        self.interval.subscribe()
    }

    /// Returns a handle for the request of one more client. At first, it requests nothing.
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
        // The interval is sent while the lock is held, so that changes arrive in order.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn smallest_interval_applies_until_client_disconnects() {
        let shared = SamplingInterval::new(MS(1000));
        let mut interval = shared.interval();
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
