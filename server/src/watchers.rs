//! How often to sample: as often as whoever looks most closely wants it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

/// What the clients ask for, and what follows for the collector.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// Without anybody who asks. It is never slower than this, for history and `/metrics` need it too.
    base: Duration,
    /// How many ask for each interval.
    asked: Mutex<BTreeMap<Duration, usize>>,
    interval: watch::Sender<Duration>,
}

impl Watchers {
    pub(crate) fn new(base: Duration) -> Arc<Self> {
        Arc::new(Self { base, asked: Mutex::default(), interval: watch::Sender::new(base) })
    }

    /// The interval where nobody asks for another.
    pub(crate) fn base(&self) -> Duration {
        self.base
    }

    /// The interval now, and its changes.
    pub(crate) fn interval(&self) -> watch::Receiver<Duration> {
        self.interval.subscribe()
    }

    /// One more client, who asks for nothing yet.
    pub(crate) fn join(self: &Arc<Self>) -> Watcher {
        Watcher { watchers: Arc::clone(self), asked: None }
    }

    fn replace(&self, old: Option<Duration>, new: Option<Duration>) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = old.and_then(|old| asked.get_mut(&old)) {
            *count -= 1;
        }
        if let Some(new) = new {
            *asked.entry(new).or_default() += 1;
        }
        asked.retain(|_, count| *count > 0);
        let interval = asked.keys().next().map_or(self.base, |smallest| self.base.min(*smallest));
        // Still under the lock, so that two changes arrive in the order in which they were made.
        self.interval.send_if_modified(|known| std::mem::replace(known, interval) != interval);
    }
}

/// One client's say, which ends with it.
#[derive(Debug)]
pub(crate) struct Watcher {
    watchers: Arc<Watchers>,
    asked: Option<Duration>,
}

impl Watcher {
    /// Asks for this interval instead of what was asked for before; `None` asks for nothing.
    pub(crate) fn ask(&mut self, interval: Option<Duration>) {
        self.watchers.replace(std::mem::replace(&mut self.asked, interval), interval);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.ask(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_smallest_interval_counts_until_its_client_goes() {
        let watchers = Watchers::new(MS(1000));
        let mut interval = watchers.interval();
        let (mut fast, mut same, mut slow) = (watchers.join(), watchers.join(), watchers.join());
        slow.ask(Some(MS(5000)));
        assert!(!interval.has_changed().unwrap(), "nobody makes it slower than it is for nobody");
        fast.ask(Some(MS(100)));
        same.ask(Some(MS(100)));
        assert_eq!(*interval.borrow_and_update(), MS(100));
        drop(fast);
        assert!(!interval.has_changed().unwrap(), "another asks for the same");
        same.ask(Some(MS(250)));
        assert_eq!(*interval.borrow_and_update(), MS(250));
        same.ask(None);
        assert_eq!(*interval.borrow_and_update(), MS(1000));
    }
}
