//! Events for processes that started or ended, derived from two consecutive lists.

use std::collections::BTreeMap;

use crate::model::{EventKind, Process, ProcessRef, Reading};

/// The maximum number of events from one list. A larger change at once (a fault of the driver, a
/// job with thousands of processes) is accepted without further events, to avoid a flood.
const MOST_EVENTS: usize = 32;

/// The maximum difference between two readings of the same start time. Start times are computed
/// from the boot time, which changes by a second when the clock is set.
const SAME_START_MS: u64 = 2_000;

/// The latest list of one GPU's processes.
#[derive(Debug, Default)]
pub struct ProcessTracker {
    known: Option<BTreeMap<u32, ProcessRef>>,
}

impl ProcessTracker {
    /// Returns the processes that ended since the previous list, then those that started, each by
    /// PID, at most 32 events. The first list makes no events, and an absent or old list is
    /// ignored. `omitted` are running processes that are not in the list.
    pub fn update(
        &mut self,
        processes: &Reading<Vec<Process>>,
        omitted: Vec<ProcessRef>,
    ) -> Vec<EventKind> {
        let Reading::Now(processes) = processes else {
            return Vec::new();
        };
        let all = processes.iter().map(process_ref).chain(omitted);
        let now: BTreeMap<u32, ProcessRef> = all.map(|process| (process.pid, process)).collect();
        let Some(before) = self.known.replace(now) else {
            return Vec::new();
        };
        let now = self.known.as_ref().unwrap_or(&before);
        let missing = |from: &BTreeMap<u32, ProcessRef>, process: &ProcessRef| {
            !from
                .get(&process.pid)
                .is_some_and(|other| is_same(process, other))
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
        ended.chain(started).take(MOST_EVENTS).collect()
    }
}

fn process_ref(process: &Process) -> ProcessRef {
    ProcessRef {
        pid: process.pid,
        name: process.name.clone(),
        program: process.program.clone(),
        user: process.user.clone(),
        started_ms: process.started_ms.clone(),
    }
}

/// Returns `true` if two references with the same PID are the same process. An unknown start time
/// is equal to any other.
fn is_same(one: &ProcessRef, other: &ProcessRef) -> bool {
    match (one.started_ms.value(), other.started_ms.value()) {
        (Some(one), Some(other)) => one.abs_diff(*other) <= SAME_START_MS,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{derive::examples, model::Absence};

    fn list(processes: &[(u32, u64)]) -> Reading<Vec<Process>> {
        let process = |(pid, started_ms): &(u32, u64)| Process {
            started_ms: Reading::Now(*started_ms),
            ..examples::process(*pid, 1 << 30)
        };
        Reading::Now(processes.iter().map(process).collect())
    }

    /// Returns `pid` for each start and `-pid` for each end.
    fn signed_pids(events: &[EventKind]) -> Vec<i64> {
        let sign = |event: &EventKind| match event {
            EventKind::ProcessStarted(process) => i64::from(process.pid),
            EventKind::ProcessEnded(process) => -i64::from(process.pid),
            other => panic!("{other:?}"),
        };
        events.iter().map(sign).collect()
    }

    #[test]
    fn processes_come_and_go() {
        let mut tracker = ProcessTracker::default();
        assert_eq!(
            tracker.update(&list(&[(1, 10), (2, 20)]), Vec::new()),
            [],
            "they may be old"
        );
        assert_eq!(
            signed_pids(&tracker.update(&list(&[(2, 20), (3, 30)]), Vec::new())),
            [-1, 3]
        );
        assert_eq!(tracker.update(&list(&[(2, 20), (3, 30)]), Vec::new()), []);
        assert_eq!(
            signed_pids(&tracker.update(&list(&[]), Vec::new())),
            [-2, -3]
        );
    }

    #[test]
    fn a_pid_that_is_used_again_is_an_end_and_a_start() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&list(&[(7, 10_000)]), Vec::new());
        assert_eq!(
            tracker.update(&list(&[(7, 11_000)]), Vec::new()),
            [],
            "the clock was set"
        );
        let events = tracker.update(&list(&[(7, 60_000)]), Vec::new());
        assert_eq!(signed_pids(&events), [-7, 7]);
        let EventKind::ProcessEnded(ended) = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(ended.started_ms, Reading::Now(11_000));
    }

    #[test]
    fn a_start_that_is_not_known_makes_no_other_process() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&list(&[(7, 10_000)]), Vec::new());
        let mut unknown = examples::process(7, 0);
        unknown.started_ms = Reading::Absent(Absence::NoPermission);
        assert_eq!(tracker.update(&Reading::Now(vec![unknown]), Vec::new()), []);
    }

    #[test]
    fn an_absent_list_ends_nobody() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&list(&[(1, 10)]), Vec::new());
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
        assert_eq!(tracker.update(&list(&[(1, 10)]), Vec::new()), []);
        assert_eq!(signed_pids(&tracker.update(&list(&[]), Vec::new())), [-1]);
    }

    #[test]
    fn a_process_that_is_left_out_of_the_list_has_not_ended() {
        let mut tracker = ProcessTracker::default();
        let omitted = vec![process_ref(&examples::process(1, 0))];
        tracker.update(&list(&[(1, 1), (2, 2)]), Vec::new());
        assert_eq!(tracker.update(&list(&[(2, 2)]), omitted), []);
        assert_eq!(tracker.update(&list(&[(1, 1), (2, 2)]), Vec::new()), []);
        assert_eq!(
            signed_pids(&tracker.update(&list(&[(2, 2)]), Vec::new())),
            [-1]
        );
    }

    #[test]
    fn a_flood_is_cut_and_not_told_later() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&list(&[]), Vec::new());
        let many: Vec<(u32, u64)> = (1..=2000).map(|pid| (pid, 1)).collect();
        assert_eq!(tracker.update(&list(&many), Vec::new()).len(), MOST_EVENTS);
        assert_eq!(tracker.update(&list(&many), Vec::new()), []);
    }
}
