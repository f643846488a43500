//! From alerts to receivers: webhooks and commands.
//!
//! [`Dispatcher`] has a [`worker`] for each receiver, a thread with a bounded queue, so that one
//! that hangs delays neither the others nor whoever sends. [`program`] runs a program within
//! limits, [`webhook`] does so with curl, [`payload`] is what they get.

mod payload;
mod program;
mod values;
mod webhook;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gpumon_probe::model::{Event, EventKind, FiringAlert};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{values::Values, worker::Worker};
use crate::rules::{Receiver, Way};
pub use crate::status::Status;

/// What a receiver is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Whether it fires or not any more.
    pub status: Status,
    /// When that was noticed.
    pub at_ms: u64,
    /// The alert, as it is or was last.
    pub alert: FiringAlert,
}

impl Notification {
    /// Returns the event of the stream.
    pub(crate) fn into_event(self) -> Event {
        let FiringAlert { gpu, alert } = self.alert;
        let what = match self.status {
            Status::Firing => EventKind::AlertFiring(alert),
            Status::Resolved => EventKind::AlertResolved(alert),
        };
        Event {
            at_ms: self.at_ms,
            gpu,
            what,
        }
    }
}

/// How a receiver is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiverStatus {
    /// Its name.
    pub name: String,
    /// What it is, without its secrets.
    pub kind: String,
    /// Notifications that reached it.
    pub sent: u64,
    /// Notifications that did not, and are not tried again.
    pub failed: u64,
    /// Notifications that wait.
    pub waiting: usize,
    /// Why the last attempt failed; `None` where it did not.
    pub error: Option<String>,
    /// The last notification that did not reach it and is not tried again, and why; `None` where
    /// there is none.
    #[serde(default)]
    pub given_up: Option<String>,
}

/// Why a notification was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, and what to do about it, without secrets.
    pub message: String,
    /// So many attempts are worth while: one where the next would end alike.
    pub attempts: u32,
}

/// Told of problems, once for each series of them.
pub type OnProblem = Arc<dyn Fn(String) + Send + Sync>;

/// Sends notifications to all receivers, and waits for none.
pub struct Dispatcher {
    workers: BTreeMap<String, Worker>,
    on_problem: OnProblem,
}

impl Dispatcher {
    /// One without receivers.
    pub fn new(on_problem: OnProblem) -> Self {
        Self {
            workers: BTreeMap::new(),
            on_problem,
        }
    }

    /// Takes other receivers. One that is as before keeps what waits for it; what waits for the
    /// others is dropped.
    ///
    /// Returns the names of those who know nothing of what fires: they are new, or were not reached
    /// last, which may have been mended.
    pub fn replace(&mut self, receivers: &[Receiver]) -> BTreeSet<String> {
        let mut known = std::mem::take(&mut self.workers);
        let mut ignorant = BTreeSet::new();
        for receiver in receivers {
            let same = known
                .remove(&receiver.name)
                .filter(|worker| worker.receiver() == receiver);
            if same.as_ref().is_none_or(Worker::is_behind) {
                ignorant.insert(receiver.name.clone());
            }
            let worker = same.unwrap_or_else(|| Worker::start(receiver.clone(), &self.on_problem));
            self.workers.insert(receiver.name.clone(), worker);
        }
        ignorant
    }

    /// Queues a notification for these receivers; `host` is the machine's name.
    pub fn send(&self, notification: &Notification, host: &str, receivers: &[String]) {
        for worker in receivers.iter().filter_map(|name| self.workers.get(name)) {
            worker.push(notification.clone(), host.to_owned());
        }
    }

    /// Whether each receiver has got all that it was sent, by name.
    pub fn is_up_to_date(&self) -> BTreeMap<String, bool> {
        self.workers
            .iter()
            .map(|(name, worker)| (name.clone(), worker.is_up_to_date()))
            .collect()
    }

    /// How each receiver is.
    pub fn status(&self) -> Vec<ReceiverStatus> {
        self.workers.values().map(Worker::status).collect()
    }
}

/// Why a receiver cannot be reached from this machine, as far as can be seen without trying.
pub fn missing_program(receiver: &Receiver) -> Option<String> {
    let program = match &receiver.way {
        Way::Webhook { .. } => webhook::CURL,
        Way::Command { words } => words.first()?,
    };
    if program::is_found(program) {
        return None;
    }
    Some(format!(
        "the program {program} is not found; install it, or name its path"
    ))
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("receivers", &self.workers.keys())
            .finish_non_exhaustive()
    }
}

/// Delivers one notification now, in one attempt.
///
/// # Errors
/// Why it was not delivered.
pub fn deliver(
    receiver: &Receiver,
    notification: &Notification,
    host: &str,
) -> Result<(), Failure> {
    match &receiver.way {
        Way::Webhook { address, format } => webhook::post(
            address,
            &payload::body(*format, notification, host),
            receiver.timeout,
        ),
        Way::Command { words } => {
            let values = Values::new(notification, host);
            let mut words = words.iter().map(|word| values.fill(word));
            let program = words.next().unwrap_or_default();
            let input = payload::json(notification, host).to_string();
            let output = program::run(
                &program,
                words,
                values.variables(),
                &input,
                receiver.timeout,
            )?;
            if !output.text.is_empty() {
                tracing::info!("alerts: {}: {}", receiver.name, output.text.trim_end());
            }
            output.success()
        }
    }
}
