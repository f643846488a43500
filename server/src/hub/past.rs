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

    /// Returns the cost of a kernel in a span, as far as it is known.
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

    /// Waits until the costs of what ended at a time are final.
    pub(crate) async fn wait_for_costs(&self, to_ms: u64) {
        let mut changes = self.changes();
        let is_final = || lock::read(&self.kernels).is_final(to_ms as f64);
        while !is_final() && changes.changed().await.is_ok() {}
    }

    /// What has become known since this was asked last.
    pub(super) fn used(&self) -> Vec<Period> {
        lock::write(&self.usage).take_fresh()
    }

    pub(super) fn newest(&self, reach_ms: u64, wanted: &Wanted) -> History {
        lock::read(&self.history).recent.newest(reach_ms, wanted)
    }
}
