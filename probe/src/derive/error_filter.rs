//! Removal of duplicate driver errors, which arrive both as driver events and as lines in the
//! kernel log.
//!
//! Log lines are reported immediately. Driver events are reported immediately only if the log is
//! not read. Otherwise, an event briefly waits for the corresponding log line, which replaces the
//! event because it also contains the process and the driver's message. Within five seconds,
//! reports with the same code on the same GPU count as one error, unless the log names another
//! process.

use crate::vendor::DriverError;

/// The maximum time that a driver event waits for the corresponding log line.
const PATIENCE_MS: u64 = 300;

/// The time within which reports with the same code count as one error. The driver reports a fault
/// repeatedly, once per channel or multiprocessor.
const DUPLICATE_MS: u64 = 5_000;

/// The maximum number of reports to remember, because one fault can terminate thousands of
/// processes.
const MAX_REMEMBERED: usize = 256;

/// A filter that remembers the driver errors of the last seconds on all GPUs of the machine.
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
    /// Creates an empty filter. `log_is_read` is whether the kernel log is being read.
    pub fn new(log_is_read: bool) -> Self {
        Self {
            log_is_read,
            pending: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Handles the end of the kernel log: pending events no longer wait for log lines.
    pub fn on_log_end(&mut self) {
        self.log_is_read = false;
    }

    /// Handles a driver event of the GPU with index `gpu`. Returns the error if it should be
    /// reported immediately. Otherwise, the error becomes due after a delay, or is replaced by a
    /// log line.
    pub fn on_driver_event(&mut self, gpu: u32, code: u32, now_ms: u64) -> Option<DriverError> {
        self.forget(now_ms);
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
        Some(self.report(seen, None))
    }

    /// Handles an error in the kernel log for the GPU with index `gpu`. Returns the error unless it
    /// has already been reported.
    pub fn on_log_line(
        &mut self,
        gpu: u32,
        logged: DriverError,
        now_ms: u64,
    ) -> Option<DriverError> {
        self.forget(now_ms);
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
        Some(self.report(
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
            !log_is_read || pending.at_ms.abs_diff(now_ms) >= PATIENCE_MS
        };
        let due: Vec<RememberedError> = self.pending.extract_if(.., is_due).collect();
        due.into_iter()
            .map(|seen| {
                (
                    seen.gpu,
                    self.report(
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

    fn report(&mut self, seen: RememberedError, message: Option<String>) -> DriverError {
        if self.reported.len() == MAX_REMEMBERED {
            self.reported.remove(0);
        }
        self.reported.push(seen);
        DriverError {
            code: seen.code,
            pid: seen.pid,
            message,
        }
    }

    fn forget(&mut self, now_ms: u64) {
        self.reported
            .retain(|seen| seen.at_ms.abs_diff(now_ms) < DUPLICATE_MS);
    }
}

#[cfg(test)]
mod tests {
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
    fn events_are_not_delayed_without_log() {
        let mut filter = ErrorFilter::new(false);
        assert_eq!(filter.on_driver_event(0, 79, 1_000).unwrap().code, 79);
        assert_eq!(filter.on_driver_event(0, 79, 1_100), None);
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.on_driver_event(0, 79, 1_000), None);
        filter.on_log_end();
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
        assert_eq!(filter.reported.len(), MAX_REMEMBERED);
    }
}
