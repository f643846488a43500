//! Test helpers that start, end and observe writers, and create their input.

use std::{
    fs::File,
    path::Path,
    sync::mpsc::{self, Receiver},
    thread::sleep,
    time::{Duration, Instant},
};

use gpumon_history::{
    span::ConditionSpan,
    writer::{Writer, WriterSettings},
};
use gpumon_probe::model::{Condition, ConditionKind, Event, EventKind, Mark, Severity};

pub(crate) const FIRST_MS: u64 = 1_800_000_000_000;

pub(crate) fn start_writer(folder: &Path) -> (Writer, Receiver<String>) {
    let (tell, reported) = mpsc::channel();
    let settings = WriterSettings {
        folder: folder.to_owned(),
        size_bytes: 1 << 30,
    };
    let writer = Writer::start(
        settings,
        600_000,
        |_| {},
        move |problem| drop(tell.send(problem.to_owned())),
    )
    .unwrap();
    (writer, reported)
}

/// Ends a writer, and waits until its lock is free. A process that another test starts meanwhile
/// can inherit the lock, and keeps it for a moment.
pub(crate) fn end_writer(writer: &Writer, folder: &Path) {
    writer.finish_writing();
    wait_until("the lock is free", || {
        File::open(folder.join("history.lock")).is_ok_and(|file| file.try_lock().is_ok())
    });
}

pub(crate) fn receive_message(reported: &Receiver<String>) -> String {
    reported.recv_timeout(Duration::from_mins(1)).unwrap()
}

pub(crate) fn make_mark(at_ms: u64) -> Event {
    Event {
        at_ms,
        gpu: None,
        what: EventKind::Mark(Mark {
            text: "epoch 3".to_owned(),
            user: None,
        }),
    }
}

pub(crate) fn make_condition(from_ms: u64) -> ConditionSpan {
    let kind = ConditionKind::PageRetirementPending;
    let condition = Condition {
        since_ms: from_ms,
        severity: Severity::Warning,
        text: "Pending".to_owned(),
        kind,
    };
    ConditionSpan {
        uuid: "GPU-a".to_owned(),
        from_ms,
        to_ms: None,
        condition,
    }
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_mins(1);
    while !is_so() {
        assert!(Instant::now() < patience, "{what}");
        sleep(Duration::from_millis(1));
    }
}
