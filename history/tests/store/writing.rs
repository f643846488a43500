//! Test helpers that start, end and observe writers, and create their input.

use std::{
    fs,
    os::unix::fs::MetadataExt,
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

/// The start of the first bucket. It is a multiple of the coarsest tier's resolution.
pub(crate) const FIRST_MS: u64 = 1_800_000_000_000;

/// A size limit that no test reaches, in bytes.
pub(crate) const SIZE_LIMIT: u64 = 1 << 30;

pub(crate) fn start_writer(folder: &Path) -> (Writer, Receiver<String>) {
    let (tell, reported) = mpsc::channel();
    let settings = WriterSettings {
        folder: folder.to_owned(),
        size_bytes: SIZE_LIMIT,
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

/// Ends a writer, and waits until no process holds the lock on its directory. The writer may still
/// be writing, or another test may have just forked a process, which inherits the lock and holds it
/// until it executes its program. This function does not lock the directory itself, because such a
/// process would inherit that lock too. It reads the kernel's list of locks instead.
pub(crate) fn end_writer(writer: &Writer, folder: &Path) {
    writer.finish_writing();
    let lock = format!(
        ":{} ",
        fs::metadata(folder.join("history.lock")).unwrap().ino()
    );
    wait_until("the lock is free", || {
        !fs::read_to_string("/proc/locks").unwrap().contains(&lock)
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
