//! What happened, in sentences.

use gpumon_probe::model::{Event, EventKind, ProcessRef, Run, RunStatus};

use super::phrase::Level;

/// An event in a sentence.
pub(crate) fn of_event(event: &Event) -> (Level, String) {
    fn say(level: Level, text: impl Into<String>) -> (Level, String) {
        (level, text.into())
    }
    match &event.what {
        EventKind::GpuLost => say(Level::Act, "The GPU is lost: the driver says that it has fallen off the bus."),
        EventKind::GpuHung => say(Level::Act, "The driver does not answer for this GPU."),
        EventKind::GpuFailed => say(Level::Act, "The driver refuses to open this GPU."),
        EventKind::GpuAsleep => say(Level::Note, "The system has switched the GPU off to save power."),
        EventKind::GpuBack => say(Level::Note, "The GPU answers again."),
        EventKind::Xid(xid) => {
            let process = xid.pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            say(Level::Warn, format!("Xid {}{process}: {} {}", xid.code, xid.meaning, xid.advice))
        }
        EventKind::EccErrors { corrected, uncorrected: 0 } => {
            say(Level::Note, format!("Memory errors corrected by the hardware: {corrected}."))
        }
        EventKind::EccErrors { uncorrected, .. } => say(
            Level::Act,
            format!("Memory errors not corrected: {uncorrected}. What was computed with them is wrong: run it again."),
        ),
        EventKind::ConditionBegan(condition) => say(condition.severity.into(), &*condition.text),
        EventKind::ConditionEnded(condition) => say(Level::Note, format!("Over: {}", condition.text)),
        EventKind::ProcessStarted(process) => say(Level::Note, format!("{} started.", of_process(process))),
        EventKind::ProcessEnded(process) => say(Level::Note, format!("{} ended.", of_process(process))),
        EventKind::MigChanged => say(Level::Note, "MIG was switched on or off, or its instances changed."),
        EventKind::PowerSourceChanged => say(Level::Note, "The board's power supply changed."),
        EventKind::RunBegan(run) => say(Level::Note, format!("Run {} began.", run.title)),
        EventKind::RunStep(run) => {
            say(Level::Note, format!("Run {}: now {}.", run.title, run.step.as_deref().unwrap_or("at its end")))
        }
        EventKind::RunEnded(run) => of_run_end(run),
    }
}

/// How a run of the workload runner ended.
fn of_run_end(run: &Run) -> (Level, String) {
    let title = &run.title;
    match run.status {
        RunStatus::Running | RunStatus::Done => (Level::Note, format!("Run {title} is done.")),
        RunStatus::Failed => (Level::Warn, format!("Run {title} failed.")),
        RunStatus::Cancelled => (Level::Note, format!("Run {title} was cancelled.")),
        RunStatus::Lost => (Level::Warn, format!("Run {title} fell silent before its end.")),
    }
}

/// `train.py (ana, 4711)`.
fn of_process(process: &ProcessRef) -> String {
    let name = process.name.value().map_or_else(|| "A process".to_owned(), Clone::clone);
    match process.user.value() {
        Some(user) => format!("{name} ({user}, {})", process.pid),
        None => format!("{name} ({})", process.pid),
    }
}
