//! Alerts: the rules of the alert file, which are evaluated at every sample. [`routes`] has their
//! endpoints.
//!
//! The start and end of an alert is an event; firing alerts are part of the hello and of snapshots.
//! Separate threads notify the receivers, and nothing here waits for them.

pub(crate) mod routes;
mod told_file;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gpumon_alerts::{
    evaluate::{Evaluator, Readings, RuleStatus, SavedAlert},
    notify::{Dispatcher, ReceiverStatus},
    rules::{AlertRules, BadRules},
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

use self::told_file::ToldFile;
use crate::{
    hub::Hub,
    watching::{Watcher, Watching},
};

pub(crate) use self::routes::router;

/// The interval at which rules are evaluated if no samples arrive.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time limit for reading saved alerts at the start.
const DISK_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval at which clients receive new values of firing alerts.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// The alert rules of a server, and the file they come from.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// The rules that were read at the start.
    pub rules: AlertRules,
    /// The reason why the file was not read at the start. There are no rules in this case.
    pub problem: Option<String>,
    /// The settings for the detection of conditions.
    pub conditions: ConditionSettings,
    /// The alert file; `None` for no rules. Each change notification makes the server read the file
    /// again, even if the path is the same.
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
    /// Whether the server has an alert file, which may have no rules.
    #[serde(default)]
    pub has_file: bool,
}

/// The rules and their state. Without an alert file, there are no rules.
pub(crate) struct Alerts {
    hub: Arc<Hub>,
    state: Mutex<State>,
    /// The path of the alert file, which can change with the settings.
    file: watch::Receiver<Option<PathBuf>>,
}

struct State {
    evaluator: Evaluator,
    dispatcher: Dispatcher,
    error: Option<String>,
    /// The firing alerts that clients last received, and the time of that.
    told: (Vec<FiringAlert>, Instant),
    /// Rules about readings that are taken less often while nobody watches count as a viewer.
    watching: Arc<Watching>,
    watcher: Option<Watcher>,
    /// The file of alerts that are kept over a restart, and its last contents.
    file: Option<(ToldFile, Vec<SavedAlert>)>,
}

