//! Streams: what a kernel makes wait, and what waits behind it.

use std::{
    cell::Cell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::state::State;

thread_local! {
    /// How long the kernel that is just being started keeps its stream busy.
    static WAITS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The streams in which something waits, by their handles.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    waiting: BTreeMap<usize, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    busy_until: Option<Instant>,
    /// What is to be freed when the stream has come so far.
    frees: Vec<usize>,
}

/// Makes the stream of the kernel that is just being started wait for so long.
pub(crate) fn wait(time: Duration) {
    WAITS.set(time);
}

/// How long the kernel that was started wants its stream to wait.
pub(crate) fn waited() -> Duration {
    WAITS.take()
}

impl Streams {
    /// Keeps a stream busy for so long, behind what it does already. Says how long that still
    /// takes.
    pub(crate) fn occupy(&mut self, stream: usize, time: Duration) -> Duration {
        let now = Instant::now();
        let waiting = self.waiting.entry(stream).or_default();
        let begin = waiting.busy_until.unwrap_or(now).max(now);
        waiting.busy_until = Some(begin + time);
        begin - now
    }

    pub(crate) fn busy_until(&self, stream: usize) -> Option<Instant> {
        self.waiting
            .get(&stream)
            .and_then(|waiting| waiting.busy_until)
    }

    /// Has memory freed when the stream has come so far.
    pub(crate) fn free_later(&mut self, stream: usize, place: usize) {
        self.waiting.entry(stream).or_default().frees.push(place);
    }
}

impl State {
    /// The stream has come to its end: what was freed in it is free, and pools give back what they
    /// are not to keep.
    pub(crate) fn finish(&mut self, stream: usize) {
        let done = self.streams.waiting.remove(&stream).unwrap_or_default();
        for place in done.frees {
            self.give_to_pool(place);
        }
        self.trim_pools();
    }
}
