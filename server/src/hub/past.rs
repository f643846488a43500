//! What was, as far as the history and its disk know it.

use std::{io, ops::Range, sync::Arc, time::Duration};

use gpumon_history::{
    bucket::BUCKET_MS,
    jobs::JobList,
    merge::merged,
    plan::SpanRequest,
    span::HistorySpan,
    wanted::Wanted,
    writer::{Restored, Settings},
};
use gpumon_probe::{
    model::now_ms,
    usage::{Period, Usage},
};

use super::Hub;
use crate::{
    frame::History,
    history::{self, LATE_MS},
    join::ask,
    lock,
};

impl Hub {
    /// A span of the past. It may wait for the disk.
    pub(crate) fn span(&self, request: &SpanRequest) -> HistorySpan {
        let (events, joined) =
            self.read(|state| (state.events.iter().cloned().collect(), state.joined.clone()));
        let ours = history::span(&self.history, request, events);
        match joined.map(|socket| ask::span(&socket, request)) {
            Some(Ok(theirs)) => merged(ours, theirs, &request.wanted),
            _ => ours,
        }
    }

    /// Which jobs were on which GPUs. It may wait for the disk.
    pub(crate) fn jobs(&self, called: Option<&str>) -> JobList {
        history::jobs(&self.history, called)
    }

    /// Writes history to disk from now on, and takes in what is there already.
    ///
    /// # Errors
    /// Where there can be no more threads.
    pub(crate) fn write_history(self: &Arc<Self>, settings: Settings) -> io::Result<()> {
        let hub = Arc::clone(self);
        let restore = move |Restored { grid, events }: Restored| {
            hub.write(|state| state.events.restore(events));
            lock::write(&hub.history).restore(grid);
        };
        lock::write(&self.history).write_to(settings, restore)
    }

    /// Ends each ten seconds of history with them, and not with the sample behind. It never ends.
    pub(crate) async fn end_buckets(&self) {
        loop {
            let rest_ms = BUCKET_MS - now_ms() % BUCKET_MS + LATE_MS;
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
            // A recording has a time of its own.
            let now_ms = self.now_ms();
            lock::write(&self.history).end_bucket(now_ms, || self.used());
        }
    }

    /// How large the history on disk may become from now on.
    pub(crate) fn limit_history(&self, size_bytes: u64) {
        lock::read(&self.history).limit(size_bytes);
    }

    /// Writes what is left of the history; waits for the disk, but not for long.
    pub(crate) fn end_history(&self) {
        let used = || {
            lock::write(&self.usage).end();
            self.used()
        };
        let writer = lock::write(&self.history).end(used);
        if let Some(writer) = writer {
            writer.end();
        }
    }

    /// Who used how much until now.
    pub(crate) fn usage(&self) -> Usage {
        lock::read(&self.usage).usage()
    }

    /// Who used how much in a span. It may wait for the disk.
    pub(crate) fn usage_in(&self, span: &Range<u64>) -> Usage {
        match self.joined().map(|socket| ask::usage(&socket, span)) {
            Some(Ok(theirs)) => theirs,
            _ => history::usage(&self.history, &self.usage, span),
        }
    }

    /// What has become known since this was asked last.
    pub(super) fn used(&self) -> Vec<Period> {
        lock::write(&self.usage).take_fresh()
    }

    pub(super) fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        lock::read(&self.history).recent.newest(reach_ms, wanted)
    }
}
