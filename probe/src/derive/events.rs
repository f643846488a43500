//! Events derived from changes between readings: processes that started or ended, new memory
//! errors, and driver errors without duplicates.

use std::collections::BTreeMap;

use crate::{
    model::{EventKind, GpuDetails, Process, ProcessRef, Reading},
    vendor::DriverError,
};

/// The maximum number of events that one process list can cause. A driver fault, or a job with
/// thousands of processes, causes more changes; these yield no further events.
const MAX_PROCESS_EVENTS: usize = 32;

/// The maximum difference between two readings of the same start time. Start times are computed
/// from the boot time, which changes when the clock is set.
const START_TOLERANCE_MS: u64 = 2_000;

/// The latest process list of one GPU.
#[derive(Debug, Default)]
pub struct ProcessTracker {
    known: Option<BTreeMap<u32, ProcessRef>>,
}

impl ProcessTracker {
    /// Compares the process list with the previous list. Returns events for processes that ended,
    /// then for processes that started, each sorted by PID, at most 32 in total. The first list
    /// yields no events, and an absent or repeated list is ignored. `omitted` contains running
    /// processes that are missing from the list.
    pub fn update(
        &mut self,
        processes: &Reading<Vec<Process>>,
        omitted: Vec<ProcessRef>,
    ) -> Vec<EventKind> {
        let Reading::Now(processes) = processes else {
            return Vec::new();
        };
        let all = processes.iter().map(ProcessRef::from).chain(omitted);
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
        ended.chain(started).take(MAX_PROCESS_EVENTS).collect()
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

/// The latest values of one GPU's memory error counters.
#[derive(Debug, Default)]
pub struct EccTracker {
    corrected: Option<u64>,
    uncorrected: Option<u64>,
}

impl EccTracker {
    /// Returns an event with the errors since the previous details, if any. The first details yield
    /// no event, because it is unknown when their errors occurred. Counters that have decreased
    /// yield no event, because the driver has reset them.
    pub fn update(&mut self, details: &GpuDetails) -> Option<EventKind> {
        let counts = &details.ecc.volatile;
        let corrected = take_counter_growth(&mut self.corrected, &counts.corrected_total);
        let uncorrected = take_counter_growth(&mut self.uncorrected, &counts.uncorrected_total);
        (corrected > 0 || uncorrected > 0).then_some(EventKind::EccErrors {
            corrected,
            uncorrected,
        })
    }
}

/// Returns the growth of a counter. If a counter was temporarily absent, it is compared with its
/// last value.
fn take_counter_growth(before: &mut Option<u64>, total: &Reading<u64>) -> u64 {
    let Reading::Now(total) = total else { return 0 };
    before
        .replace(*total)
        .map_or(0, |before| total.saturating_sub(before))
}

/// The maximum time that a driver event waits for the corresponding log line.
const LOG_LINE_WAIT_MS: u64 = 300;

/// The time within which driver errors with the same code count as one error. The driver reports a
/// fault repeatedly, once per channel or multiprocessor.
const DUPLICATE_WINDOW_MS: u64 = 5_000;

/// The maximum number of driver errors to remember, because one fault can terminate thousands of
/// processes.
const MAX_REMEMBERED_ERRORS: usize = 256;

/// A filter for duplicate driver errors, which arrive both as driver events and as lines in the
/// kernel log. It remembers the errors of the last seconds on all GPUs of the machine.
///
/// Log lines are reported immediately. Driver events are reported immediately only if the log is
/// not read. Otherwise, an event briefly waits for the corresponding log line, which replaces the
/// event because it also contains the process and the driver's message. Within five seconds,
/// reports with the same code on the same GPU count as one error, unless the log names another
/// process.
#[derive(Debug)]
pub struct ErrorFilter {
    log_is_read: bool,
    /// Driver events that wait for their log line.
    pending: Vec<RememberedError>,
    reported: Vec<RememberedError>,
}

#[derive(Debug, Clone, Copy)]
struct RememberedError {
    gpu: u32,
    code: u32,
    pid: Option<u32>,
    at_ms: u64,
}

impl ErrorFilter {
    /// Creates an empty filter. `log_is_read` is `true` if the kernel log is being read.
    pub fn new(log_is_read: bool) -> Self {
        Self {
            log_is_read,
            pending: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Handles the end of the kernel log: pending events no longer wait for log lines.
    pub fn stop_waiting_for_log(&mut self) {
        self.log_is_read = false;
    }

    /// Handles a driver event of the GPU with index `gpu`. Returns the error if it should be
    /// reported immediately. Otherwise, the error becomes due after a delay, or is replaced by a
    /// log line.
    pub fn on_driver_event(&mut self, gpu: u32, code: u32, now_ms: u64) -> Option<DriverError> {
        self.forget_old_reports(now_ms);
        let is_known = |known: &RememberedError| (known.gpu, known.code) == (gpu, code);
        if self.reported.iter().any(is_known) || self.pending.iter().any(is_known) {
            return None;
        }
        let seen = RememberedError {
            gpu,
            code,
            pid: None,
            at_ms: now_ms,
        };
        if self.log_is_read {
            self.pending.push(seen);
            return None;
        }
        Some(self.record_reported_error(seen, None))
    }

    /// Handles an error in the kernel log for the GPU with index `gpu`. Returns the error unless it
    /// has already been reported.
    pub fn on_log_line(
        &mut self,
        gpu: u32,
        logged: DriverError,
        now_ms: u64,
    ) -> Option<DriverError> {
        self.forget_old_reports(now_ms);
        let DriverError { code, pid, message } = logged;
        self.pending
            .retain(|pending| (pending.gpu, pending.code) != (gpu, code));
        let is_same = |seen: &RememberedError| {
            let is_other_process = seen.pid.is_some() && pid.is_some() && seen.pid != pid;
            (seen.gpu, seen.code) == (gpu, code) && !is_other_process
        };
        if self.reported.iter().any(is_same) {
            return None;
        }
        Some(self.record_reported_error(
            RememberedError {
                gpu,
                code,
                pid,
                at_ms: now_ms,
            },
            message,
        ))
    }

    /// Returns the driver events for which no log line has appeared within 300 ms, each with its
    /// GPU's index. Must be called at every tick.
    pub fn take_due_errors(&mut self, now_ms: u64) -> Vec<(u32, DriverError)> {
        let log_is_read = self.log_is_read;
        // Because the absolute difference is used, setting the clock back does not delay a report
        // for hours.
        let is_due = |pending: &mut RememberedError| {
            !log_is_read || pending.at_ms.abs_diff(now_ms) >= LOG_LINE_WAIT_MS
        };
        let due: Vec<RememberedError> = self.pending.extract_if(.., is_due).collect();
        due.into_iter()
            .map(|seen| {
                (
                    seen.gpu,
                    self.record_reported_error(
                        RememberedError {
                            at_ms: now_ms,
                            ..seen
                        },
                        None,
                    ),
                )
            })
            .collect()
    }

    fn record_reported_error(
        &mut self,
        seen: RememberedError,
        message: Option<String>,
    ) -> DriverError {
        if self.reported.len() == MAX_REMEMBERED_ERRORS {
            self.reported.remove(0);
        }
        self.reported.push(seen);
        DriverError {
            code: seen.code,
            pid: seen.pid,
            message,
        }
    }

    fn forget_old_reports(&mut self, now_ms: u64) {
        self.reported
            .retain(|seen| seen.at_ms.abs_diff(now_ms) < DUPLICATE_WINDOW_MS);
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
    fn unreadable_process_list_does_not_end_processes() {
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
        let omitted = vec![ProcessRef::from(&examples::make_process(1, 0))];
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
    fn process_events_above_limit_are_dropped() {
        let mut tracker = ProcessTracker::default();
        tracker.update(&make_list(&[]), Vec::new());
        let many: Vec<(u32, u64)> = (1..=2000).map(|pid| (pid, 1)).collect();
        assert_eq!(
            tracker.update(&make_list(&many), Vec::new()).len(),
            MAX_PROCESS_EVENTS
        );
        assert_eq!(tracker.update(&make_list(&many), Vec::new()), []);
    }
}

#[cfg(test)]
mod ecc_tests {
    use super::*;
    use crate::{derive::examples, model::Absence};

    fn make_details(corrected: u64, uncorrected: u64) -> GpuDetails {
        let mut details = examples::make_details(0);
        details.ecc.volatile.corrected_total = Reading::Now(corrected);
        details.ecc.volatile.uncorrected_total = Reading::Now(uncorrected);
        details
    }

    #[test]
    fn errors_are_reported_once_with_count() {
        let mut tracker = EccTracker::default();
        assert_eq!(tracker.update(&make_details(5, 1)), None, "they may be old");
        assert_eq!(tracker.update(&make_details(5, 1)), None);
        assert_eq!(
            tracker.update(&make_details(8, 2)),
            Some(EventKind::EccErrors {
                corrected: 3,
                uncorrected: 1
            })
        );
        assert_eq!(tracker.update(&make_details(8, 2)), None);
    }

    #[test]
    fn counter_reset_does_not_create_event() {
        let mut tracker = EccTracker::default();
        tracker.update(&make_details(100, 3));
        assert_eq!(tracker.update(&make_details(2, 0)), None);
        assert_eq!(
            tracker.update(&make_details(3, 0)),
            Some(EventKind::EccErrors {
                corrected: 1,
                uncorrected: 0
            })
        );
    }

    #[test]
    fn errors_while_counter_is_absent_are_reported() {
        let mut tracker = EccTracker::default();
        tracker.update(&make_details(1, 1));
        let mut absent = make_details(1, 1);
        absent.ecc.volatile.corrected_total = Reading::Absent(Absence::NoAnswer);
        absent.ecc.volatile.uncorrected_total = Reading::Earlier { value: 0, at_ms: 0 };
        assert_eq!(tracker.update(&absent), None);
        assert_eq!(
            tracker.update(&make_details(4, 1)),
            Some(EventKind::EccErrors {
                corrected: 3,
                uncorrected: 0
            })
        );
    }
}

#[cfg(test)]
mod error_filter_tests {
    use super::*;

    fn make_line(code: u32, pid: Option<u32>) -> DriverError {
        DriverError {
            code,
            pid,
            message: Some("MMU Fault".into()),
        }
    }

    fn due_codes(due: &[(u32, DriverError)]) -> Vec<(u32, u32)> {
        due.iter().map(|(gpu, error)| (*gpu, error.code)).collect()
    }

    #[test]
    fn log_line_replaces_driver_event() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.on_driver_event(0, 31, 1_000), None);
        assert_eq!(filter.take_due_errors(1_100), []);
        let error = filter
            .on_log_line(0, make_line(31, Some(7)), 1_200)
            .unwrap();
        assert_eq!(
            (error.pid, error.message.as_deref()),
            (Some(7), Some("MMU Fault"))
        );
        assert_eq!(filter.take_due_errors(2_000), []);
        assert_eq!(
            filter.on_driver_event(0, 31, 5_000),
            None,
            "the event is late"
        );
    }

    #[test]
    fn event_without_log_line_is_reported_once() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.on_driver_event(2, 48, 1_000), None);
        assert_eq!(filter.on_driver_event(2, 48, 1_010), None);
        assert_eq!(filter.take_due_errors(1_299), []);
        assert_eq!(due_codes(&filter.take_due_errors(1_300)), [(2, 48)]);
        assert_eq!(filter.take_due_errors(1_400), []);
        assert_eq!(
            filter.on_log_line(2, make_line(48, Some(7)), 1_500),
            None,
            "it went out without it"
        );
    }

    #[test]
    fn driver_events_are_immediate_without_kernel_log() {
        let mut filter = ErrorFilter::new(false);
        assert_eq!(filter.on_driver_event(0, 79, 1_000).unwrap().code, 79);
        assert_eq!(filter.on_driver_event(0, 79, 1_100), None);
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.on_driver_event(0, 79, 1_000), None);
        filter.stop_waiting_for_log();
        assert_eq!(due_codes(&filter.take_due_errors(1_000)), [(0, 79)]);
    }

    #[test]
    fn different_errors_are_reported_separately() {
        let mut filter = ErrorFilter::new(true);
        assert!(
            filter
                .on_log_line(0, make_line(31, Some(7)), 1_000)
                .is_some()
        );
        assert!(
            filter
                .on_log_line(0, make_line(31, Some(7)), 2_000)
                .is_none()
        );
        assert!(filter.on_log_line(0, make_line(31, None), 2_000).is_none());
        assert!(
            filter
                .on_log_line(0, make_line(31, Some(8)), 2_000)
                .is_some()
        );
        assert!(
            filter
                .on_log_line(1, make_line(31, Some(7)), 2_000)
                .is_some()
        );
        assert!(
            filter
                .on_log_line(0, make_line(43, Some(7)), 2_000)
                .is_some()
        );
        assert!(
            filter
                .on_log_line(0, make_line(31, Some(7)), 6_000)
                .is_some()
        );
    }

    #[test]
    fn endless_fault_is_reported_every_five_seconds() {
        let mut filter = ErrorFilter::new(true);
        let reported = (0..100).filter(|tenth| {
            filter
                .on_log_line(0, make_line(13, None), 1_000 + tenth * 100)
                .is_some()
        });
        assert_eq!(reported.count(), 2);
    }

    #[test]
    fn clock_change_does_not_delay_events() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.on_driver_event(0, 31, 9_000_000), None);
        assert_eq!(due_codes(&filter.take_due_errors(1_000)), [(0, 31)]);
        for pid in 0..10_000 {
            filter.on_log_line(0, make_line(45, Some(pid)), 1_000);
        }
        assert_eq!(filter.reported.len(), MAX_REMEMBERED_ERRORS);
    }
}
