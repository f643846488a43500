//! Alerts: the rules of the alert file are evaluated at every sample. [`routes`] contains the
//! endpoints.
//!
//! The start and the end of an alert are recorded as events. Firing alerts are part of the hello
//! frame and of snapshots. Separate threads notify the receivers, so nothing here waits for them.

pub(crate) mod routes;
mod saved_alerts_file;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use gpumon_alerts::{
    evaluate::{EvaluationInput, Evaluator, RuleStatus, SavedAlert},
    notify::{Dispatcher, ReceiverStatus},
    rules::{AlertFileError, AlertRules},
};
use gpumon_probe::{
    derive::ConditionSettings,
    local_time::time_zone,
    model::{Event, EventKind, FiringAlert, now_ms},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use self::saved_alerts_file::SavedAlertsFile;
use crate::{
    hub::Hub,
    lock,
    sampling::{ViewerCounter, ViewerGuard},
};

pub(crate) use self::routes::build_router;

/// The interval at which rules are evaluated if no samples arrive.
const EVALUATION_INTERVAL: Duration = Duration::from_secs(1);

/// The time limit for reading saved alerts when the server starts.
const DISK_TIMEOUT: Duration = Duration::from_secs(5);

/// The minimum time before firing alerts are sent again if only the values in their texts have
/// changed.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// The alert rules of a server, and the file they come from.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// The rules that were read when the server started.
    pub rules: AlertRules,
    /// The reason why the file could not be read when the server started. In this case there are no
    /// rules.
    pub problem: Option<String>,
    /// The settings for the detection of conditions.
    pub conditions: ConditionSettings,
    /// The path of the alert file, or `None` for no rules. Each notification from this channel
    /// makes the server read the file again, even if the path is the same.
    pub file: watch::Receiver<Option<PathBuf>>,
}

impl Default for AlertSettings {
    /// Returns settings without rules and without a file.
    fn default() -> Self {
        Self {
            rules: AlertRules::default(),
            problem: None,
            conditions: ConditionSettings::default(),
            file: watch::channel(None).1,
        }
    }
}

/// The response of `GET /api/v1/alerts`: the state of each rule and receiver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertStatus {
    /// The rules in the order of the file.
    pub rules: Vec<RuleStatus>,
    /// The receivers in the order of their names.
    pub receivers: Vec<ReceiverStatus>,
    /// The error in the alert file. If there were rules before the error, they remain in force.
    /// `null` if there is no error.
    pub error: Option<String>,
    /// Whether the server has an alert file. The file may contain no rules.
    #[serde(default)]
    pub has_file: bool,
}

/// The rules and their state. Without an alert file, there are no rules.
pub(crate) struct Alerts {
    hub: Arc<Hub>,
    state: Mutex<AlertState>,
    /// The path of the alert file, which can change with the settings.
    file: watch::Receiver<Option<PathBuf>>,
}

struct AlertState {
    evaluator: Evaluator,
    dispatcher: Dispatcher,
    error: Option<String>,
    /// The firing alerts that clients last received, and the time at which they were sent.
    told: (Vec<FiringAlert>, Instant),
    /// The counter of viewers. If a rule needs readings that are taken less often while nobody
    /// watches, the rules count as one viewer.
    watching: Arc<ViewerCounter>,
    watcher: Option<ViewerGuard>,
    /// The file that keeps alerts across a restart, and the alerts that were last written to it.
    file: Option<(SavedAlertsFile, Vec<SavedAlert>)>,
}

impl Alerts {
    pub(crate) fn new(
        hub: Arc<Hub>,
        settings: &AlertSettings,
        watching: Arc<ViewerCounter>,
    ) -> Self {
        let AlertSettings {
            rules,
            problem,
            conditions,
            file,
        } = settings;
        let of_dispatcher = Arc::clone(&hub);
        let mut dispatcher = Dispatcher::new(Arc::new(move |message| {
            report_problem(&of_dispatcher, message);
        }));
        dispatcher.replace_receivers(&rules.receivers);
        let evaluator = Evaluator::new(rules, time_zone(), conditions.clone());
        let error = problem.as_ref().map(|problem| {
            format!("There are no alerts, because the alert file could not be loaded: {problem}")
        });
        if let Some(message) = &error {
            report_problem(&hub, message.clone());
        }
        let last_shown = (Vec::new(), Instant::now());
        let watcher = rules.uses_slow_fields().then(|| watching.add_viewer());
        let state = AlertState {
            evaluator,
            dispatcher,
            error,
            told: last_shown,
            watching,
            watcher,
            file: None,
        };
        Self {
            hub,
            state: Mutex::new(state),
            file: file.clone(),
        }
    }

    /// Evaluates the rules, and sends the results to clients and receivers.
    fn evaluate_rules(&self, now_ms: u64) {
        let known = self.hub.alert_readings(now_ms);
        let readings = EvaluationInput {
            sample: known.sample.as_deref(),
            inventory: known.inventory.as_deref(),
            is_watched: known.is_watched,
            started_ms: known.started_ms,
        };
        let host = known
            .inventory
            .as_ref()
            .map_or_else(saved_alerts_file::hostname, |inventory| {
                inventory.hostname.clone()
            });
        let mut state = self.lock();
        let outcome = state.evaluator.evaluate_rules(&readings, now_ms);
        for event in outcome.events {
            self.hub.add_event(event);
        }
        for (notification, receivers) in &outcome.notifications {
            state
                .dispatcher
                .queue_notification(notification, &host, receivers);
        }
        let firing = state.evaluator.firing_alerts();
        let (told, at) = &state.told;
        let is_renewed = *told != firing && at.elapsed() >= RENEW_INTERVAL;
        if is_renewed
            || !told
                .iter()
                .map(copy_without_text)
                .eq(firing.iter().map(copy_without_text))
        {
            state.told = (firing.clone(), Instant::now());
            self.hub.set_firing_alerts(firing);
        }
        state.save_changed_alerts();
    }

