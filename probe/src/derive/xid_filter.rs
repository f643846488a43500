//! One report for an Xid that is told twice: by NVML's events and by the kernel's log.
//!
//! The rule: what the log says goes out at once. What NVML says goes out at once where the log is not read, for nobody
//! else will tell it; else it waits for a moment, and the log's line, which knows the process and has the driver's
//! words, goes out in its place. Within five seconds of a report, the same code of the same GPU is the same Xid,
//! unless the log names another process.

use crate::{model::XidReport, vendor::nvml::kernel_log::LoggedXid, vendor::nvml::xid};

/// The line of an Xid is in the log before or just after NVML's event.
const PATIENCE_MS: u64 = 300;

/// One fault is reported many times in a row, once per channel or multiprocessor.
const SAME_MS: u64 = 5_000;

/// A fault that ends thousands of processes is told of as many at a time.
const MOST_REMEMBERED: usize = 256;

/// Remembers the Xids of the last seconds, of all GPUs of the machine.
#[derive(Debug)]
pub struct XidFilter {
    log_is_read: bool,
    /// Told by NVML, and waiting for the log's line.
    held: Vec<Told>,
    /// Gone out.
    told: Vec<Told>,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    gpu: u32,
    code: u32,
    pid: Option<u32>,
    at_ms: u64,
}

impl XidFilter {
    /// `log_is_read` says whether the kernel's log is followed.
    pub fn new(log_is_read: bool) -> Self {
        Self { log_is_read, held: Vec::new(), told: Vec::new() }
    }

    /// The kernel's log can no longer be read; nothing waits for it any more.
    pub fn log_ended(&mut self) {
        self.log_is_read = false;
    }

    /// NVML tells of an Xid of the GPU with this index. The report, if it goes out now; else [`due`](Self::due) gives
    /// it, or the log's line takes its place.
    pub fn from_driver(&mut self, gpu: u32, code: u32, now_ms: u64) -> Option<XidReport> {
        self.forget(now_ms);
        let is_known = |known: &Told| (known.gpu, known.code) == (gpu, code);
        if self.told.iter().any(is_known) || self.held.iter().any(is_known) {
            return None;
        }
        let told = Told { gpu, code, pid: None, at_ms: now_ms };
        if self.log_is_read {
            self.held.push(told);
            return None;
        }
        Some(self.tell(told, None))
    }

    /// The kernel's log tells of an Xid of the GPU with this index, which is the one at its
    /// [`pci_bus_id`](LoggedXid::pci_bus_id). The report, unless it went out before.
    pub fn from_log(&mut self, gpu: u32, logged: LoggedXid, now_ms: u64) -> Option<XidReport> {
        self.forget(now_ms);
        let LoggedXid { code, pid, message, .. } = logged;
        self.held.retain(|held| (held.gpu, held.code) != (gpu, code));
        let is_same = |told: &Told| {
            let is_other_process = told.pid.is_some() && pid.is_some() && told.pid != pid;
            (told.gpu, told.code) == (gpu, code) && !is_other_process
        };
        if self.told.iter().any(is_same) {
            return None;
        }
        Some(self.tell(Told { gpu, code, pid, at_ms: now_ms }, Some(message).filter(|words| !words.is_empty())))
    }

    /// What NVML told, and the log did not within 300 ms, each with its GPU's index. To be asked for at every tick.
    pub fn due(&mut self, now_ms: u64) -> Vec<(u32, XidReport)> {
        let log_is_read = self.log_is_read;
        // Also where the clock was set back: a report must not wait for hours.
        let is_due = |held: &Told| !log_is_read || held.at_ms.abs_diff(now_ms) >= PATIENCE_MS;
        let (due, held) = std::mem::take(&mut self.held).into_iter().partition(is_due);
        self.held = held;
        let due: Vec<Told> = due;
        due.into_iter().map(|told| (told.gpu, self.tell(Told { at_ms: now_ms, ..told }, None))).collect()
    }

