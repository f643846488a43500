//! Streams, with kernels that wait and actions that follow them.

use std::{
    cell::Cell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::state::State;

thread_local! {
    /// The time for which the kernel being started keeps its stream busy.
    static WAIT_TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The streams with waiting work, by handle.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    waiting: BTreeMap<usize, PendingWork>,
}

#[derive(Debug, Default)]
struct PendingWork {
    busy_until: Option<Instant>,
    /// Memory to be freed when the stream reaches this point.
    frees: Vec<usize>,
}

/// Makes the stream of the kernel being started wait for this time.
pub(crate) fn set_wait_time(time: Duration) {
    WAIT_TIME.set(time);
}

/// Returns and resets the time for which the kernel being started keeps its stream busy.
pub(crate) fn take_wait_time() -> Duration {
    WAIT_TIME.take()
}

impl Streams {
    /// Keeps a stream busy for this time, beginning when its current work has ended. Returns the
    /// remaining time of the current work.
    pub(crate) fn keep_busy(&mut self, stream: usize, time: Duration) -> Duration {
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

    /// Frees memory when the stream reaches this point.
    pub(crate) fn schedule_free(&mut self, stream: usize, place: usize) {
        self.waiting.entry(stream).or_default().frees.push(place);
    }
}

impl State {
    /// Completes the work of a stream. Frees the memory that was waiting for this. After that, each
    /// pool releases its memory above the threshold.
    pub(crate) fn finish_stream(&mut self, stream: usize) {
        let done = self.streams.waiting.remove(&stream).unwrap_or_default();
        for place in done.frees {
            self.return_to_pool(place);
        }
        self.trim_pools();
    }
}
