//! Descriptions of events as sentences.

use gpumon_probe::{
    model::{Cell, Event, EventKind, Mark, ProcessRef, Run, RunStatus, join_meaning_and_advice},
    units::format_duration,
};

use super::Level;

pub(crate) fn describe_event(event: &Event) -> (Level, String) {
    match &event.what {
        EventKind::GpuLost => (Level::Act, "GPU lost (fallen off the bus)".to_owned()),
        EventKind::GpuHung => (Level::Act, "GPU not responding (driver hang)".to_owned()),
        EventKind::GpuFailed { meaning, .. } if meaning.is_empty() => {
            (Level::Act, "GPU cannot be read".to_owned())
        }
        EventKind::GpuFailed { meaning, advice } => (
            Level::Act,
            format!(
                "GPU cannot be read: {}",
                join_meaning_and_advice(meaning, advice)
            ),
        ),
        EventKind::GpuAdded => (Level::Note, "GPU added".to_owned()),
        EventKind::GpuAsleep => (Level::Note, "GPU suspended by power management".to_owned()),
        EventKind::GpuBack => (Level::Note, "GPU responding again".to_owned()),
        EventKind::Xid(xid) => (Level::Warn, xid.text()),
        EventKind::EccErrors {
            corrected,
            uncorrected: 0,
        } => (Level::Note, format!("{corrected} corrected memory errors.")),
        EventKind::EccErrors { uncorrected, .. } => (
            Level::Act,
            format!(
                "{uncorrected} uncorrectable memory errors. Results may be wrong: run the work \
                 again."
            ),
        ),
        EventKind::ConditionBegan(condition) => (condition.severity.into(), condition.text.clone()),
        EventKind::ConditionEnded(condition) => {
            (Level::Note, format!("Resolved: {}", condition.text))
        }
        EventKind::ProcessStarted(process) => (
            Level::Note,
            format!("{} started", describe_process(process)),
        ),
        EventKind::ProcessEnded(process) => {
            (Level::Note, format!("{} exited", describe_process(process)))
        }
        EventKind::MigChanged => (Level::Note, "MIG configuration changed".to_owned()),
        EventKind::PowerSourceChanged => (Level::Note, "Power source changed".to_owned()),
        EventKind::ClockChanged { by_ms } => {
            let (way, by) = (
                if *by_ms < 0 { "back" } else { "forward" },
                format_duration(by_ms.unsigned_abs()),
            );
            (
                Level::Warn,
                format!(
                    "System clock set {way} by {by}. Check the time synchronization of this \
                     machine."
                ),
            )
        }
        EventKind::RunBegan(run) => (Level::Note, format!("Run started: {}", run.title)),
        EventKind::RunStep(run) => (
            Level::Note,
            format!(
                "Run {}: {}",
                run.title,
                run.step.as_deref().unwrap_or("finishing")
            ),
        ),
        EventKind::RunEnded(run) => describe_run_end(run),
        EventKind::Mark(Mark { text, user: None }) => (Level::Note, format!("Mark: {text}")),
        EventKind::Mark(Mark {
            text,
            user: Some(user),
        }) => (Level::Note, format!("Mark: {text} ({user})")),
        EventKind::Cell(cell) => (Level::Note, describe_cell(cell)),
        EventKind::AlertFiring(alert) => (
            alert.severity.into(),
            format!("Alert {}: {}", alert.rule, alert.text),
        ),
        EventKind::AlertResolved(alert) => (
            Level::Note,
            format!("Resolved: alert {}: {}", alert.rule, alert.text),
        ),
        EventKind::AlertProblem { message } => (Level::Warn, message.clone()),
    }
}

/// Describes the execution of a notebook's cell, such as `train.ipynb [3] ran for 12 s`.
fn describe_cell(
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
        format_duration(ended_ms.saturating_sub(*started_ms))
    )
}

fn describe_run_end(run: &Run) -> (Level, String) {
    let title = &run.title;
    match run.status {
        RunStatus::Running | RunStatus::Done => (Level::Note, format!("Run completed: {title}")),
        RunStatus::Failed => (Level::Warn, format!("Run failed: {title}")),
        RunStatus::Canceled => (Level::Note, format!("Run canceled: {title}")),
        RunStatus::Lost => (Level::Warn, format!("Run lost: {title}")),
    }
}

/// Describes a process, such as `train.py (ana, 4711)`.
fn describe_process(process: &ProcessRef) -> String {
    let name = process
        .name
        .value()
        .map_or_else(|| "A process".to_owned(), Clone::clone);
    match process.user.value() {
        Some(user) => format!("{name} ({user}, {})", process.pid),
        None => format!("{name} ({})", process.pid),
    }
}
