//! Alerts: the rules of the alert file, evaluated at every sample; [`routes`] are their endpoints.
//!
//! What fires and resolves is an event, what fires now is in hello and snapshot. Receivers are told
//! by threads of their own, and nothing here waits for them.

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

/// Rules are evaluated at least so often, also where no samples come.
const INTERVAL: Duration = Duration::from_secs(1);

/// A disk that is slower is not waited for.
const DISK_TIMEOUT: Duration = Duration::from_secs(5);

/// A value that moves while its alert fires is told again so often.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Which rules hold.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// As they were read at the start.
    pub rules: AlertRules,
    /// The reason why the file was not read at the start, so that there are no rules.
    pub problem: Option<String>,
    /// With which conditions are found.
    pub conditions: ConditionSettings,
    /// Where they are read anew from; `None` for no rules. It changes, perhaps to the same,
    /// whenever they are to be.
    pub file: watch::Receiver<Option<PathBuf>>,
}

impl Default for AlertSettings {
    /// No rules, now and later.
    fn default() -> Self {
        Self {
            rules: AlertRules::default(),
            problem: None,
            conditions: ConditionSettings::default(),
            file: watch::channel(None).1,
        }
    }
}

/// `GET /api/v1/alerts`: every rule and receiver, and how it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertStatus {
    /// In the order of the file.
    pub rules: Vec<RuleStatus>,
    /// In the order of their names.
    pub receivers: Vec<ReceiverStatus>,
    /// What is wrong with the file. The rules from before the error remain in force, if there were
    /// any. `None` if nothing is wrong.
    pub error: Option<String>,
    /// Whether the server has an alert file, which may have no rules.
    #[serde(default)]
    pub has_file: bool,
}

/// The rules and what has become of them; without an alert file there are none.
pub(crate) struct Alerts {
    hub: Arc<Hub>,
    state: Mutex<State>,
    /// The alert file, which settings can change.
    file: watch::Receiver<Option<PathBuf>>,
}

struct State {
    evaluator: Evaluator,
    dispatcher: Dispatcher,
    error: Option<String>,
    /// What clients were told to fire, and when.
    told: (Vec<FiringAlert>, Instant),
    /// Rules about what is read rarely while nobody watches are somebody who does.
    watching: Arc<Watching>,
    watcher: Option<Watcher>,
    /// What outlives a restart, and what of it was handed over to be written.
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

    /// Takes in what is known now, and tells clients and receivers what follows.
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

    /// Takes up what was known before the server's start, where there is a data directory.
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

    /// Writes what is left; waits for the disk, but not for long.
    pub(crate) fn end(&self) {
        let file = self.lock().file.take();
        if let Some((file, _)) = file {
            file.end();
        }
    }

    /// Takes other rules, or keeps those before and says what is wrong.
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

    /// False where there is no rule of this name.
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
    /// Has written what is to outlive a restart, where that has changed. What finds the disk busy
    /// comes the next time.
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

/// Evaluates the rules and reads them anew when asked to; keeps in this directory who was told.
/// Never ends.
pub(crate) async fn run(alerts: Arc<Alerts>, data_folder: Option<PathBuf>) {
    let mut file = alerts.file.clone();
    if let Some(folder) = data_folder {
        alerts.restore(folder).await;
    }
    let mut samples = alerts.hub.samples();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut may_reload = true;
    // The file may be on a disk that does not answer.
    let mut reading = JoinSet::new();
    loop {
        tokio::select! {
            // The hub lives as long as this does.
            _ = samples.changed() => {}
            _ = ticks.tick() => {}
            reloaded = file.changed(), if may_reload && reading.is_empty() => match reloaded {
                Ok(()) => {
                    let file = file.borrow_and_update().clone();
                    reading.spawn_blocking(move || {
                        file.map_or_else(|| Ok(AlertRules::default()), |file| AlertRules::read(&file))
                    });
                }
                // Nobody is left who could ask for it.
                Err(_) => may_reload = false,
            },
            Some(Ok(read)) = reading.join_next() => alerts.reload(read),
        }
        alerts.evaluate(now_ms());
    }
}

/// What tells an alert from others, and not what changes while it fires.
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
