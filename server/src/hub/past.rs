//! The hub's history and usage, in memory and on disk.

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
    model::{Cost, now_ms},
    usage::{Period, Usage},
};

use super::Hub;
use crate::{
    frame::History,
    history::{self, LATE_MS},
    join::ask,
    lock,
    view::View,
};

impl Hub {
    /// Returns a span of history. This can wait for the disk.
    pub(crate) fn span(&self, request: &SpanRequest) -> HistorySpan {
        let (events, joined) =
            self.read(|state| (state.events.iter().cloned().collect(), state.joined.clone()));
        let ours = history::span(&self.history, request, events);
        match joined.map(|socket| ask::span(&socket, request)) {
            Some(Ok(theirs)) => merged(ours, theirs, &request.wanted),
            _ => ours,
        }
    }

    /// Returns jobs and their GPUs. This can wait for the disk.
    pub(crate) fn jobs(&self, called: Option<&str>) -> JobList {
        history::jobs(&self.history, called)
    }

    /// Starts writing history to disk, and restores the stored history.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub(crate) fn write_history(self: &Arc<Self>, settings: Settings) -> io::Result<()> {
        let hub = Arc::clone(self);
        let restore = move |Restored { grid, events }: Restored| {
            hub.write(|state| state.events.restore(events));
            lock::write(&hub.history).restore(grid);
        };
        lock::write(&self.history).write_to(settings, restore)
    }

    /// Ends each bucket of ten seconds in time, without waiting for the next sample. This function
    /// never returns.
    pub(crate) async fn end_buckets(&self) {
        loop {
            let rest_ms = BUCKET_MS - now_ms() % BUCKET_MS + LATE_MS;
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
            // A recording is played with its own times.
            let now_ms = self.now_ms();
            lock::write(&self.history).end_bucket(now_ms, || self.used());
        }
    }

    /// Sets the size limit of the history on disk.
    pub(crate) fn limit_history(&self, size_bytes: u64) {
        lock::read(&self.history).limit(size_bytes);
    }

    /// Writes the remaining history to disk, with a time limit.
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

    /// Returns the usage by owner since the server's start.
    pub(crate) fn usage(&self) -> Usage {
        lock::read(&self.usage).usage()
    }

    /// Returns the usage by owner in a span. This can wait for the disk.
    pub(crate) fn usage_in(&self, span: &Range<u64>) -> Usage {
        match self.joined().map(|socket| ask::usage(&socket, span)) {
            Some(Ok(theirs)) => theirs,
            _ => history::usage(&self.history, &self.usage, span),
        }
    }

    /// Returns the known cost of a kernel in a span.
    pub(crate) fn kernel_cost(&self, kernel_id: &str, span: &Range<u64>, view: &View) -> Cost {
        let inventory = self.read(|state| state.inventory.clone());
        let gpus = inventory.as_ref().map(|inventory| &*inventory.gpus);
        lock::read(&self.kernels).cost(
            kernel_id,
            (span.start as f64, span.end as f64),
            gpus.unwrap_or_default(),
            |user| view.permits_cost(user),
        )
    }

    /// Waits until the costs up to `to_ms` are final.
    pub(crate) async fn wait_for_costs(&self, to_ms: u64) {
        let mut changes = self.changes();
        let is_final = || lock::read(&self.kernels).is_final(to_ms as f64);
        while !is_final() && changes.changed().await.is_ok() {}
    }

    /// Returns the usage that has become known since the last call.
    pub(super) fn used(&self) -> Vec<Period> {
        lock::write(&self.usage).take_fresh()
    }

    pub(super) fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        lock::read(&self.history).recent.newest(reach_ms, wanted)
    }
}
