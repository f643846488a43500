//! Errors of AMD GPUs: errors that the driver logs, firmware tables that cannot be decoded, and the
//! error counters of hardware blocks.
//!
//! AMD's driver has no error codes, so gpumon assigns numbers that Xids do not use.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::metrics::MetricsError;
use crate::{
    model::{
        Absence, Absent, Ecc, EccCounts, Reading,
        Severity::{Critical, Notice, Warning},
    },
    vendor::{
        DriverError, LoggedError,
        driver_error::{ErrorKind, ErrorTable, contains_in_order, split_message},
        drm::{Attributes, list_names},
        kernel_log::{LogParser, make_printable},
        lock,
    },
};

/// The errors of the `amdgpu` driver.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    first: 100_000,
    kinds: &KINDS,
};

const AFTER_RESET: &str =
    "Restart the programs that used the GPU. If it happens again, update driver and firmware.";
const CHECK_COOLING: &str = "Check fans, heat sink and the temperature of the room.";

/// Creates the kind of error for a temperature at which the machine shuts down. The driver logs two
/// messages about it.
const fn make_critical_temperature_error(patterns: &'static [&'static str]) -> ErrorKind {
    ErrorKind::new(
        patterns,
        Critical,
        "over temperature",
        "The GPU has become so hot that the machine is shutting down.",
        CHECK_COOLING,
    )
}

/// All kinds of errors. Specific kinds come before general ones, because the first match is used.
static KINDS: [ErrorKind; 19] = [
    ErrorKind::new(
        &["GPU reset", "failed"],
        Critical,
        "GPU reset failed",
        "The driver tried to reset the GPU and failed.",
        "Reboot the machine. If it happens again, have the board checked.",
    )
    .mark_as_needing_reset(),
    ErrorKind::new(
        &["GPU recovery disabled."],
        Critical,
        "GPU hang",
        "The GPU hangs, and the driver is not allowed to reset it.",
        "Reboot the machine, or allow resets with the module parameter `amdgpu.gpu_recovery=1`.",
    )
    .mark_as_needing_reset(),
    ErrorKind::new(
        &["VRAM is lost due to GPU reset!"],
        Critical,
        "memory lost",
        "The GPU was reset, and the content of its memory is lost.",
        AFTER_RESET,
    ),
    ErrorKind::new(
        &["device lost from bus!"],
        Critical,
        "fell off the bus",
        "The GPU no longer responds on the PCIe bus.",
        "Reboot the machine. If it happens again, check the power cables and the slot.",
    )
    .mark_as_needing_reset(),
    ErrorKind::new(
        &["reaches threshold value"],
        Critical,
        "too many bad pages",
        "The GPU's memory has more bad pages than the driver accepts.",
        "Have the board replaced.",
    )
    .mark_as_needing_reset(),
    ErrorKind::new(
        &[FATAL_TEXT],
        Critical,
        "fatal hardware error",
        "The hardware has found an error after which the GPU must be reset. Until then, the \
         readings of all AMD GPUs are unreliable.",
        "The driver resets the GPU by itself. If it does not, reboot the machine. If it happens \
         again, have the board replaced.",
    ),
    ErrorKind::new(
        &["uncorrectable hardware error"],
        Critical,
        "uncorrectable error",
        "The hardware has found an error that it could not correct.",
        "Check the results of programs that used the GPU. If it happens again, have the board \
         replaced.",
    ),
    ErrorKind::new(
        &["poison is consumed"],
        Critical,
        "bad data used",
        "A program used data with an uncorrectable error and was stopped.",
        "Start the program again. If it happens again, have the board replaced.",
    ),
    ErrorKind::new(
        &["RAS poison consumption is issued!"],
        Critical,
        "bad data used",
        "The GPU is reset, because it has used data with an uncorrectable error.",
        AFTER_RESET,
    ),
    ErrorKind::new(
        &["correctable hardware errors"],
        Notice,
        "corrected errors",
        "The hardware has corrected errors.",
        "Nothing needs to be done. If the number grows every day, have the board checked.",
    ),
    ErrorKind::new(
        &["GPU over temperature range"],
        Critical,
        "over temperature",
        "The GPU is hotter than its limit.",
        CHECK_COOLING,
    ),
    make_critical_temperature_error(&["GPU HW Critical Temperature Fault"]),
    make_critical_temperature_error(&["System is going to shutdown"]),
    ErrorKind::new(
        &["GPU is throttled, expect performance decrease"],
        Warning,
        "throttled",
        "The GPU is at its power or temperature limit, so its clocks are reduced.",
        "Check the cooling and the power limit.",
    ),
    ErrorKind::new(
        &["GPU thermal throttling temperature reached"],
        Warning,
        "thermal throttling",
        "The GPU is at its temperature limit, so its clocks are reduced.",
        CHECK_COOLING,
    ),
    ErrorKind::new_page_fault(&["page fault (src_id"]),
    ErrorKind::new(
        &["ring ", " timeout, signaled seq="],
        Warning,
        "GPU hang",
        "The GPU stopped processing a program's commands.",
        "Start the program again. If other programs hang too, update driver and firmware.",
    )
    .mark_as_caused_by_program(),
    ErrorKind::new(
        &["GPU", "reset", "begin!"],
        Warning,
        "GPU reset",
        "The driver resets the GPU. All programs that use it lose their work.",
        AFTER_RESET,
    ),
    // gpumon itself generates this error when it cannot decode a firmware table.
    ErrorKind::new(
        &["gpu_metrics "],
        Notice,
        "unreadable metrics",
        "gpumon cannot read the metrics table of the GPU's firmware.",
        "Update gpumon. Until then, readings that only this table provides are absent.",
    ),
];

