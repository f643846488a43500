//! Errors that a driver reports on its own, identified by the vendor's code.

use crate::model::{Severity, XidReport};

/// The device file of Linux's kernel log.
pub const KERNEL_LOG: &str = "/dev/kmsg";

/// An error that a driver reported about one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// The vendor's error code.
    pub code: u32,
    /// The process that the error concerns, in the host's PID namespace, if the driver knows it.
    pub pid: Option<u32>,
    /// The driver's message, if there is one.
    pub message: Option<String>,
}

/// An error that the driver wrote to the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedError {
    /// The PCI bus ID in the format of the GPU's identity: `00000000:3B:00.0`.
    pub pci_bus_id: String,
    pub error: DriverError,
}

/// A reader of a driver's errors in the kernel log, which runs on its own thread.
pub trait ErrorLog: Send {
    /// Blocks until the driver logs an error. Returns `None` when the log can no longer be read.
    fn wait(&mut self) -> Option<LoggedError>;
}

/// The explanation of an error code, from the vendor's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The error's name. It is empty for Xids, which are known by their numbers.
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
    /// A label of at most 14 letters and a clause, both for terminals. Both are empty for rare
    /// errors.
    pub brief: [&'static str; 2],
}

impl ErrorInfo {
    /// Returns the usual name of the error: `Xid 79`, or its own name.
    pub fn title(&self, code: u32) -> String {
        if self.name.is_empty() {
            format!("Xid {code}")
        } else {
            self.name.to_owned()
        }
    }

    /// Returns a label of a few words: the error's own, or else its effect.
    pub fn short(&self) -> &'static str {
        match (self.brief[0], self.needs_reset, self.by_program) {
            ("", true, _) => "needs a reset",
            ("", false, true) => "program failed",
            ("", false, false) => "see events",
            (short, ..) => short,
        }
    }

    /// Returns the error as a clause. Common errors include advice.
    pub fn long(&self) -> String {
        let mut letters = self.meaning.trim_end_matches('.').chars();
        match self.brief[1] {
            "" => {
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                first.into_iter().chain(letters).collect()
            }
            long => long.to_owned(),
        }
    }

    /// Builds the report of an error with this code.
    pub fn report(&self, error: DriverError) -> XidReport {
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
