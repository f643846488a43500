//! The sampling interval: the shortest one that any client requests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::watch;

use crate::lock;

/// The intervals that clients request, and the resulting one of the collector.
#[derive(Debug)]
pub(crate) struct SamplingInterval {
    wanted: Mutex<Wanted>,
    interval: watch::Sender<Duration>,
}

#[derive(Debug)]
struct Wanted {
    /// The interval without any request. The interval is never longer, because history and
    /// `/metrics` need it as well.
    base: Duration,
    requested: BTreeMap<Duration, usize>,
}

impl SamplingInterval {
    pub(crate) fn new(base: Duration) -> Arc<Self> {
        let wanted = Mutex::new(Wanted {
            base,
            requested: BTreeMap::new(),
        });
        Arc::new(Self {
            wanted,
            interval: watch::Sender::new(base),
        })
    }

    /// Returns the interval that applies without any request.
    pub(crate) fn base(&self) -> Duration {
        lock::lock(&self.wanted).base
    }

    pub(crate) fn set_base(&self, base: Duration) {
        self.change(|wanted| wanted.base = base);
    }

    pub(crate) fn interval(&self) -> watch::Receiver<Duration> {
        self.interval.subscribe()
    }

    /// Returns a request for one more client, which is empty at first.
    pub(crate) fn request(self: &Arc<Self>) -> IntervalRequest {
        IntervalRequest {
            shared: Arc::clone(self),
            requested: None,
        }
    }

    fn replace(&self, old: Option<Duration>, new: Option<Duration>) {
        self.change(|Wanted { requested, .. }| {
            if let Some(count) = old.and_then(|old| requested.get_mut(&old)) {
                *count -= 1;
            }
            if let Some(new) = new {
                *requested.entry(new).or_default() += 1;
            }
            requested.retain(|_, count| *count > 0);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = lock::lock(&self.wanted);
        change(&mut wanted);
        let Wanted { base, requested } = &*wanted;
        let interval = requested
            .keys()
            .next()
            .map_or(*base, |smallest| *smallest.min(base));
        // The interval is sent under the lock, so that two changes arrive in order.
        self.interval
            .send_if_modified(|known| std::mem::replace(known, interval) != interval);
    }
}

/// The interval that one client requests, until this is dropped.
#[derive(Debug)]
pub(crate) struct IntervalRequest {
    shared: Arc<SamplingInterval>,
    requested: Option<Duration>,
}

impl IntervalRequest {
    /// Replaces the requested interval. `None` requests nothing.
    pub(crate) fn set(&mut self, interval: Option<Duration>) {
        self.shared
            .replace(std::mem::replace(&mut self.requested, interval), interval);
    }
}

impl Drop for IntervalRequest {
    fn drop(&mut self) {
        self.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_smallest_interval_counts_until_its_client_goes() {
        let shared = SamplingInterval::new(MS(1000));
        let mut interval = shared.interval();
        let (mut fast, mut same, mut slow) = (shared.request(), shared.request(), shared.request());
        slow.set(Some(MS(5000)));
        assert!(
            !interval.has_changed().unwrap(),
            "nobody makes it slower than it is for nobody"
        );
        fast.set(Some(MS(100)));
        same.set(Some(MS(100)));
        assert_eq!(*interval.borrow_and_update(), MS(100));
        drop(fast);
        assert!(
            !interval.has_changed().unwrap(),
            "another asks for the same"
        );
        same.set(Some(MS(250)));
        assert_eq!(*interval.borrow_and_update(), MS(250));
        same.set(None);
        assert_eq!(*interval.borrow_and_update(), MS(1000));
        slow.set(Some(MS(500)));
        shared.set_base(MS(2000));
        assert_eq!(
            (*interval.borrow_and_update(), shared.base()),
            (MS(500), MS(2000)),
            "a client asks for more"
        );
        shared.set_base(MS(200));
        assert_eq!(*interval.borrow_and_update(), MS(200));
    }
}