/// A parser that finds `amdgpu` errors in the kernel log.
#[derive(Debug, Default)]
pub(super) struct AmdErrors {
    fatal: Arc<FatalErrors>,
    /// An error whose process is still unknown, because the next log line names it. With older
    /// kernels, the GPU's bus ID is also missing and is taken from the next line that contains one.
    pending: Option<(Option<String>, DriverError)>,
}

impl AmdErrors {
    /// Creates a parser. The parser also records fatal errors in `fatal`.
    pub(super) fn new(fatal: Arc<FatalErrors>) -> Self {
        Self {
            fatal,
            pending: None,
        }
    }
}

/// Returns a parser for the log messages of AMD's driver.
pub(crate) fn log_parser() -> Box<dyn LogParser> {
    Box::<AmdErrors>::default()
}

impl LogParser for AmdErrors {
    fn parse(&mut self, text: &str) -> Vec<LoggedError> {
        let (bus_id, message) = match split_message(text, "amdgpu") {
            Some((bus_id, message)) => (Some(bus_id), message),
            None if text.contains("[amdgpu]]") => (None, text),
            None => return Vec::new(),
        };
        if let Some(bus_id) = &bus_id {
            self.fatal.update_from_message(bus_id, message);
        }
        let mut found = Vec::new();
        if let Some((pending_bus_id, mut error)) = self.pending.take() {
            // A message about another GPU can appear between an error and the line that names its
            // process.
            let is_other = pending_bus_id.is_some() && bus_id.is_some() && pending_bus_id != bus_id;
            if !is_other {
                error.pid = error.pid.or_else(|| parse_pid(message));
            }
            match pending_bus_id.or_else(|| bus_id.clone()) {
                Some(pci_bus_id) => found.push(LoggedError { pci_bus_id, error }),
                None => self.pending = Some((None, error)),
            }
        }
        let Some((code, kind)) = ERRORS.find(message) else {
            return found;
        };
        let error = DriverError {
            code,
            pid: parse_pid(message),
            message: Some(make_printable(message)),
        };
        match bus_id {
            // The next line names the process.
            bus_id if kind.info.by_program && error.pid.is_none() => {
                found.extend(self.exchange_pending_error(bus_id, error));
            }
            Some(pci_bus_id) => found.push(LoggedError { pci_bus_id, error }),
            None => {}
        }
        found
    }
}

impl AmdErrors {
    /// Keeps `error` until the next line is read, and returns the error that was kept before.
    fn exchange_pending_error(
        &mut self,
        bus_id: Option<String>,
        error: DriverError,
    ) -> Option<LoggedError> {
        let (bus_id, error) = self.pending.replace((bus_id, error))?;
        Some(LoggedError {
            pci_bus_id: bus_id?,
            error,
        })
    }
}

