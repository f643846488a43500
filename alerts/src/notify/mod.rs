//! Delivery of notifications to webhooks and commands.
//!
//! [`Dispatcher`] runs a [`worker`] thread with a bounded queue for each receiver, so that a
//! hanging receiver delays neither the others nor the sender. [`program`] runs a program within
//! limits, [`webhook`] sends requests with curl, and [`payload`] builds the messages.

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

use self::{values::PlaceholderValues, worker::DeliveryWorker};
use crate::rules::{DeliveryMethod, Receiver};
pub use crate::status::AlertStatus;

/// A notification that an alert fires or has been resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Whether the alert fires or is resolved.
    pub status: AlertStatus,
    /// When the change was noticed, in milliseconds since 1970.
    pub at_ms: u64,
    /// The alert in its current or last state.
    pub alert: FiringAlert,
}

impl Notification {
    /// Converts the notification into an event of the event stream.
    pub(crate) fn into_event(self) -> Event {
        let FiringAlert { gpu, alert } = self.alert;
        let what = match self.status {
            AlertStatus::Firing => EventKind::AlertFiring(alert),
            AlertStatus::Resolved => EventKind::AlertResolved(alert),
        };
        Event {
            at_ms: self.at_ms,
            gpu,
            what,
        }
    }
}

/// Status of a receiver of notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiverStatus {
    /// Name of the receiver in the alert file.
    pub name: String,
    /// Kind of the receiver, such as `webhook (slack)`, without secrets.
    pub kind: String,
    /// Number of notifications that were delivered.
    pub sent: u64,
    /// Number of notifications that were given up after failed attempts.
    pub failed: u64,
    /// Number of notifications that wait for delivery.
    pub waiting: usize,
    /// Why the last attempt failed; `null` if it succeeded.
    pub error: Option<String>,
    /// The last notification that was given up, and why; `null` if there is none.
    #[serde(default)]
    pub given_up: Option<String>,
}

/// The reason why a notification was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryError {
    /// The problem and its remedy, without secrets.
    pub message: String,
    /// The maximum number of attempts; 1 if another attempt would fail in the same way.
    pub attempts: u32,
}

/// A callback that receives the description of a problem, once for each series of failures.
pub type ProblemCallback = Arc<dyn Fn(String) + Send + Sync>;

/// The delivery threads of all receivers.
pub struct Dispatcher {
    workers: BTreeMap<String, DeliveryWorker>,
    on_problem: ProblemCallback,
}

impl Dispatcher {
    /// Creates a dispatcher without receivers.
    pub fn new(on_problem: ProblemCallback) -> Self {
        Self {
            workers: BTreeMap::new(),
            on_problem,
        }
    }

    /// Replaces the receivers. Unchanged receivers keep their waiting notifications; all other
    /// waiting notifications are dropped.
    ///
    /// Returns the names of the receivers that must be notified of every firing alert: new
    /// receivers, and receivers that missed their last notification, because their problem may have
    /// been fixed.
    pub fn replace_receivers(&mut self, receivers: &[Receiver]) -> BTreeSet<String> {
        let mut known = std::mem::take(&mut self.workers);
        let mut ignorant = BTreeSet::new();
        for receiver in receivers {
            let same = known
                .remove(&receiver.name)
                .filter(|worker| worker.receiver() == receiver);
            if same
                .as_ref()
                .is_none_or(DeliveryWorker::has_lost_notifications)
            {
                ignorant.insert(receiver.name.clone());
            }
            let worker =
                same.unwrap_or_else(|| DeliveryWorker::start(receiver.clone(), &self.on_problem));
            self.workers.insert(receiver.name.clone(), worker);
        }
        ignorant
    }

    /// Queues a notification for the named receivers. `host` is the name of the machine.
    pub fn send(&self, notification: &Notification, host: &str, receivers: &[String]) {
        for worker in receivers.iter().filter_map(|name| self.workers.get(name)) {
            worker.push(notification.clone(), host.to_owned());
        }
    }

    /// Returns for each receiver, by name, whether it has received all of its notifications.
    pub fn delivery_completeness_by_receiver(&self) -> BTreeMap<String, bool> {
        self.workers
            .iter()
            .map(|(name, worker)| (name.clone(), worker.is_up_to_date()))
            .collect()
    }

    pub fn status(&self) -> Vec<ReceiverStatus> {
        self.workers.values().map(DeliveryWorker::status).collect()
    }
}

/// Returns an error message if the program that a receiver needs is not found.
pub fn describe_missing_program(receiver: &Receiver) -> Option<String> {
    let program = match &receiver.way {
        DeliveryMethod::Webhook { .. } => webhook::CURL,
        DeliveryMethod::Command { words } => words.first()?,
    };
    if program::program_exists(program) {
        return None;
    }
    Some(format!(
        "the program {program} was not found; install it, or use its full path"
    ))
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("receivers", &self.workers.keys())
            .finish_non_exhaustive()
    }
}

/// Delivers one notification in a single attempt.
///
/// # Errors
/// Returns the reason why the notification was not delivered.
pub fn deliver_notification(
    receiver: &Receiver,
    notification: &Notification,
    host: &str,
) -> Result<(), DeliveryError> {
    match &receiver.way {
        DeliveryMethod::Webhook { address, format } => webhook::post_json(
            address,
            &payload::webhook_body(*format, notification, host),
            receiver.timeout,
        ),
        DeliveryMethod::Command { words } => {
            let values = PlaceholderValues::new(notification, host);
            let mut words = words.iter().map(|word| values.fill_placeholders(word));
            let program = words.next().unwrap_or_default();
            let input = payload::event_json(notification, host).to_string();
            let output = program::run_program(
                &program,
                words,
                values.variables(),
                &input,
                receiver.timeout,
            )?;
            if !output.text.is_empty() {
                tracing::info!("alerts: {}: {}", receiver.name, output.text.trim_end());
            }
            output.check_success()
        }
    }
}
