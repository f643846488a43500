//! The hub's history and usage, in memory and on disk.

use std::{io, ops::Range, sync::Arc, time::Duration};

use gpumon_history::{
    bucket::BUCKET_MS,
    jobs::JobList,
    merge::merge_spans,
    span::{HistorySpan, MetricSelection, SpanRequest},
    writer::{RestoredHistory, WriterSettings},
};
use gpumon_probe::{
    model::{Cost, now_ms},
    usage::{Period, Usage},
};

use super::Hub;
use crate::{
    frame::History,
    history::{self, BUCKET_DELAY_MS},
    join::client,
    lock,
    view::View,
};

impl Hub {
    /// Returns a span of history. This may wait for the disk.
    pub(crate) fn read_span(&self, request: &SpanRequest) -> HistorySpan {
        let (events, joined) =
            self.read_state(|state| (state.events.iter().cloned().collect(), state.joined.clone()));
        let ours = history::read_span(&self.history, request, events);
        match joined.map(|socket| client::request_span(&socket, request)) {
            Some(Ok(theirs)) => merge_spans(ours, theirs, &request.wanted),
            _ => ours,
        }
    }

    /// Returns jobs and their GPUs. This may wait for the disk.
    pub(crate) fn read_jobs(&self, called: Option<&str>) -> JobList {
        history::list_jobs(&self.history, called)
    }

    /// Starts writing history to disk, and restores the stored history.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub(crate) fn start_writing_history(
        self: &Arc<Self>,
        settings: WriterSettings,
    ) -> io::Result<()> {
        let hub = Arc::clone(self);
        let restore = move |RestoredHistory { grid, events }: RestoredHistory| {
            hub.write_state(|state| state.events.restore(events));
            lock::write(&hub.history).restore(grid);
        };
        lock::write(&self.history).start_writing(settings, restore)
    }

    /// Ends each bucket of ten seconds shortly after its time has passed, without waiting for the
    /// next sample. This function never returns.
    pub(crate) async fn end_buckets_regularly(&self) {
        loop {
            let rest_ms = BUCKET_MS - now_ms() % BUCKET_MS + BUCKET_DELAY_MS;
            tokio::time::sleep(Duration::from_millis(rest_ms)).await;
            // While a recording is played, this is the recording's time.
            let now_ms = self.now_ms();
            lock::write(&self.history).end_bucket(now_ms, || self.take_new_usage());
        }
    }

    /// Sets the size limit of the history on disk.
    pub(crate) fn set_history_size_limit(&self, size_bytes: u64) {
        lock::read(&self.history).set_size_limit(size_bytes);
    }

    /// Writes the remaining history to disk, with a time limit.
    pub(crate) fn write_remaining_history(&self) {
        let used = || {
            lock::write(&self.usage).end();
            self.take_new_usage()
        };
        let writer = lock::write(&self.history).end_writing(used);
        if let Some(writer) = writer {
            writer.finish_writing();
        }
    }

    /// Returns the usage by owner since the server's start.
    pub(crate) fn usage(&self) -> Usage {
        lock::read(&self.usage).usage()
    }

    /// Returns the usage by owner in a span. This may wait for the disk.
    pub(crate) fn read_usage(&self, span: &Range<u64>) -> Usage {
        match self
            .joined_socket()
            .map(|socket| client::request_usage(&socket, span))
        {
            Some(Ok(theirs)) => theirs,
            _ => history::read_usage(&self.history, &self.usage, span),
        }
    }

    /// Returns the kernel's cost in a span, as far as it is known.
    pub(crate) fn kernel_cost(&self, kernel_id: &str, span: &Range<u64>, view: &View) -> Cost {
        let inventory = self.read_state(|state| state.inventory.clone());
        let gpus = inventory.as_ref().map(|inventory| &*inventory.gpus);
        lock::read(&self.kernels).cost_in_span(
            kernel_id,
            (span.start as f64, span.end as f64),
            gpus.unwrap_or_default(),
            |user| view.permits_cost(user),
        )
    }

    /// Waits until the costs up to the time `to_ms` are final.
    pub(crate) async fn wait_for_final_costs(&self, to_ms: u64) {
        let mut changes = self.subscribe_changes();
        let is_final = || lock::read(&self.kernels).is_final_until(to_ms as f64);
        while !is_final() && changes.changed().await.is_ok() {}
    }

    /// Returns the usage that was added since the last call.
    pub(super) fn take_new_usage(&self) -> Vec<Period> {
        lock::write(&self.usage).take_new_usage()
    }

    pub(super) fn recent_history(&self, reach_ms: u64, wanted: &MetricSelection) -> History {
        lock::read(&self.history)
            .recent
            .recent_history(reach_ms, wanted)
    }
}
