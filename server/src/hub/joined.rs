//! The data of another server, in place of a collector's.

use std::{path::PathBuf, sync::Arc};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{FiringAlert, Record};

use super::{Hub, Notice, encode};
use crate::{
    frame::{CollectorStatus, Hello, ServerFrame},
    lock,
};

/// A guard during which the readings come from another server.
pub(crate) struct Joined(Arc<Hub>);

impl Hub {
    /// Switches to the readings of the server at this socket.
    pub(crate) fn join(self: &Arc<Self>, socket: PathBuf) -> Joined {
        self.set_joined(Some(socket));
        Joined(Arc::clone(self))
    }

    fn set_joined(&self, socket: Option<PathBuf>) {
        self.write(|state| {
            state.collector.joined = socket.as_ref().map(|socket| socket.display().to_string());
            state.joined = socket;
        });
        let status = self.collector();
        self.notify(encode(&ServerFrame::Collector(status)).into());
    }

    /// Returns the socket of the server that provides the readings, or `None` if the collector
    /// does.
    pub(crate) fn joined(&self) -> Option<PathBuf> {
        self.read(|state| state.joined.clone())
    }

    /// Processes a record of the other server. `text` is its JSON.
    pub(crate) fn relay(&self, text: &str, record: Record) {
        self.take_in(text, record, true);
    }

    /// Replaces the data by that of the other server, and adds its last minutes. All clients
    /// receive a hello.
    pub(crate) fn adopt(&self, hello: Hello, past: Option<HistorySpan>) {
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
        self.write(|state| {
            state.events.merge(events);
            state.alerts_there = alerts;
        });
        let CollectorStatus {
            state,
            message,
            resumes_ms,
            ..
        } = collector;
        self.collector_status(state, message, resumes_ms);
        let sample = sample.map(Record::Sample);
        let known = inventory
            .map(Record::Inventory)
            .into_iter()
            .chain(details.into_iter().map(Record::Details));
        for record in known.chain(sample.clone()) {
            self.take_in(&line(&record), record, false);
        }
        self.notify_hello();
        // The newest sample is also sent as a frame, for all who wait for samples.
        if let Some(record) = sample {
            self.take_in(&line(&record), record, true);
        }
    }

    /// Sets the firing alerts of the other server.
    pub(crate) fn set_firing_there(&self, firing: Vec<FiringAlert>) {
        let firing = self.write(|state| {
            state.alerts_there = firing;
            state.firing()
        });
        self.notify(Notice::of_alerts(firing));
    }

    /// Returns `true` if a client has requested traces.
    pub(crate) fn wants_traces(&self) -> bool {
        self.traces.receiver_count() > 0
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.set_firing_there(Vec::new());
        self.0.set_joined(None);
    }
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).expect("records have string keys and no failing parts")
}