/// Finds the PID in text such as `process NAME pid 1234`. A process name can imitate this text, so
/// only the last match, which the driver itself wrote, is used.
fn parse_pid(message: &str) -> Option<u32> {
    let (_, rest) = message.split_once("rocess ")?;
    let rest = rest
        .split_once(" thread ")
        .map_or(rest, |(process, _)| process);
    let (_, pid) = rest.rsplit_once(" pid ")?;
    pid.split_whitespace()
        .next()?
        .trim_end_matches(',')
        .parse()
        .ok()
        .filter(|pid| *pid > 0)
}

/// The number of consecutive incomplete firmware tables that counts as an error. A table can be
/// incomplete briefly, for example during a reset.
const MIN_BROKEN_TABLES: u32 = 3;

/// The interval at which a table that still cannot be decoded is reported again.
const BROKEN_TABLE_REPORT_INTERVAL: Duration = Duration::from_mins(5);

/// Counts how many of a GPU's `gpu_metrics` tables in a row could not be decoded, and keeps the
/// error to report about them.
#[derive(Debug, Default)]
pub(super) struct BrokenTables {
    in_a_row: u32,
    reported: Option<Instant>,
    pending: Option<DriverError>,
}

impl BrokenTables {
    /// Records whether the latest table could be decoded. `error` is `None` if it could.
    pub(super) fn record_decode_result(&mut self, error: Option<&MetricsError>) {
        // If the GPU does not provide a table, the file is empty, which is not an error.
        let Some(error) = error.filter(|error| **error != MetricsError::Empty) else {
            (self.in_a_row, self.reported) = (0, None);
            return;
        };
        self.in_a_row = self.in_a_row.saturating_add(1);
        let is_lasting =
            matches!(error, MetricsError::Unknown { .. }) || self.in_a_row >= MIN_BROKEN_TABLES;
        let is_due = self
            .reported
            .is_none_or(|at| at.elapsed() >= BROKEN_TABLE_REPORT_INTERVAL);
        let message = error.to_string();
        if let Some((code, _)) = ERRORS.find(&message)
            && is_lasting
            && is_due
        {
            self.reported = Some(Instant::now());
            self.pending = Some(DriverError {
                code,
                pid: None,
                message: Some(message),
            });
        }
    }

    /// Returns the error that is due to be reported, if any. Each error is returned only once.
    pub(super) fn take_due_error(&mut self) -> Option<DriverError> {
        self.pending.take()
    }
}

/// A string that occurs in every message about a fatal error.
const FATAL_TEXT: &str = "ERREVENT_ATHUB_INTERRUPT";

/// The strings in messages about a successful reset. A message must contain all strings of one
/// entry, in this order.
const RESET_TEXTS: [&[&str]; 3] = [
    &["GPU reset(", ") succeeded!"],
    &["GPU reset succeeded"],
    &["GPU reset end with ret = 0"],
];

/// The PCI bus IDs of the GPUs that have reported a fatal error since their last reset.
///
/// From the error until the reset, the kernel function `read_sensor` does not work for any GPU: it
/// reports success without setting a value (see `amdgpu_ras_intr_triggered` in the kernel).
#[derive(Debug, Default)]
pub(super) struct FatalErrors(Mutex<HashSet<String>>);

impl FatalErrors {
    /// Updates the set of failed GPUs according to a driver message.
    fn update_from_message(&self, bus_id: &str, message: &str) {
        let is_reset = || {
            RESET_TEXTS
                .iter()
                .any(|parts| contains_in_order(message, parts))
        };
        let mut gpus = lock(&self.0);
        if message.contains(FATAL_TEXT) {
            gpus.insert(bus_id.to_owned());
        } else if !gpus.is_empty() && is_reset() {
            gpus.remove(bus_id);
        }
    }

    /// Returns `true` if any GPU still needs a reset. Until then, no GPU's sensors can be trusted.
    pub(super) fn are_resets_pending(&self) -> bool {
        !lock(&self.0).is_empty()
    }
}

/// The interval at which the error counters are read. Each read makes the driver collect the counts
/// from the hardware.
const RAS_READ_INTERVAL: Duration = Duration::from_mins(1);

/// The suffix of the files that contain a block's error counts.
pub(super) const ERROR_COUNT_SUFFIX: &str = "_err_count";

/// The error counters of a GPU's hardware blocks (RAS).
#[derive(Debug, Default)]
pub(super) struct RasCounters {
    read_at: Option<Instant>,
    /// The last known numbers of corrected and uncorrected errors in each block. If a block cannot
    /// be read, its last counts are kept, so that the totals never decrease.
    blocks: BTreeMap<String, (u64, u64)>,
}

