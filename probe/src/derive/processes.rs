//! Events for processes that started or ended, derived from two consecutive process lists.

use std::collections::BTreeMap;

use crate::model::{EventKind, Process, ProcessRef, Reading};

/// The maximum number of events from one list. Larger changes, caused by a driver fault or a job
/// with thousands of processes, yield no further events.
const MAX_EVENTS: usize = 32;

/// The maximum difference between two readings of the same start time. Start times are computed
/// from the boot time, which changes when the clock is set.
const START_TOLERANCE_MS: u64 = 2_000;

/// The latest process list of one GPU.
#[derive(Debug, Default)]
pub struct ProcessTracker {
    known: Option<BTreeMap<u32, ProcessRef>>,
}

impl ProcessTracker {
    /// Returns events for the processes that ended since the previous list, then for those that
    /// started, each sorted by PID, at most 32 in total. The first list yields no events, and an
    /// absent or repeated list is ignored. `omitted` contains running processes that are missing
    /// from the list.
    pub fn update(
        &mut self,
        processes: &Reading<Vec<Process>>,
        omitted: Vec<ProcessRef>,
    ) -> Vec<EventKind> {
        let Reading::Now(processes) = processes else {
            return Vec::new();
        };
        let all = processes.iter().map(to_process_ref).chain(omitted);
        let now: BTreeMap<u32, ProcessRef> = all.map(|process| (process.pid, process)).collect();
        let Some(before) = self.known.replace(now) else {
            return Vec::new();
        };
        let now = self.known.as_ref().unwrap_or(&before);
        let missing = |from: &BTreeMap<u32, ProcessRef>, process: &ProcessRef| {
            !from
                .get(&process.pid)
                .is_some_and(|other| is_same_process(process, other))
        };
        let ended = before
            .values()
            .filter(|process| missing(now, process))
            .cloned()
            .map(EventKind::ProcessEnded);
        let started = now
            .values()
            .filter(|process| missing(&before, process))
            .cloned()
            .map(EventKind::ProcessStarted);
        ended.chain(started).take(MAX_EVENTS).collect()
    }
}

fn to_process_ref(process: &Process) -> ProcessRef {
    ProcessRef {
        pid: process.pid,
        name: process.name.clone(),
        program: process.program.clone(),
        user: process.user.clone(),
        started_ms: process.started_ms.clone(),
    }
}

/// Returns `true` if two references with the same PID are the same process. An unknown start time
/// matches any other.
fn is_same_process(one: &ProcessRef, other: &ProcessRef) -> bool {
    match (one.started_ms.value(), other.started_ms.value()) {
        (Some(one), Some(other)) => one.abs_diff(*other) <= START_TOLERANCE_MS,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{derive::examples, model::Absence};

    fn make_list(processes: &[(u32, u64)]) -> Reading<Vec<Process>> {
        let process = |(pid, started_ms): &(u32, u64)| Process {
            started_ms: Reading::Now(*started_ms),
            ..examples::make_process(*pid, 1 << 30)
        };
        Reading::Now(processes.iter().map(process).collect())
    }

    /// Returns `pid` for each process that started and `-pid` for each process that ended.
    fn signed_pids(events: &[EventKind]) -> Vec<i64> {
        let sign = |event: &EventKind| match event {
            EventKind::ProcessStarted(process) => i64::from(process.pid),
            EventKind::ProcessEnded(process) => -i64::from(process.pid),
            other => panic!("{other:?}"),
        };
        events.iter().map(sign).collect()
    }

    #[test]
    fn process_starts_and_ends_are_reported() {
        let mut tracker = ProcessTracker::default();
        assert_eq!(
            tracker.update(&make_list(&[(1, 10), (2, 20)]), Vec::new()),
            [],
            "they may be old"
        );
        assert_eq!(
            signed_pids(&tracker.update(&make_list(&[(2, 20), (3, 30)]), Vec::new())),
            [-1, 3]
        );
        assert_eq!(
            tracker.update(&make_list(&[(2, 20), (3, 30)]), Vec::new()),
            []
        );
        assert_eq!(
            signed_pids(&tracker.update(&make_list(&[]), Vec::new())),
            [-2, -3]
        );
    }

    #[test]
    fn reused_pid_is_reported_as_end_and_start() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&make_list(&[(7, 10_000)]), Vec::new());
        assert_eq!(
            tracker.update(&make_list(&[(7, 11_000)]), Vec::new()),
            [],
            "the clock was set"
        );
        let events = tracker.update(&make_list(&[(7, 60_000)]), Vec::new());
        assert_eq!(signed_pids(&events), [-7, 7]);
        let EventKind::ProcessEnded(ended) = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(ended.started_ms, Reading::Now(11_000));
    }

    #[test]
    fn process_with_unknown_start_counts_as_unchanged() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&make_list(&[(7, 10_000)]), Vec::new());
        let mut unknown = examples::make_process(7, 0);
        unknown.started_ms = Reading::Absent(Absence::NoPermission);
        assert_eq!(tracker.update(&Reading::Now(vec![unknown]), Vec::new()), []);
    }

    #[test]
    fn absent_list_does_not_end_processes() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&make_list(&[(1, 10)]), Vec::new());
        assert_eq!(
            tracker.update(&Reading::Absent(Absence::GpuLost), Vec::new()),
            []
        );
        assert_eq!(
            tracker.update(
                &Reading::Earlier {
                    value: Vec::new(),
                    at_ms: 1
                },
                Vec::new()
            ),
            []
        );
        assert_eq!(tracker.update(&make_list(&[(1, 10)]), Vec::new()), []);
        assert_eq!(
            signed_pids(&tracker.update(&make_list(&[]), Vec::new())),
            [-1]
        );
    }

    #[test]
    fn omitted_process_is_not_reported_as_ended() {
        let mut tracker = ProcessTracker::default();
        let omitted = vec![to_process_ref(&examples::make_process(1, 0))];
        tracker.update(&make_list(&[(1, 1), (2, 2)]), Vec::new());
        assert_eq!(tracker.update(&make_list(&[(2, 2)]), omitted), []);
        assert_eq!(
            tracker.update(&make_list(&[(1, 1), (2, 2)]), Vec::new()),
            []
        );
        assert_eq!(
            signed_pids(&tracker.update(&make_list(&[(2, 2)]), Vec::new())),
            [-1]
        );
    }

    #[test]
    fn excess_process_events_are_never_reported() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&make_list(&[]), Vec::new());
        let many: Vec<(u32, u64)> = (1..=2000).map(|pid| (pid, 1)).collect();
        assert_eq!(
            tracker.update(&make_list(&many), Vec::new()).len(),
            MAX_EVENTS
        );
        assert_eq!(tracker.update(&make_list(&many), Vec::new()), []);
    }
}
