//! Errors that a driver reports without a request, identified by the vendor's code.

use crate::model::{Severity, XidReport};

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
    /// The driver's message, if there is one.
    pub message: Option<String>,
}

/// An error that the driver wrote to the kernel log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedError {
    /// The GPU's PCI bus ID, for example `00000000:3B:00.0`.
    pub pci_bus_id: String,
    pub error: DriverError,
}

/// A reader that finds a driver's errors in the kernel log. It runs on its own thread.
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
    /// Whether a program caused the error. In most cases, only that program is affected.
    pub by_program: bool,
    /// Whether the GPU needs a reset, or the machine a reboot, before the GPU works again.
    pub needs_reset: bool,
    /// A label of at most 14 characters and a clause, both for display in terminals. Both are empty
    /// for rare errors.
    pub brief: [&'static str; 2],
}

impl ErrorInfo {
    /// Returns the error's usual name, which is `Xid` and a number for Xids.
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

    /// Builds a report of `error`, which must have the code that this information describes.
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