impl RasCounters {
    /// Returns the error counts of all blocks in a PCI device. The counters are read at most once a
    /// minute.
    pub(super) fn read(&mut self, device: &Attributes) -> Ecc {
        if self
            .read_at
            .is_none_or(|at| at.elapsed() >= RAS_READ_INTERVAL)
        {
            self.read_at = Some(Instant::now());
            for block in list_blocks(device) {
                let text = device.read_text(&format!("ras/{block}{ERROR_COUNT_SUFFIX}"));
                if let Some(counts) = text.ok().and_then(|text| parse_counts(&text)) {
                    self.blocks.insert(block, counts);
                }
            }
        }
        let mut ecc = Ecc::new_absent(&Absence::NotSupported);
        let sums =
            self.blocks.values().copied().reduce(|one, other| {
                (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
            });
        if let Some((corrected, uncorrected)) = sums {
            ecc.volatile = EccCounts {
                corrected_total: Reading::Now(corrected),
                uncorrected_total: Reading::Now(uncorrected),
            };
        }
        ecc
    }
}

fn list_blocks(device: &Attributes) -> Vec<String> {
    let names = list_names(&device.folder().join("ras")).into_iter();
    names
        .filter_map(|name| Some(name.strip_suffix(ERROR_COUNT_SUFFIX)?.to_owned()))
        .collect()
}

/// Parses lines such as `ue: 0` and `ce: 3`, and returns the numbers of corrected and uncorrected
/// errors.
fn parse_counts(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.trim().strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    Some((count("ce:")?, count("ue:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_lines(lines: &[&str]) -> Vec<(&'static str, Option<u32>)> {
        let mut errors = AmdErrors::default();
        let found = lines.iter().flat_map(|line| errors.parse(line));
        found
            .map(|logged| {
                assert_eq!(logged.pci_bus_id, "00000000:03:00.0");
                (
                    ERRORS.describe(logged.error.code).unwrap().name,
                    logged.error.pid,
                )
            })
            .collect()
    }

    #[test]
    fn hang_error_takes_process_from_next_log_line() {
        let lines = [
            "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14",
            "amdgpu 0000:03:00.0: amdgpu: Process information: process a pid 7 pid 4711 thread a",
            "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
            "amdgpu 0000:03:00.0: amdgpu: VRAM is lost due to GPU reset!",
            "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) succeeded!",
        ];
        let expected = [
            ("GPU hang", Some(4711)),
            ("GPU reset", None),
            ("memory lost", None),
        ];
        assert_eq!(parse_lines(&lines), expected);
    }

    #[test]
    fn hang_without_address_takes_address_of_next_line() {
        let lines = [
            "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=1",
            "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process x pid 12",
            "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!",
        ];
        assert_eq!(
            parse_lines(&lines),
            [("GPU hang", Some(12)), ("GPU reset", None)]
        );
    }

    #[test]
    fn messages_of_each_kind_are_recognized() {
        for (message, name) in [
            ("GPU reset(2) failed", "GPU reset failed"),
            ("GPU reset begin!", "GPU reset"),
            ("GPU mode1 reset begin!", "GPU reset"),
            ("device lost from bus!", "fell off the bus"),
            (
                "3 uncorrectable hardware errors detected in umc block",
                "uncorrectable error",
            ),
            (
                "{12}Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
                "fatal hardware error",
            ),
            (
                "17 correctable hardware errors detected in umc block",
                "corrected errors",
            ),
            (
                "GPU over temperature range(SW CTF) detected!",
                "over temperature",
            ),
        ] {
            let line = format!("amdgpu 0000:03:00.0: amdgpu: {message}");
            assert_eq!(parse_lines(&[&line]), [(name, None)], "{message}");
        }
    }

    #[test]
    fn unrelated_messages_are_not_errors() {
        for line in [
            "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) succeeded!",
            "amdgpu 0000:03:00.0: amdgpu: SMU is initialized successfully!",
            "NVRM: Xid (PCI:0000:3b:00): 79",
            "usb 1-1: GPU reset begin!",
            "",
        ] {
            assert_eq!(parse_lines(&[line]), [], "{line}");
        }
    }

    #[test]
    fn page_fault_names_process() {
        let lines = [
            "amdgpu 0000:03:00.0: amdgpu: [gfxhub0] page fault (src_id:0 ring:24 vmid:3)",
            "amdgpu 0000:03:00.0: amdgpu:  for process python pid 99 thread python pid 99)",
        ];
        assert_eq!(parse_lines(&lines), [("page fault", Some(99))]);
    }
}

#[cfg(test)]
mod broken_tables_tests {
    use super::*;
    use crate::vendor::amd::metrics::Version;

    fn report(tables: &mut BrokenTables, error: Option<&MetricsError>) -> Option<String> {
        tables.record_decode_result(error);
        tables.take_due_error()?.message
    }

    #[test]
    fn unknown_metrics_table_version_is_reported_once() {
        let mut tables = BrokenTables::default();
        let version = Version {
            format: 9,
            content: 8,
        };
        let unknown = MetricsError::Unknown { version, size: 120 };
        let message = report(&mut tables, Some(&unknown)).unwrap();
        assert!(message.contains("v9.8 with 120 bytes"), "{message}");
        assert_eq!(report(&mut tables, Some(&unknown)), None);
        assert_eq!(report(&mut tables, None), None);
        assert!(report(&mut tables, Some(&unknown)).is_some());
    }

    #[test]
    fn metrics_table_is_reported_if_repeatedly_incomplete() {
        let mut tables = BrokenTables::default();
        let truncated = MetricsError::Truncated {
            length: 4,
            size: 120,
        };
        for error in [Some(&truncated), Some(&truncated), None, Some(&truncated)] {
            assert_eq!(report(&mut tables, error), None);
        }
        assert_eq!(report(&mut tables, Some(&truncated)), None);
        assert!(report(&mut tables, Some(&truncated)).is_some());
        let empty = MetricsError::Empty;
        let reports = (0..9).filter_map(|_| report(&mut tables, Some(&empty)));
        assert_eq!(reports.count(), 0);
    }
}

#[cfg(test)]
mod fatal_tests {
    use super::*;

    #[test]
    fn reset_of_same_gpu_clears_fatal_error() {
        let (own, other) = ("00000000:03:00.0", "00000000:43:00.0");
        let errors = FatalErrors::default();
        let fatal = "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!";
        for reset in [
            "GPU reset(2) succeeded!",
            "GPU reset succeeded, trying to resume",
            "GPU reset end with ret = 0",
        ] {
            errors.update_from_message(own, "3 correctable hardware errors detected in umc block");
            assert!(!errors.are_resets_pending());
            errors.update_from_message(own, fatal);
            assert!(errors.are_resets_pending());
            errors.update_from_message(own, "GPU reset begin!");
            errors.update_from_message(own, "GPU reset(2) failed");
            errors.update_from_message(own, "GPU reset end with ret = -62");
            errors.update_from_message(other, reset);
            assert!(errors.are_resets_pending());
            errors.update_from_message(own, reset);
            assert!(!errors.are_resets_pending(), "{reset}");
        }
    }
}

#[cfg(test)]
mod ras_tests {
    use std::fs;

    use super::*;

    #[test]
    fn ecc_errors_of_all_blocks_are_summed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            fs::create_dir_all(folder.path().join("ras")).unwrap();
            fs::write(folder.path().join("ras").join(name), content).unwrap();
        };
        let device = Attributes::new(folder.path());
        let mut counters = RasCounters::default();
        assert_eq!(
            counters.read(&device),
            Ecc::new_absent(&Absence::NotSupported)
        );
        write("umc_err_count", "ue: 1\nce: 3\nde: 9\n");
        write("vcn_err_count", "ue: 0\nce: 2\n");
        write("mca_err_count", "ue: 4\nce: 0\n");
        write("jpeg_err_count", "Query currently inaccessible\n");
        write("features", "feature mask: 0x2f\n");
        let read = |counters: &mut RasCounters| {
            counters.read_at = None;
            let counts = counters.read(&device).volatile;
            [counts.corrected_total, counts.uncorrected_total]
        };
        assert_eq!(read(&mut counters), [5, 5].map(Reading::Now));
        write("umc_err_count", "Query currently inaccessible\n");
        write("vcn_err_count", "ue: 0\nce: 3\n");
        assert_eq!(
            read(&mut counters),
            [6, 5].map(Reading::Now),
            "sums never fall"
        );
    }
}