    fn tell(&mut self, told: Told, message: Option<String>) -> XidReport {
        if self.told.len() == MOST_REMEMBERED {
            self.told.remove(0);
        }
        self.told.push(told);
        xid::report(told.code, told.pid, message)
    }

    fn forget(&mut self, now_ms: u64) {
        self.told.retain(|told| told.at_ms.abs_diff(now_ms) < SAME_MS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: u32, pid: Option<u32>) -> LoggedXid {
        LoggedXid { pci_bus_id: "00000000:3B:00.0".into(), code, pid, message: "MMU Fault".into() }
    }

    fn codes(due: &[(u32, XidReport)]) -> Vec<(u32, u32)> {
        due.iter().map(|(gpu, report)| (*gpu, report.code)).collect()
    }

    #[test]
    fn the_log_s_line_takes_the_place_of_nvml_s_event() {
        let mut filter = XidFilter::new(true);
        assert_eq!(filter.from_driver(0, 31, 1_000), None);
        assert_eq!(filter.due(1_100), []);
        let report = filter.from_log(0, line(31, Some(7)), 1_200).unwrap();
        assert_eq!((report.pid, report.message.as_deref()), (Some(7), Some("MMU Fault")));
        assert!(report.meaning.contains("address"));
        assert_eq!(filter.due(2_000), []);
        assert_eq!(filter.from_driver(0, 31, 5_000), None, "NVML is late");
    }

    #[test]
    fn what_the_log_does_not_tell_goes_out_after_a_moment_and_once() {
        let mut filter = XidFilter::new(true);
        assert_eq!(filter.from_driver(2, 48, 1_000), None);
        assert_eq!(filter.from_driver(2, 48, 1_010), None);
        assert_eq!(filter.due(1_299), []);
        assert_eq!(codes(&filter.due(1_300)), [(2, 48)]);
        assert_eq!(filter.due(1_400), []);
        assert_eq!(filter.from_log(2, line(48, Some(7)), 1_500), None, "it went out without it");
    }

    #[test]
    fn without_the_log_nothing_waits() {
        let mut filter = XidFilter::new(false);
        assert_eq!(filter.from_driver(0, 79, 1_000).unwrap().code, 79);
        assert_eq!(filter.from_driver(0, 79, 1_100), None);
        let mut filter = XidFilter::new(true);
        assert_eq!(filter.from_driver(0, 79, 1_000), None);
        filter.log_ended();
        assert_eq!(codes(&filter.due(1_000)), [(0, 79)]);
    }

    #[test]
    fn other_gpus_codes_and_processes_and_later_ones_are_others() {
        let mut filter = XidFilter::new(true);
        assert!(filter.from_log(0, line(31, Some(7)), 1_000).is_some());
        assert!(filter.from_log(0, line(31, Some(7)), 2_000).is_none());
        assert!(filter.from_log(0, line(31, None), 2_000).is_none());
        assert!(filter.from_log(0, line(31, Some(8)), 2_000).is_some());
        assert!(filter.from_log(1, line(31, Some(7)), 2_000).is_some());
        assert!(filter.from_log(0, line(43, Some(7)), 2_000).is_some());
        assert!(filter.from_log(0, line(31, Some(7)), 6_000).is_some());
    }

    #[test]
    fn a_fault_that_never_stops_is_told_every_five_seconds() {
        let mut filter = XidFilter::new(true);
        let told = (0..100).filter(|tenth| filter.from_log(0, line(13, None), 1_000 + tenth * 100).is_some());
        assert_eq!(told.count(), 2);
    }

    #[test]
    fn a_clock_that_is_set_back_delays_nothing_and_a_flood_is_bounded() {
        let mut filter = XidFilter::new(true);
        assert_eq!(filter.from_driver(0, 31, 9_000_000), None);
        assert_eq!(codes(&filter.due(1_000)), [(0, 31)]);
        for pid in 0..10_000 {
            filter.from_log(0, line(45, Some(pid)), 1_000);
        }
        assert_eq!(filter.told.len(), MOST_REMEMBERED);
    }
}
