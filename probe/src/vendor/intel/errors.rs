//! Intel driver errors in the kernel log.

use crate::{
    model::Severity::{Critical, Warning},
    vendor::{
        DriverError, LoggedError,
        driver_error::{ErrorKind, ErrorTable, split_message},
        kernel_log::{LogParser, make_printable},
    },
};

pub(super) const DRIVER_NAMES: [&str; 2] = ["i915", "xe"];

/// The errors of the `i915` and `xe` drivers.
pub(crate) static ERRORS: ErrorTable = ErrorTable {
    first: 200_000,
    kinds: &KINDS,
};

/// Creates the kind of error for a GPU hang. Each driver has its own message.
const fn make_hang_error(patterns: &'static [&'static str]) -> ErrorKind {
    ErrorKind::new(
        patterns,
        Warning,
        "GPU hang",
        "The GPU stopped processing a program's commands.",
        "Start the program again. If other programs hang too, update the driver.",
    )
    .mark_as_caused_by_program()
}

/// Creates the kind of error for a reset. Each driver has its own message.
const fn make_reset_error(patterns: &'static [&'static str]) -> ErrorKind {
    ErrorKind::new(
        patterns,
        Warning,
        "GPU reset",
        "The driver resets the GPU or one of its engines. Programs can lose their work.",
        "Start the programs again. If it happens again, update the driver.",
    )
}

/// All kinds of errors. Specific kinds come before general ones, because the first match is used.
static KINDS: [ErrorKind; 8] = [
    ErrorKind::new(
        &["wedged"],
        Critical,
        "GPU stopped",
        "The driver stopped using the GPU after an error.",
        "Reload the driver or reboot the machine. If it happens again, update the firmware.",
    )
    .mark_as_needing_reset(),
    ErrorKind::new(
        &["Hardware error"],
        Critical,
        "hardware error",
        "The hardware has reported an error.",
        "See the kernel log for the kind of error. If it happens again, have the board checked.",
    ),
    make_hang_error(&["GPU HANG: ecode"]),
    make_hang_error(&["Timedout job"]),
    ErrorKind::new_page_fault(&["Fault response: Unsuccessful"]),
    ErrorKind::new(
        &["Engine reset: engine_class="],
        Warning,
        "engine reset",
        "The driver has reset an engine of the GPU. The program that used it loses its work.",
        "Start the program again. If it happens again, update the driver.",
    ),
    make_reset_error(&["reset started"]),
    make_reset_error(&["Resetting "]),
];

/// A parser that finds `i915` and `xe` errors in the kernel log.
#[derive(Debug)]
pub(super) struct IntelErrors;

/// Returns a parser for the log messages of Intel's drivers.
pub(crate) fn log_parser() -> Box<dyn LogParser> {
    Box::new(IntelErrors)
}

impl LogParser for IntelErrors {
    fn parse(&mut self, text: &str) -> Vec<LoggedError> {
        let parse = || {
            let (pci_bus_id, message) = DRIVER_NAMES
                .iter()
                .find_map(|driver| split_message(text, driver))?;
            let (code, _) = ERRORS.find(message)?;
            let error = DriverError {
                code,
                pid: parse_pid(message),
                message: Some(make_printable(message)),
            };
            Some(LoggedError { pci_bus_id, error })
        };
        parse().into_iter().collect()
    }
}

/// Finds the PID in an `i915` message, which ends with text such as `in NAME [1234]`.
fn parse_pid(message: &str) -> Option<u32> {
    let (_, pid) = message.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    pid.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_each_kind_are_recognized() {
        for (line, name, pid) in [
            (
                "i915 0000:03:00.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python [1234]",
                "GPU hang",
                Some(1234),
            ),
            (
                "i915 0000:03:00.0: [drm] Resetting chip for stopped heartbeat",
                "GPU reset",
                None,
            ),
            (
                "xe 0000:03:00.0: [drm] Timedout job: seqno=42, lrc_seqno=42",
                "GPU hang",
                None,
            ),
            (
                "xe 0000:03:00.0: [drm] CRITICAL: Xe has declared device 0000:03:00.0 as wedged.",
                "GPU stopped",
                None,
            ),
        ] {
            let [logged] = &IntelErrors.parse(line)[..] else {
                panic!("{line}")
            };
            assert_eq!(logged.pci_bus_id, "00000000:03:00.0");
            assert_eq!(
                ERRORS.describe(logged.error.code).unwrap().name,
                name,
                "{line}"
            );
            assert_eq!(logged.error.pid, pid, "{line}");
        }
        for line in [
            "xe 0000:03:00.0: [drm] GuC firmware loaded",
            "usb 1-1: wedged",
            "",
        ] {
            assert_eq!(IntelErrors.parse(line), [], "{line}");
        }
    }
}
