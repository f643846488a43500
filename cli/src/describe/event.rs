//! Events as sentences.

use gpumon_probe::{
    model::{Cell, Event, EventKind, Mark, ProcessRef, Run, RunStatus, with_advice},
    units::duration,
};

use super::phrase::Level;

pub(crate) fn of_event(event: &Event) -> (Level, String) {
    fn say(level: Level, text: impl Into<String>) -> (Level, String) {
        (level, text.into())
    }
    match &event.what {
        EventKind::GpuLost => say(Level::Act, "GPU lost (fallen off the bus)"),
        EventKind::GpuHung => say(Level::Act, "GPU not responding (driver hang)"),
        EventKind::GpuFailed { meaning, .. } if meaning.is_empty() => {
            say(Level::Act, "GPU cannot be read")
        }
        EventKind::GpuFailed { meaning, advice } => say(
            Level::Act,
            format!("GPU cannot be read: {}", with_advice(meaning, advice)),
        ),
        EventKind::GpuAdded => say(Level::Note, "GPU added"),
        EventKind::GpuAsleep => say(Level::Note, "GPU suspended by power management"),
        EventKind::GpuBack => say(Level::Note, "GPU responding again"),
        EventKind::Xid(xid) => say(Level::Warn, xid.text()),
        EventKind::EccErrors {
            corrected,
            uncorrected: 0,
        } => say(Level::Note, format!("{corrected} corrected memory errors.")),
        EventKind::EccErrors { uncorrected, .. } => say(
            Level::Act,
            format!(
                "{uncorrected} uncorrectable memory errors. Results may be wrong: run the work again."
            ),
        ),
        EventKind::ConditionBegan(condition) => say(condition.severity.into(), &*condition.text),
        EventKind::ConditionEnded(condition) => {
            say(Level::Note, format!("Resolved: {}", condition.text))
        }
        EventKind::ProcessStarted(process) => {
            say(Level::Note, format!("{} started", of_process(process)))
        }
        EventKind::ProcessEnded(process) => {
            say(Level::Note, format!("{} exited", of_process(process)))
        }
        EventKind::MigChanged => say(Level::Note, "MIG configuration changed"),
        EventKind::PowerSourceChanged => say(Level::Note, "Power source changed"),
        EventKind::ClockChanged { by_ms } => {
            let (way, by) = (
                if *by_ms < 0 { "back" } else { "forward" },
                duration(by_ms.unsigned_abs()),
            );
            say(
                Level::Warn,
                format!(
                    "System clock set {way} by {by}. Check the time synchronization of this machine."
                ),
            )
        }
        EventKind::RunBegan(run) => say(Level::Note, format!("Run started: {}", run.title)),
        EventKind::RunStep(run) => say(
            Level::Note,
            format!(
                "Run {}: {}",
                run.title,
                run.step.as_deref().unwrap_or("finishing")
            ),
        ),
        EventKind::RunEnded(run) => of_run_end(run),
        EventKind::Mark(Mark { text, user: None }) => say(Level::Note, format!("Mark: {text}")),
        EventKind::Mark(Mark {
            text,
            user: Some(user),
        }) => say(Level::Note, format!("Mark: {text} ({user})")),
        EventKind::Cell(cell) => say(Level::Note, of_cell(cell)),
        EventKind::AlertFiring(alert) => say(
            alert.severity.into(),
            format!("Alert {}: {}", alert.rule, alert.text),
        ),
        EventKind::AlertResolved(alert) => say(
            Level::Note,
            format!("Resolved: alert {}: {}", alert.rule, alert.text),
        ),
        EventKind::AlertProblem { message } => say(Level::Warn, &**message),
    }
}

/// Describes an execution, such as `train.ipynb [3] ran for 12 s`.
fn of_cell(
    Cell {
        notebook,
        execution_count,
        started_ms,
        ended_ms,
        ..
    }: &Cell,
) -> String {
    let count = execution_count.map_or_else(|| " ".to_owned(), |count| count.to_string());
    format!(
        "{notebook} [{count}] ran for {}",
        duration(ended_ms.saturating_sub(*started_ms))
    )
}

fn of_run_end(run: &Run) -> (Level, String) {
    let title = &run.title;
    match run.status {
        RunStatus::Running | RunStatus::Done => (Level::Note, format!("Run completed: {title}")),
        RunStatus::Failed => (Level::Warn, format!("Run failed: {title}")),
        RunStatus::Canceled => (Level::Note, format!("Run canceled: {title}")),
        RunStatus::Lost => (Level::Warn, format!("Run lost: {title}")),
    }
}

/// Describes a process, such as `train.py (ana, 4711)`.
fn of_process(process: &ProcessRef) -> String {
    let name = process
        .name
        .value()
        .map_or_else(|| "A process".to_owned(), Clone::clone);
    match process.user.value() {
        Some(user) => format!("{name} ({user}, {})", process.pid),
        None => format!("{name} ({})", process.pid),
    }
}
