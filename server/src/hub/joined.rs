//! The data of a joined server, which replaces the data of this server's own collector.

use std::{path::PathBuf, sync::Arc};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{FiringAlert, Record};

use super::{Hub, Notice, encode};
use crate::{
    frame::{CollectorStatus, Hello, ServerFrame},
    lock,
};

/// A guard. Until it is dropped, the readings come from another server.
pub(crate) struct JoinGuard(Arc<Hub>);

impl Hub {
    /// Switches to the readings of the server at `socket`, until the returned guard is dropped.
    pub(crate) fn join_server(self: &Arc<Self>, socket: PathBuf) -> JoinGuard {
        self.set_joined(Some(socket));
        JoinGuard(Arc::clone(self))
    }

    fn set_joined(&self, socket: Option<PathBuf>) {
        self.write_state(|state| {
            state.collector.joined = socket.as_ref().map(|socket| socket.display().to_string());
            state.joined = socket;
        });
        let status = self.collector();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Returns the socket of the joined server, or `None` if the readings come from the collector.
    pub(crate) fn joined_socket(&self) -> Option<PathBuf> {
        self.read_state(|state| state.joined.clone())
    }

    /// Processes a record of the joined server. `text` is the record's JSON.
    pub(crate) fn process_joined_record(&self, text: &str, record: Record) {
        self.process_record(text, record, true);
    }

    /// Replaces all data by the joined server's data, including its history of the last few
    /// minutes. All clients receive a new hello frame.
    pub(crate) fn adopt_server_data(&self, hello: Hello, past: Option<HistorySpan>) {
        let Hello {
            inventory,
            details,
            sample,
            events,
            alerts,
            collector,
            ..
        } = hello;
        if let Some(past) = past {
            lock::write(&self.history).recent.restore(&past);
        }
        self.write_state(|state| {
            state.events.merge(events);
            state.alerts_there = alerts;
        });
        let CollectorStatus {
            state,
            message,
            resumes_ms,
            ..
        } = collector;
        self.set_collector_status(state, message, resumes_ms);
        let sample = sample.map(Record::Sample);
        let known = inventory
            .map(Record::Inventory)
            .into_iter()
            .chain(details.into_iter().map(Record::Details));
        for record in known.chain(sample.clone()) {
            self.process_record(&encode_line(&record), record, false);
        }
        self.notify_hello();
        // The newest sample is also sent as a sample frame, for everything that waits for samples.
        if let Some(record) = sample {
            self.process_record(&encode_line(&record), record, true);
        }
    }

    /// Sets the firing alerts of the joined server.
    pub(crate) fn set_joined_firing_alerts(&self, firing: Vec<FiringAlert>) {
        let firing = self.write_state(|state| {
            state.alerts_there = firing;
            state.firing_alerts()
        });
        self.notify(Notice::from_alerts(firing));
    }

    /// Returns `true` if a client has requested traces.
    pub(crate) fn has_trace_requests(&self) -> bool {
        self.traces.receiver_count() > 0
    }
}

impl Drop for JoinGuard {
    fn drop(&mut self) {
        self.0.set_joined_firing_alerts(Vec::new());
        self.0.set_joined(None);
    }
}

fn encode_line(record: &Record) -> String {
    serde_json::to_string(record).expect("records can always be serialized")
}