    /// Restores the alerts that were saved in the data directory before the last restart.
    async fn restore(&self, folder: PathBuf) {
        let shown = folder.display().to_string();
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the disk does not respond");
        let opened = timeout(
            DISK_TIMEOUT,
            spawn_blocking(move || SavedAlertsFile::open(&folder)),
        )
        .await;
        let opened = opened.map_or_else(
            |_| Err(late()),
            |opened| opened.map_err(io::Error::other).flatten(),
        );
        let (file, saved) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        "another gpumon server uses this directory: give each server its own \
                         --data-dir"
                            .to_owned()
                    }
                    _ => format!("{error}: choose another directory with --data-dir"),
                };
                tracing::warn!(
                    "alerts: sent notifications cannot be recorded in {shown}: {why}; after a \
                     restart, receivers are notified again"
                );
                return;
            }
        };
        let saved = saved.unwrap_or_else(|error| {
            tracing::warn!(
                "alerts: cannot read the list of notified receivers from {shown}: {error}; \
                 receivers are notified again"
            );
            Vec::new()
        });
        let mut state = self.lock();
        state.evaluator.restore(saved.clone());
        state.file = Some((file, saved));
    }

    /// Writes the remaining alerts to the file, with a time limit.
    pub(crate) fn finish_writing(&self) {
        let file = self.lock().file.take();
        if let Some((file, _)) = file {
            file.finish_writing();
        }
    }

    /// Replaces the rules. If the file could not be read, keeps the old rules and reports the
    /// error.
    fn replace_rules(&self, read: Result<AlertRules, AlertFileError>) {
        let mut state = self.lock();
        match read {
            Ok(rules) => {
                tracing::info!(
                    "alerts: {} rules, {} receivers",
                    rules.rules.len(),
                    rules.receivers.len()
                );
                let new_receivers = state.dispatcher.replace_receivers(&rules.receivers);
                state.evaluator.replace_rules(&rules, &new_receivers);
                state.watcher = rules
                    .uses_slow_fields()
                    .then(|| state.watching.add_viewer());
                state.error = None;
            }
            Err(error) => {
                let message = format!(
                    "The changed alert file could not be loaded, and the previous rules stay in \
                     effect: {error}"
                );
                state.error = Some(message.clone());
                report_problem(&self.hub, message);
            }
        }
    }

    /// Silences a rule. Returns `false` if there is no rule with this name.
    fn silence_rule(&self, rule: &str, until_ms: Option<u64>) -> bool {
        self.lock().evaluator.silence_rule(rule, until_ms)
    }

    fn status(&self, now_ms: u64) -> AlertStatus {
        let state = self.lock();
        AlertStatus {
            rules: state.evaluator.status(now_ms),
            receivers: state.dispatcher.status(),
            error: state.error.clone(),
            has_file: self.file.borrow().is_some(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AlertState> {
        lock::lock(&self.state)
    }
}

impl AlertState {
    /// Writes the alerts to the file if they have changed. If the disk is busy, they are written at
    /// a later call.
    fn save_changed_alerts(&mut self) {
        let Some((file, written)) = &mut self.file else {
            return;
        };
        let saved = SavedAlert::merge_saved_alerts(
            written,
            self.evaluator.saved_alerts(),
            &self.dispatcher.delivery_completeness_by_receiver(),
        );
        let is_written = saved.len() == written.len()
            && saved
                .iter()
                .zip(&*written)
                .all(|(a, b)| a.equals_except_text(b));
        if !is_written && file.try_queue_write(saved.clone()) {
            *written = saved;
        }
    }
}

/// Evaluates the rules, and reads the alert file again when notified. Firing alerts and notified
/// receivers are saved in the data directory. This function never returns.
pub(crate) async fn run_alerts(alerts: Arc<Alerts>, data_folder: Option<PathBuf>) {
    let mut file = alerts.file.clone();
    if let Some(folder) = data_folder {
        alerts.restore(folder).await;
    }
    let mut samples = alerts.hub.subscribe_samples();
    let mut ticks = interval(EVALUATION_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut may_reload = true;
    // The file may be on a disk that does not respond, so it is read by another thread.
    let mut reading = JoinSet::new();
    loop {
        tokio::select! {
            // The channel of samples cannot be closed, because `alerts` owns the hub.
            _ = samples.changed() => {}
            _ = ticks.tick() => {}
            reloaded = file.changed(), if may_reload && reading.is_empty() => match reloaded {
                Ok(()) => {
                    let file = file.borrow_and_update().clone();
                    reading.spawn_blocking(move || {
                        file.map_or_else(|| Ok(AlertRules::default()), |file| AlertRules::read(&file))
                    });
                }
                // The sender is gone, so there will be no further reload requests.
                Err(_) => may_reload = false,
            },
            Some(Ok(read)) = reading.join_next() => alerts.replace_rules(read),
        }
        alerts.evaluate_rules(now_ms());
    }
}

/// Returns a copy of the alert without its text. The text contains the current value, which must
/// not count as a change of the alert.
fn copy_without_text(alert: &FiringAlert) -> FiringAlert {
    let mut alert = alert.clone();
    alert.alert.text = String::new();
    alert
}

fn report_problem(hub: &Hub, message: String) {
    tracing::warn!("{message}");
    hub.add_event(Event {
        at_ms: now_ms(),
        gpu: None,
        what: EventKind::AlertProblem { message },
    });
}
