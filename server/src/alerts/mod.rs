//! Alerts: the rules of the alert file, evaluated at every sample; [`routes`] are their endpoints.
//!
//! What fires and resolves is an event, what fires now is in hello and snapshot. Receivers are told by threads of their
//! own, and nothing here waits for them.

mod routes;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gpumon_alerts::{
    evaluate::{Evaluator, Readings, RuleStatus},
    notify::{Dispatcher, ReceiverStatus},
    rules::{AlertRules, BadRules},
};
use gpumon_probe::model::{Event, EventKind, FiringAlert, now_ms};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{hub::Hub, service};

pub(crate) use self::routes::router;

/// Rules are evaluated at least so often, also where no samples come.
const INTERVAL: Duration = Duration::from_secs(1);

/// A value that moves while its alert fires is told again so often.
const RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Which rules hold.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// Where they are read anew from.
    pub file: PathBuf,
    /// As they were read at the start.
    pub rules: AlertRules,
    /// Changes whenever the file is to be read anew.
    pub reload: watch::Receiver<u64>,
}

/// `GET /api/v1/alerts`: every rule and receiver, and how it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertStatus {
    /// In the order of the file.
    pub rules: Vec<RuleStatus>,
    /// In the order of their names.
    pub receivers: Vec<ReceiverStatus>,
    /// What is wrong with the file since it was changed, so that the rules before hold; `None` where nothing is.
    pub error: Option<String>,
}

/// The rules and what has become of them; without an alert file there are none.
pub(crate) struct Alerts {
    hub: Arc<Hub>,
    state: Mutex<State>,
}

struct State {
    evaluator: Evaluator,
    dispatcher: Dispatcher,
    error: Option<String>,
    /// What clients were told to fire, and when.
    told: (Vec<FiringAlert>, Instant),
}

impl Alerts {
    pub(crate) fn new(hub: Arc<Hub>, settings: Option<&AlertSettings>) -> Self {
        let rules = settings.map(|settings| settings.rules.clone()).unwrap_or_default();
        let of_dispatcher = Arc::clone(&hub);
        let mut dispatcher = Dispatcher::new(Arc::new(move |message| tell_problem(&of_dispatcher, message)));
        dispatcher.replace(&rules.receivers);
        let evaluator = Evaluator::new(&rules, TimeZone::system());
        let told = (Vec::new(), Instant::now());
        Self { hub, state: Mutex::new(State { evaluator, dispatcher, error: None, told }) }
    }

    /// Takes in what is known now, and tells clients and receivers what follows.
    fn evaluate(&self, now_ms: u64) {
        let known = self.hub.readings(now_ms);
        let readings = Readings {
            sample: known.sample.as_deref(),
            inventory: known.inventory.as_deref(),
            is_watched: known.is_watched,
        };
        let host = known.inventory.as_ref().map_or("", |inventory| &inventory.hostname);
        let mut state = self.lock();
        let outcome = state.evaluator.update(&readings, now_ms);
        for event in outcome.events {
            self.hub.add_event(event);
        }
        for (notification, receivers) in &outcome.notifications {
            state.dispatcher.send(notification, host, receivers);
        }
        let firing = state.evaluator.firing();
        let (told, at) = &state.told;
        let is_renewed = *told != firing && at.elapsed() >= RENEW_INTERVAL;
        if is_renewed || !told.iter().map(without_value).eq(firing.iter().map(without_value)) {
            state.told = (firing.clone(), Instant::now());
            self.hub.set_firing(firing);
        }
    }

    /// Takes other rules, or keeps those before and says what is wrong.
    fn reload(&self, read: Result<AlertRules, BadRules>) {
        let mut state = self.lock();
        match read {
            Ok(rules) => {
                tracing::info!("alerts: {} rules, {} receivers", rules.rules.len(), rules.receivers.len());
                state.evaluator.replace(&rules);
                state.dispatcher.replace(&rules.receivers);
                state.error = None;
            }
            Err(error) => {
                let message = format!("The alert file was changed and not loaded, the rules before hold: {error}");
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
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evaluates the rules and reads them anew when asked to. Never ends.
pub(crate) async fn run(alerts: Arc<Alerts>, settings: AlertSettings) {
    let AlertSettings { file, mut reload, .. } = settings;
    let mut samples = alerts.hub.samples();
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut may_reload = true;
    loop {
        tokio::select! {
            // The hub lives as long as this does.
            _ = samples.changed() => {}
            _ = ticks.tick() => {}
            reloaded = reload.changed(), if may_reload => match reloaded {
                Ok(()) => {
                    let file = file.clone();
                    if let Ok(read) = spawn_blocking(move || AlertRules::read(&file)).await {
                        alerts.reload(read);
                    }
                    service::reloaded();
                }
                // Nobody is left who could ask for it.
                Err(_) => may_reload = false,
            },
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
    hub.add_event(Event { at_ms: now_ms(), gpu: None, what: EventKind::AlertProblem { message } });
}
