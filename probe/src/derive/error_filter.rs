//! Removal of duplicates of driver errors, which arrive both as events of the driver and as lines
//! of the kernel's log.
//!
//! Lines of the log are reported at once. Events of the driver are reported at once if the log is
//! not read. Otherwise they wait briefly for the corresponding line of the log, which replaces them
//! because it also has the process and the driver's message. Within five seconds of a report, the
//! same code of the same GPU is the same error, unless the log names another process.

use crate::vendor::DriverError;

/// The maximum time between the driver's event and the line in the log.
const PATIENCE_MS: u64 = 300;

/// The time in which reports with the same code are one error. A fault is reported repeatedly, once
/// per channel or multiprocessor.
const SAME_MS: u64 = 5_000;

/// The maximum number of remembered reports, because a fault can terminate thousands of processes.
const MOST_REMEMBERED: usize = 256;

/// A filter that remembers the driver errors of the last seconds, of all GPUs of the machine.
#[derive(Debug)]
pub struct ErrorFilter {
    log_is_read: bool,
    /// Events of the driver that wait for their line in the log.
    pending: Vec<Seen>,
    reported: Vec<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    gpu: u32,
    code: u32,
    pid: Option<u32>,
    at_ms: u64,
}

impl ErrorFilter {
    /// Returns an empty filter. `log_is_read` is `true` if the kernel's log is followed.
    pub fn new(log_is_read: bool) -> Self {
        Self {
            log_is_read,
            pending: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Handles the end of the kernel's log: pending events no longer wait for it.
    pub fn log_ended(&mut self) {
        self.log_is_read = false;
    }

    /// Handles a driver event of the GPU with this index. Returns the error if it should be
    /// reported now. Otherwise the error becomes due after a delay, or a line of the log replaces
    /// it.
    pub fn from_driver(&mut self, gpu: u32, code: u32, now_ms: u64) -> Option<DriverError> {
        self.forget(now_ms);
        let is_known = |known: &Seen| (known.gpu, known.code) == (gpu, code);
        if self.reported.iter().any(is_known) || self.pending.iter().any(is_known) {
            return None;
        }
        let seen = Seen {
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

    /// Handles an error in the kernel's log for the GPU with this index. Returns the error unless
    /// it has already been reported.
    pub fn from_log(&mut self, gpu: u32, logged: DriverError, now_ms: u64) -> Option<DriverError> {
        self.forget(now_ms);
        let DriverError { code, pid, message } = logged;
        self.pending
            .retain(|pending| (pending.gpu, pending.code) != (gpu, code));
        let is_same = |seen: &Seen| {
            let is_other_process = seen.pid.is_some() && pid.is_some() && seen.pid != pid;
            (seen.gpu, seen.code) == (gpu, code) && !is_other_process
        };
        if self.reported.iter().any(is_same) {
            return None;
        }
        Some(self.report(
            Seen {
                gpu,
                code,
                pid,
                at_ms: now_ms,
            },
            message,
        ))
    }

    /// Returns the driver events whose line did not appear in the log within 300 ms, each with the
    /// index of its GPU. Must be called at every tick.
    pub fn due(&mut self, now_ms: u64) -> Vec<(u32, DriverError)> {
        let log_is_read = self.log_is_read;
        // The absolute difference is used, because a report must not wait for hours after the clock
        // was set back.
        let is_due =
            |pending: &mut Seen| !log_is_read || pending.at_ms.abs_diff(now_ms) >= PATIENCE_MS;
        let due: Vec<Seen> = self.pending.extract_if(.., is_due).collect();
        due.into_iter()
            .map(|seen| {
                (
                    seen.gpu,
                    self.report(
                        Seen {
                            at_ms: now_ms,
                            ..seen
                        },
                        None,
                    ),
                )
            })
            .collect()
    }

    fn report(&mut self, seen: Seen, message: Option<String>) -> DriverError {
        if self.reported.len() == MOST_REMEMBERED {
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
            .retain(|seen| seen.at_ms.abs_diff(now_ms) < SAME_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: u32, pid: Option<u32>) -> DriverError {
        DriverError {
            code,
            pid,
            message: Some("MMU Fault".into()),
        }
    }

    fn codes(due: &[(u32, DriverError)]) -> Vec<(u32, u32)> {
        due.iter().map(|(gpu, error)| (*gpu, error.code)).collect()
    }

    #[test]
    fn a_line_of_the_log_replaces_the_event_of_the_driver() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.from_driver(0, 31, 1_000), None);
        assert_eq!(filter.due(1_100), []);
        let error = filter.from_log(0, line(31, Some(7)), 1_200).unwrap();
        assert_eq!(
            (error.pid, error.message.as_deref()),
            (Some(7), Some("MMU Fault"))
        );
        assert_eq!(filter.due(2_000), []);
        assert_eq!(filter.from_driver(0, 31, 5_000), None, "the event is late");
    }

    #[test]
    fn an_event_without_a_line_in_the_log_is_reported_after_a_moment_and_once() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.from_driver(2, 48, 1_000), None);
        assert_eq!(filter.from_driver(2, 48, 1_010), None);
        assert_eq!(filter.due(1_299), []);
        assert_eq!(codes(&filter.due(1_300)), [(2, 48)]);
        assert_eq!(filter.due(1_400), []);
        assert_eq!(
            filter.from_log(2, line(48, Some(7)), 1_500),
            None,
            "it went out without it"
        );
    }

    #[test]
    fn without_the_log_nothing_waits() {
        let mut filter = ErrorFilter::new(false);
        assert_eq!(filter.from_driver(0, 79, 1_000).unwrap().code, 79);
        assert_eq!(filter.from_driver(0, 79, 1_100), None);
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.from_driver(0, 79, 1_000), None);
        filter.log_ended();
        assert_eq!(codes(&filter.due(1_000)), [(0, 79)]);
    }

    #[test]
    fn other_gpus_codes_and_processes_and_later_ones_are_others() {
        let mut filter = ErrorFilter::new(true);
        assert!(filter.from_log(0, line(31, Some(7)), 1_000).is_some());
        assert!(filter.from_log(0, line(31, Some(7)), 2_000).is_none());
        assert!(filter.from_log(0, line(31, None), 2_000).is_none());
        assert!(filter.from_log(0, line(31, Some(8)), 2_000).is_some());
        assert!(filter.from_log(1, line(31, Some(7)), 2_000).is_some());
        assert!(filter.from_log(0, line(43, Some(7)), 2_000).is_some());
        assert!(filter.from_log(0, line(31, Some(7)), 6_000).is_some());
    }

    #[test]
    fn a_fault_that_never_stops_is_reported_every_five_seconds() {
        let mut filter = ErrorFilter::new(true);
        let reported = (0..100).filter(|tenth| {
            filter
                .from_log(0, line(13, None), 1_000 + tenth * 100)
                .is_some()
        });
        assert_eq!(reported.count(), 2);
    }

    #[test]
    fn a_clock_that_is_set_back_delays_nothing_and_a_flood_is_bounded() {
        let mut filter = ErrorFilter::new(true);
        assert_eq!(filter.from_driver(0, 31, 9_000_000), None);
        assert_eq!(codes(&filter.due(1_000)), [(0, 31)]);
        for pid in 0..10_000 {
            filter.from_log(0, line(45, Some(pid)), 1_000);
        }
        assert_eq!(filter.reported.len(), MOST_REMEMBERED);
    }
}
