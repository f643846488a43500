//! Errors that drivers report without a request: their codes and explanations, and the
//! classification of messages that have no error code.

use std::ops::Range;

use crate::model::{Severity, XidReport, normalize_bus_id};

/// The device file of Linux's kernel log.
pub const KERNEL_LOG: &str = "/dev/kmsg";

/// An error that a driver reported about one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// The vendor's error code.
    pub code: u32,
    /// The PID of the process that caused the error, in the host's PID namespace, if the driver
    /// knows it.
    pub pid: Option<u32>,
    pub message: Option<String>,
}

/// An error that the driver wrote to the kernel log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedError {
    /// The GPU's PCI bus ID, for example `00000000:3B:00.0`.
    pub pci_bus_id: String,
    pub error: DriverError,
}

/// A reader that waits for a driver's errors in the kernel log. It runs on its own thread.
pub trait ErrorLog: Send {
    /// Blocks until the driver logs an error. Returns `None` when the log can no longer be read.
    fn wait_for_error(&mut self) -> Option<LoggedError>;
}

/// The explanation of an error code, from the vendor's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The error's name. It is empty for Xids, which are referred to by number.
    pub name: &'static str,
    /// The meaning of the error, in a sentence.
    pub meaning: &'static str,
    /// The recommended action, in a sentence.
    pub advice: &'static str,
    pub severity: Severity,
    /// Whether a program caused the error. In most cases, the error affects only that program.
    pub by_program: bool,
    /// Whether the GPU needs a reset, or the machine a reboot, before the GPU works again.
    pub needs_reset: bool,
    /// A label and a clause, both for display in terminals. `Xid 123: ` and the label together have
    /// at most 24 characters. Both are empty for rare errors.
    pub brief: [&'static str; 2],
}

impl ErrorInfo {
    /// Describes an error that the hardware or the driver causes, and that requires no reset. The
    /// error has neither a name nor short texts for terminals.
    pub(super) const fn new(
        severity: Severity,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        Self {
            name: "",
            meaning,
            advice,
            severity,
            by_program: false,
            needs_reset: false,
            brief: ["", ""],
        }
    }

    /// Returns the error's usual name. For an Xid, this is `Xid` and its number.
    pub fn title(&self, code: u32) -> String {
        if self.name.is_empty() {
            format!("Xid {code}")
        } else {
            self.name.to_owned()
        }
    }

    /// Returns a label of a few words. If the error has no label of its own, the label describes
    /// the error's effect.
    pub fn short_text(&self) -> &'static str {
        match (self.brief[0], self.needs_reset, self.by_program) {
            ("", true, _) => "needs a reset",
            ("", false, true) => "program failed",
            ("", false, false) => "see events",
            (short, ..) => short,
        }
    }

    /// Returns a clause that describes the error. For common errors, the clause includes advice.
    pub fn long_text(&self) -> String {
        let mut letters = self.meaning.trim_end_matches('.').chars();
        match self.brief[1] {
            "" => {
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                first.into_iter().chain(letters).collect()
            }
            long => long.to_owned(),
        }
    }

    /// Builds a report of `error`. The error's code must be the one that this `ErrorInfo` explains.
    pub fn build_report(&self, error: DriverError) -> XidReport {
        let DriverError { code, pid, message } = error;
        XidReport {
            code,
            name: (!self.name.is_empty()).then(|| self.name.to_owned()),
            pid,
            meaning: self.meaning.to_owned(),
            advice: self.advice.to_owned(),
            message,
        }
    }
}

/// A kind of driver error that is recognized by the text of its message.
#[derive(Clone, Copy)]
pub(super) struct ErrorKind {
    /// Strings that must all occur in the message, in this order.
    patterns: &'static [&'static str],
    pub(super) info: ErrorInfo,
}

impl ErrorKind {
    /// Creates a kind of error that is caused by the hardware or the driver.
    pub(super) const fn new(
        patterns: &'static [&'static str],
        severity: Severity,
        name: &'static str,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        let info = ErrorInfo {
            name,
            ..ErrorInfo::new(severity, meaning, advice)
        };
        Self { patterns, info }
    }

    /// Creates the kind of error that a program causes by using a wrong address in GPU memory.
    pub(super) const fn new_page_fault(patterns: &'static [&'static str]) -> Self {
        Self::new(
            patterns,
            Severity::Warning,
            "page fault",
            "A program used an address in GPU memory that it does not own.",
            "Debug the program: it reads or writes past the end of a buffer.",
        )
        .mark_as_caused_by_program()
    }

    /// Marks the error as caused by a program.
    pub(super) const fn mark_as_caused_by_program(self) -> Self {
        Self {
            info: ErrorInfo {
                by_program: true,
                ..self.info
            },
            ..self
        }
    }

    /// Marks the error as fatal, so that the GPU needs a reset.
    pub(super) const fn mark_as_needing_reset(self) -> Self {
        Self {
            info: ErrorInfo {
                needs_reset: true,
                ..self.info
            },
            ..self
        }
    }
}

/// Returns `true` if all `patterns` occur in the message, in this order.
pub(super) fn contains_in_order(message: &str, patterns: &[&str]) -> bool {
    let mut rest = Some(message);
    for pattern in patterns {
        rest = rest.and_then(|rest| Some(rest.split_once(pattern)?.1));
    }
    rest.is_some()
}

/// A vendor's kinds of errors, and the code of the first kind. The codes of the other kinds follow
/// consecutively. No other vendor uses these codes, and no Xid has one of them.
pub(super) struct ErrorTable {
    pub(super) first: u32,
    pub(super) kinds: &'static [ErrorKind],
}

impl ErrorTable {
    /// Returns the range of the table's error codes.
    pub(super) const fn codes(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.kinds.len() as u32)
    }

    /// Returns the explanation of an error code, or `None` if the code is not in this table.
    pub(super) fn describe(&self, code: u32) -> Option<ErrorInfo> {
        let place = code.checked_sub(self.first)? as usize;
        self.kinds.get(place).map(|kind| kind.info)
    }

    /// Returns the first kind of error that matches `message`, and its code.
    pub(super) fn find(&self, message: &str) -> Option<(u32, &'static ErrorKind)> {
        let mut kinds = self.codes().zip(self.kinds);
        kinds.find(|(_, kind)| contains_in_order(message, kind.patterns))
    }
}

/// Splits a driver message such as `amdgpu 0000:03:00.0: amdgpu: GPU reset begin!` into the PCI bus
/// ID and the text.
pub(super) fn split_message<'a>(text: &'a str, driver: &str) -> Option<(String, &'a str)> {
    let rest = text.strip_prefix(driver)?.strip_prefix(' ')?;
    let (address, message) = rest.split_once(": ")?;
    Some((normalize_bus_id(address)?, message))
}
