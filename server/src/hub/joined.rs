//! What another server tells, in the place of a collector.

use std::{path::PathBuf, sync::Arc};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{FiringAlert, Record};

use super::{Hub, Notice, encode};
use crate::{
    frame::{CollectorStatus, Hello, ServerFrame},
    lock,
};

/// While this exists, readings are another server's.
pub(crate) struct Joined(Arc<Hub>);

impl Hub {
    /// From now on, readings come from the server at this socket.
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

    /// The socket of the server that readings come from; `None` where they are this server's own.
    pub(crate) fn joined(&self) -> Option<PathBuf> {
        self.read(|state| state.joined.clone())
    }

    /// Takes in one record of that server, whose text this is.
    pub(crate) fn relay(&self, text: &str, record: Record) {
        self.take_in(text, record, true);
    }

    /// Takes in all that it knows, and its last minutes. Every client gets a hello.
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
        // Those who may see more than all others may.
        if let Some(record) = sample {
            self.take_in(&line(&record), record, true);
        }
    }

    /// Takes in which alerts of that server fire now.
    pub(crate) fn set_firing_there(&self, firing: Vec<FiringAlert>) {
        let firing = self.write(|state| {
            state.alerts_there = firing;
            state.firing()
        });
        self.notify(Notice::of_alerts(firing));
    }

    /// Whether a client asked for traces.
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
