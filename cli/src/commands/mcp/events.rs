//! What is the matter now, and what happened lately.

use anyhow::anyhow;
use gpumon_history::span::HistorySpan;
use gpumon_probe::{
    model::{Event, EventKind, FiringAlert, Severity, fields::OVERVIEW},
    vendor::ReadDepth,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    history::span,
    names::{ConditionAnswer, Quoting, parted},
    sources::{Origin, Sources},
    tool::Tool,
};
use crate::{
    commands::show::csv::time,
    describe::{self, Context, Level, of_event},
    exit::Failure,
    snapshot::{Need, Snapshot},
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Events {
    /// First moment: a date, a time of day or both in local time, as 2026-11-23T20:00, or a time before now, as -2h; -1h
    /// if omitted.
    since: Option<String>,
    /// First moment that is left out, in the same forms; now if omitted.
    until: Option<String>,
    /// Only of these GPUs, by index; all of them if omitted. What concerns the machine is told in any case.
    gpus: Option<Vec<u32>>,
    /// Starts and ends of processes, cells of notebooks and steps of runs, too.
    #[serde(default)]
    all: bool,
    /// At most so many events, the newest; 50 if omitted.
    #[schemars(range(min = 1, max = MOST_EVENTS))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventsAnswer {
    #[serde(flatten)]
    origin: Origin,
    /// What is the matter now, by GPU; those of which nothing is to be said are left out.
    now: Vec<Trouble>,
    /// Alerts that fire now, of the rules that somebody wrote.
    alerts: Vec<AlertAnswer>,
    /// What happened in the span, the newest first.
    events: Vec<EventAnswer>,
    /// How many more there were.
    events_omitted: usize,
    /// Why there are no events, where they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    events_unknown_because: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Trouble {
    /// The GPU, by index.
    gpu: u32,
    /// `ok`, `asleep` (to save power), `hung` (the driver does not answer), `lost` (off the bus) or `failed`.
    health: &'static str,
    /// What is to be said of it, what matters most first.
    state: Vec<String>,
    conditions: Vec<ConditionAnswer>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AlertAnswer {
    /// Since when, in UTC.
    since: String,
    gpu: Option<u32>,
    severity: Severity,
    /// The rule's name and sentence.
    untrusted: Quoting,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EventAnswer {
    /// In UTC.
    at: String,
    /// Absent where it concerns the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<u32>,
    importance: Importance,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// What to do about it, of driver errors (Xids).
    #[serde(skip_serializing_if = "Option::is_none")]
    what_to_do: Option<String>,
    /// What happened, where names and texts of people are part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    untrusted: Option<Quoting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Importance {
    /// Somebody should act.
    Act,
    /// Worth a look.
    Warning,
    /// Worth knowing.
    Notice,
}

const USUAL_SINCE: &str = "-1h";
const USUAL_EVENTS: usize = 50;
const MOST_EVENTS: usize = 500;

impl Tool for Events {
    const NAME: &'static str = "gpu_events";
    const TITLE: &'static str = "Conditions, driver errors and events";
    type Answer = EventsAnswer;

    fn description() -> String {
        "What is the matter with the GPUs now, and what happened to them lately: throttling, idle memory, hangs, memory \
         errors, links that are down, driver errors (Xids) with what to do about them, alerts, marks and runs. Use it when \
         a program failed or is slow, or to check the health of a machine. What happened earlier needs a running gpumon \
         server."
            .to_owned()
    }

    fn answer(self, sources: &Sources) -> Result<EventsAnswer, Failure> {
        let limit = self.limit.unwrap_or(USUAL_EVENTS);
        if !(1..=MOST_EVENTS).contains(&limit) {
            return Err(anyhow!("limit: {limit} is not 1 to {MOST_EVENTS}").into());
        }
        let span = span(
            self.since.as_deref().unwrap_or(USUAL_SINCE),
            self.until.as_deref(),
        )?;
        let snapshot = sources.snapshot(Need::Everything, ReadDepth::Full, self.gpus.as_deref())?;
        // What is now is told, whatever becomes of the rest.
        let past = sources
            .past()
            .and_then(|past| past.ask(&span, &OVERVIEW[..1], None));
        let (past, why) = match past {
            Ok(past) => (past, None),
            Err(failure) => (HistorySpan::default(), failure.message()),
        };
        let mut events: Vec<_> = past
            .events
            .iter()
            .rev()
            .filter(|event| self.is_wanted(event))
            .collect();
        let events_omitted = events.len().saturating_sub(limit);
        events.truncate(limit);
        Ok(EventsAnswer {
            origin: Origin::of(&snapshot),
            now: troubles(&snapshot),
            alerts: snapshot.alerts.iter().map(AlertAnswer::from).collect(),
            events: events.into_iter().map(EventAnswer::from).collect(),
            events_omitted,
            events_unknown_because: why,
        })
    }
}

impl Events {
    fn is_wanted(&self, event: &Event) -> bool {
        use EventKind::{Cell, ProcessEnded, ProcessStarted, RunStep};
        let is_of_program = matches!(
            event.what,
            ProcessStarted(_) | ProcessEnded(_) | Cell(_) | RunStep(_)
        );
        let is_here = |gpus: &Vec<u32>| {
            event
                .gpu
                .as_ref()
                .is_none_or(|gpu| gpus.contains(&gpu.index))
        };
        (self.all || !is_of_program) && self.gpus.as_ref().is_none_or(is_here)
    }
}

fn troubles(snapshot: &Snapshot) -> Vec<Trouble> {
    let context = Context {
        now_ms: snapshot.sample.at_ms,
        is_one_shot: snapshot.is_single,
    };
    let gpus = snapshot.sample.gpus.iter().map(|gpu| Trouble {
        gpu: gpu.index,
        health: gpu.health.word(),
        state: describe::of_gpu(gpu, context)
            .into_iter()
            .map(|phrase| phrase.long)
            .collect(),
        conditions: gpu.conditions.iter().map(ConditionAnswer::from).collect(),
    });
    gpus.filter(|trouble| !trouble.state.is_empty() || !trouble.conditions.is_empty())
        .collect()
}

impl From<&FiringAlert> for AlertAnswer {
    fn from(FiringAlert { gpu, alert }: &FiringAlert) -> Self {
        Self {
            since: time(alert.since_ms),
            gpu: gpu.as_ref().map(|gpu| gpu.index),
            severity: alert.severity,
            untrusted: Quoting {
                text: format!("{}: {}", alert.rule, alert.text),
            },
        }
    }
}

impl From<&Event> for EventAnswer {
    fn from(event: &Event) -> Self {
        let (level, sentence) = of_event(event);
        let (text, what_to_do, untrusted) = match &event.what {
            EventKind::Xid(report) => (Some(report.headline()), Some(report.advice.clone()), None),
            EventKind::ConditionBegan(condition) => {
                let (text, quoting) = parted(condition);
                (Some(text), None, quoting)
            }
            EventKind::ConditionEnded(condition) => {
                let (text, quoting) = parted(condition);
                (Some(format!("Resolved: {text}")), None, quoting)
            }
            EventKind::GpuLost
            | EventKind::GpuHung
            | EventKind::GpuFailed { .. }
            | EventKind::GpuAdded
            | EventKind::GpuAsleep
            | EventKind::GpuBack
            | EventKind::EccErrors { .. }
            | EventKind::MigChanged
            | EventKind::PowerSourceChanged => (Some(sentence), None, None),
            _ => (None, None, Some(Quoting { text: sentence })),
        };
        let gpu = event.gpu.as_ref().map(|gpu| gpu.index);
        Self {
            at: time(event.at_ms),
            gpu,
            importance: level.into(),
            text,
            what_to_do,
            untrusted,
        }
    }
}

impl From<Level> for Importance {
    fn from(level: Level) -> Self {
        match level {
            Level::Act => Self::Act,
            Level::Warn => Self::Warning,
            Level::Note | Level::Quiet => Self::Notice,
        }
    }
}
