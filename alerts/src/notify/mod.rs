//! Delivery of notifications to webhooks and commands.
//!
//! [`Dispatcher`] runs a thread with a bounded queue for each receiver, so that a hanging receiver
//! delays neither the others nor the sender. [`program`] runs a program within limits, and
//! [`webhook`] builds messages and sends them with curl.

mod program;
mod webhook;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::model::{Event, EventKind, FiringAlert};
use program::PlaceholderValues;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    rules::{DeliveryMethod, Receiver},
    wording,
};

pub use crate::wording::AlertStatus;

/// A notification that an alert fires or has been resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Whether the alert is firing or resolved.
    pub status: AlertStatus,
    /// When the change was noticed, in milliseconds since 1970.
    pub at_ms: u64,
    /// The alert; for a resolved alert, its last state.
    pub alert: FiringAlert,
}

impl Notification {
    pub(crate) fn new(status: AlertStatus, at_ms: u64, alert: &FiringAlert) -> Self {
        Self {
            status,
            at_ms,
            alert: alert.clone(),
        }
    }

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

/// A callback that receives the description of a delivery problem. After a report, the problem is
/// not reported again until a delivery has succeeded.
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
    /// Returns the names of the receivers that must be notified of every firing alert. These are
    /// new receivers, and receivers that missed their last notification. The problem of the latter
    /// may have been fixed.
    pub fn replace_receivers(&mut self, receivers: &[Receiver]) -> BTreeSet<String> {
        let mut known = std::mem::take(&mut self.workers);
        let mut ignorant = BTreeSet::new();
        for receiver in receivers {
            let same = known
                .remove(&receiver.name)
                .filter(|worker| worker.receiver == *receiver);
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
    pub fn queue_notification(
        &self,
        notification: &Notification,
        host: &str,
        receivers: &[String],
    ) {
        for worker in receivers.iter().filter_map(|name| self.workers.get(name)) {
            worker.queue_notification(notification.clone(), host.to_owned());
        }
    }

    /// Returns whether each receiver has received all of its notifications, by receiver name.
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

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("receivers", &self.workers.keys())
            .finish_non_exhaustive()
    }
}

/// Returns an error message if the program that a receiver needs is not found.
pub fn describe_missing_program(receiver: &Receiver) -> Option<String> {
    let program = match &receiver.method {
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

/// Delivers one notification in a single attempt.
///
/// # Errors
/// Returns the reason why the notification was not delivered.
pub fn deliver_notification(
    receiver: &Receiver,
    notification: &Notification,
    host: &str,
) -> Result<(), DeliveryError> {
    match &receiver.method {
        DeliveryMethod::Webhook { address, format } => webhook::post_json(
            address,
            &webhook::webhook_body(*format, notification, host),
            receiver.timeout,
        ),
        DeliveryMethod::Command { words } => {
            let values = PlaceholderValues::new(notification, host);
            let mut words = words.iter().map(|word| values.fill_placeholders(word));
            let program = words.next().unwrap_or_default();
            let input = webhook::event_json(notification, host).to_string();
            let output = program::run_program(
                &program,
                words,
                values.environment_variables(),
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

/// The maximum number of notifications that wait for one receiver. When the queue is full, the
/// oldest is dropped.
const MAX_WAITING_NOTIFICATIONS: usize = 256;
/// The delay before the first retry. The delay doubles after each failure, up to `MAX_RETRY_DELAY`.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);
/// The maximum age of a notification. Delivery of an older notification is not retried, because it
/// no longer describes the present.
const MAX_NOTIFICATION_AGE: Duration = Duration::from_hours(24);

/// The delivery thread of one receiver, with a bounded queue. When this value is dropped, the
/// thread ends after the current delivery.
struct DeliveryWorker {
    receiver: Receiver,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<QueuedNotification>,
    is_closed: bool,
    /// The status, except for the number of waiting notifications, which is computed on request.
    status: ReceiverStatus,
    is_under_way: bool,
    /// Whether a notification was lost since the last successful delivery.
    is_behind: bool,
}

/// A queued notification with the number of attempts so far.
struct QueuedNotification {
    notification: Notification,
    host: String,
    attempts: u32,
    since: Instant,
}

impl DeliveryWorker {
    fn start(receiver: Receiver, on_problem: &ProblemCallback) -> Self {
        let queue = Arc::new(Queue::default());
        let (own, of_thread) = (receiver.clone(), Arc::clone(&queue));
        let problem = Arc::clone(on_problem);
        let started = thread::Builder::new()
            .name("alert-receiver".to_owned())
            .spawn(move || of_thread.run_deliveries(&own, &*problem));
        if let Err(error) = started {
            on_problem(format!(
                "alerts cannot be sent to {}: no thread could be started: {error}",
                receiver.name
            ));
        }
        Self { receiver, queue }
    }

    fn queue_notification(&self, notification: Notification, host: String) {
        let mut state = self.queue.lock();
        if state.waiting.len() == MAX_WAITING_NOTIFICATIONS {
            let oldest = state.waiting.pop_front();
            oldest.inspect(|oldest| {
                state.record_lost_notification(
                    &self.receiver,
                    oldest,
                    "too many alerts are waiting",
                );
            });
        }
        state.waiting.push_back(QueuedNotification {
            notification,
            host,
            attempts: 0,
            since: Instant::now(),
        });
        drop(state);
        self.queue.changed.notify_one();
    }

    /// Returns `true` if a notification was lost since the last successful delivery.
    fn has_lost_notifications(&self) -> bool {
        self.queue.lock().is_behind
    }

    /// Returns `true` if no notification waits, is being delivered, or was lost since the last
    /// successful delivery.
    fn is_up_to_date(&self) -> bool {
        let state = self.queue.lock();
        state.waiting.is_empty() && !state.is_under_way && !state.is_behind
    }

    fn status(&self) -> ReceiverStatus {
        let state = self.queue.lock();
        ReceiverStatus {
            name: self.receiver.name.clone(),
            kind: self.receiver.describe_kind(),
            waiting: state.waiting.len(),
            ..state.status.clone()
        }
    }
}

impl Drop for DeliveryWorker {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
    }
}

impl QueueState {
    fn record_lost_notification(
        &mut self,
        receiver: &Receiver,
        lost: &QueuedNotification,
        why: &str,
    ) {
        self.status.failed += 1;
        self.is_behind = true;
        let QueuedNotification {
            notification,
            attempts,
            ..
        } = lost;
        let headline = wording::alert_headline(notification.status, &notification.alert);
        let times = if *attempts == 1 {
            "1 attempt".to_owned()
        } else {
            format!("{attempts} attempts")
        };
        let what = format!("{headline}: not delivered after {times}: {why}");
        tracing::warn!("alerts: {}: {what}", receiver.name);
        self.status.given_up = Some(what);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_deliveries(&self, receiver: &Receiver, on_problem: &(dyn Fn(String) + Send + Sync)) {
        let mut retry = MIN_RETRY_DELAY;
        while let Some(mut next) = self.wait_for_next() {
            next.attempts += 1;
            let Err(DeliveryError { message, attempts }) =
                deliver_notification(receiver, &next.notification, &next.host)
            else {
                let mut state = self.lock();
                state.status.sent += 1;
                (state.is_behind, state.is_under_way) = (false, false);
                if state.status.error.take().is_some() {
                    tracing::info!("alerts reach {} again", receiver.name);
                }
                retry = MIN_RETRY_DELAY;
                continue;
            };
            let mut state = self.lock();
            state.is_under_way = false;
            if state.status.error.replace(message.clone()).is_none() {
                // The problem is reported only once. It can be reported again after a delivery has
                // succeeded.
                on_problem(format!("Alerts do not reach {}: {message}", receiver.name));
            }
            if next.attempts >= attempts || next.since.elapsed() >= MAX_NOTIFICATION_AGE {
                state.record_lost_notification(receiver, &next, &message);
                retry = MIN_RETRY_DELAY;
            } else if state.waiting.len() >= MAX_WAITING_NOTIFICATIONS {
                state.record_lost_notification(receiver, &next, "too many alerts are waiting");
            } else {
                // The failed notification is retried before the notifications that arrived in the
                // meantime.
                state.waiting.push_front(next);
                let is_open = |state: &mut QueueState| !state.is_closed;
                drop(self.changed.wait_timeout_while(state, retry, is_open));
                retry = (retry * 2).min(MAX_RETRY_DELAY);
            }
        }
    }

    /// Waits for the next notification; returns `None` when the queue is closed.
    fn wait_for_next(&self) -> Option<QueuedNotification> {
        let is_idle = |state: &mut QueueState| state.waiting.is_empty() && !state.is_closed;
        let mut state = self
            .changed
            .wait_while(self.lock(), is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        state.is_under_way = true;
        state.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc};

    use super::*;
    use crate::{notify::webhook::payload_tests::make_notification, rules::DeliveryMethod};

    fn make_command_receiver(name: &str, script: &str, timeout_ms: u64) -> Receiver {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        Receiver {
            name: name.into(),
            method: DeliveryMethod::Command { words },
            timeout: Duration::from_millis(timeout_ms),
        }
    }

    fn wait_until(what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "waited in vain until {what}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn hanging_receiver_does_not_delay_sender() {
        let (sender, problems) = mpsc::channel();
        let on_problem: ProblemCallback = Arc::new(move |message| drop(sender.send(message)));
        let worker =
            DeliveryWorker::start(make_command_receiver("slow", "sleep 60", 200), &on_problem);
        let begun = Instant::now();
        for _ in 0..MAX_WAITING_NOTIFICATIONS + 10 {
            worker.queue_notification(make_notification(), "gpu1".into());
        }
        assert!(
            begun.elapsed() < Duration::from_millis(150),
            "{:?}",
            begun.elapsed()
        );
        assert!(
            worker.status().waiting <= MAX_WAITING_NOTIFICATIONS && worker.status().failed >= 9,
            "{:?}",
            worker.status()
        );
        let problem = problems.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(
            problem.starts_with("Alerts do not reach slow: /bin/sh did not end"),
            "{problem}"
        );
        thread::sleep(Duration::from_millis(1800));
        assert!(problems.try_recv().is_err(), "said again");
    }

    #[test]
    fn lost_notifications_are_indicated_until_next_delivery() {
        let folder = tempfile::tempdir().unwrap();
        let on_problem: ProblemCallback = Arc::new(|_| {});
        let mut receiver = make_command_receiver("gate", "", 5000);
        receiver.method = DeliveryMethod::Command {
            words: vec![folder.path().join("program").display().to_string()],
        };
        let worker = DeliveryWorker::start(receiver, &on_problem);
        assert!(!worker.has_lost_notifications());
        worker.queue_notification(make_notification(), String::new());
        wait_until("it cannot be started", || worker.status().failed == 1);
        assert!(worker.has_lost_notifications());
        worker.queue_notification(make_notification(), String::new());
        wait_until("it cannot be started", || worker.status().failed == 2);
        std::os::unix::fs::symlink("/bin/true", folder.path().join("program")).unwrap();
        worker.queue_notification(make_notification(), String::new());
        wait_until("it is delivered", || worker.status().sent == 1);
        assert!(!worker.has_lost_notifications());
    }

    #[test]
    fn failing_command_is_run_three_times() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        // The command writes the rule's name. For the rule `bad`, it then fails; for `slow`, it
        // does not end in time.
        let script = format!(
            "echo $GPUMON_ALERT_RULE >> {}; case $GPUMON_ALERT_RULE in bad) exit 3;; slow) sleep \
             60;; esac",
            runs.display()
        );
        let on_problem: ProblemCallback = Arc::new(|_| {});
        let worker =
            DeliveryWorker::start(make_command_receiver("shell", &script, 1500), &on_problem);
        for rule in ["bad", "slow", "good"] {
            let mut notification = make_notification();
            notification.alert.alert.rule = rule.into();
            worker.queue_notification(notification, String::new());
        }
        wait_until("the last has arrived", || worker.status().sent == 1);
        assert_eq!(
            fs::read_to_string(&runs).unwrap(),
            "bad\nbad\nbad\nslow\nslow\nslow\ngood\n"
        );
        let status = worker.status();
        assert_eq!((status.failed, status.waiting, status.error), (2, 0, None));
        let given_up = status.given_up.unwrap();
        assert!(
            given_up.starts_with("Warning: slow: GPU 3: ") && given_up.contains("3 attempts"),
            "{given_up}"
        );
    }

    #[test]
    fn failed_notifications_are_retried_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (gate, out) = (folder.path().join("gate"), folder.path().join("out"));
        // The command hangs until the file `gate` exists. A timeout counts as a temporary failure,
        // so the delivery is retried.
        let script = format!(
            "test -e {} || sleep 60; echo $GPUMON_ALERT_RULE >> {}",
            gate.display(),
            out.display()
        );
        let on_problem: ProblemCallback = Arc::new(|_| {});
        let worker =
            DeliveryWorker::start(make_command_receiver("gate", &script, 1000), &on_problem);
        for rule in ["first", "second"] {
            let mut notification = make_notification();
            notification.alert.alert.rule = rule.into();
            worker.queue_notification(notification, String::new());
        }
        wait_until("it has failed", || worker.status().error.is_some());
        fs::write(&gate, "").unwrap();
        wait_until("both have arrived", || worker.status().sent == 2);
        assert_eq!(fs::read_to_string(&out).unwrap(), "first\nsecond\n");
        assert_eq!((worker.status().error, worker.status().waiting), (None, 0));
    }
}