impl Alerts {
    pub(crate) fn new(hub: Arc<Hub>, settings: &AlertSettings, watching: Arc<Watching>) -> Self {
        let AlertSettings {
            rules,
            problem,
            conditions,
            file,
        } = settings;
        let of_dispatcher = Arc::clone(&hub);
        let mut dispatcher = Dispatcher::new(Arc::new(move |message| {
            tell_problem(&of_dispatcher, message);
        }));
        dispatcher.replace(&rules.receivers);
        let evaluator = Evaluator::new(rules, time_zone(), conditions.clone());
        let error = problem.as_ref().map(|problem| {
            format!("There are no alerts, since the alert file was not loaded: {problem}")
        });
        if let Some(message) = &error {
            tell_problem(&hub, message.clone());
        }
        let told = (Vec::new(), Instant::now());
        let watcher = rules.watch().then(|| watching.begin());
        let state = State {
            evaluator,
            dispatcher,
            error,
            told,
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
    fn evaluate(&self, now_ms: u64) {
        let known = self.hub.readings(now_ms);
        let readings = Readings {
            sample: known.sample.as_deref(),
            inventory: known.inventory.as_deref(),
            is_watched: known.is_watched,
            started_ms: known.started_ms,
        };
        let host = known
            .inventory
            .as_ref()
            .map_or_else(told_file::host, |inventory| inventory.hostname.clone());
        let mut state = self.lock();
        let outcome = state.evaluator.update(&readings, now_ms);
        for event in outcome.events {
            self.hub.add_event(event);
        }
        for (notification, receivers) in &outcome.notifications {
            state.dispatcher.send(notification, &host, receivers);
        }
        let firing = state.evaluator.firing();
        let (told, at) = &state.told;
        let is_renewed = *told != firing && at.elapsed() >= RENEW_INTERVAL;
        if is_renewed
            || !told
                .iter()
                .map(without_value)
                .eq(firing.iter().map(without_value))
        {
            state.told = (firing.clone(), Instant::now());
            self.hub.set_firing(firing);
        }
        state.save();
    }

    /// Restores the alerts from before the last restart from the data directory.
    async fn restore(&self, folder: PathBuf) {
        let shown = folder.display().to_string();
        let late = || io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer");
        let opened = timeout(
            DISK_TIMEOUT,
            spawn_blocking(move || ToldFile::open(&folder)),
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
                        "another gpumon does so there: give each its own --data-dir".to_owned()
                    }
                    _ => format!("{error}: name another directory with --data-dir"),
                };
                tracing::warn!(
                    "alerts: which receivers are notified is not kept in {shown}: {why}; they are notified again after a restart"
                );
                return;
            }
        };
        let saved = saved.unwrap_or_else(|error| {
            tracing::warn!(
                "alerts: cannot read which receivers were notified from {shown}: {error}; they are notified again"
            );
            Vec::new()
        });
        let mut state = self.lock();
        state.evaluator.restore(saved.clone());
        state.file = Some((file, saved));
    }

    /// Writes the remaining data, with a time limit.
    pub(crate) fn end(&self) {
        let file = self.lock().file.take();
        if let Some((file, _)) = file {
            file.end();
        }
    }

    /// Replaces the rules, or keeps the old ones and reports the error.
    fn reload(&self, read: Result<AlertRules, BadRules>) {
        let mut state = self.lock();
        match read {
            Ok(rules) => {
                tracing::info!(
                    "alerts: {} rules, {} receivers",
                    rules.rules.len(),
                    rules.receivers.len()
                );
                let new_receivers = state.dispatcher.replace(&rules.receivers);
                state.evaluator.replace(&rules, &new_receivers);
                state.watcher = rules.watch().then(|| state.watching.begin());
                state.error = None;
            }
            Err(error) => {
                let message = format!(
                    "The alert file was changed and not loaded, the rules before hold: {error}"
                );
                state.error = Some(message.clone());
                tell_problem(&self.hub, message);
            }
        }
    }

    /// Silences a rule. Returns `false` if there is no rule with this name.
    fn silence(&self, rule: &str, until_ms: Option<u64>) -> bool {
        self.lock().evaluator.silence(rule, until_ms)
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes the alerts to the file if they have changed. If the disk is busy, they are written at
    /// a later call.
    fn save(&mut self) {
        let Some((file, written)) = &mut self.file else {
            return;
        };
        let saved = SavedAlert::merge(
            written,
            self.evaluator.saved(),
            &self.dispatcher.is_up_to_date(),
        );
        let is_written =
            saved.len() == written.len() && saved.iter().zip(&*written).all(|(a, b)| a.is_like(b));
        if !is_written && file.write(saved.clone()) {
            *written = saved;
        }
    }
}

/// Evaluates the rules, and reads them again on request. The data directory keeps which receivers
/// were notified. This function never returns.
pub(crate) async fn run(alerts: Arc<Alerts>, data_folder: Option<PathBuf>) {
    let mut file = alerts.file.clone();
    if let Some(folder) = data_folder {
        alerts.restore(folder).await;
    }
    let mut samples = alerts.hub.samples();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut may_reload = true;
    // The file may be on a disk that does not respond, so it is read by another thread.
    let mut reading = JoinSet::new();
    loop {
        tokio::select! {
            // The channel cannot be closed, because `alerts` owns the hub.
            _ = samples.changed() => {}
            _ = ticks.tick() => {}
            reloaded = file.changed(), if may_reload && reading.is_empty() => match reloaded {
                Ok(()) => {
                    let file = file.borrow_and_update().clone();
                    reading.spawn_blocking(move || {
                        file.map_or_else(|| Ok(AlertRules::default()), |file| AlertRules::read(&file))
                    });
                }
                // The sender is gone, so there will be no further requests.
                Err(_) => may_reload = false,
            },
            Some(Ok(read)) = reading.join_next() => alerts.reload(read),
        }
        alerts.evaluate(now_ms());
    }
}

/// Returns the alert without its text, which contains the current value.
fn without_value(alert: &FiringAlert) -> FiringAlert {
    let mut alert = alert.clone();
    alert.alert.text = String::new();
    alert
}

fn tell_problem(hub: &Hub, message: String) {
    tracing::warn!("{message}");
    hub.add_event(Event {
        at_ms: now_ms(),
        gpu: None,
        what: EventKind::AlertProblem { message },
    });
}
