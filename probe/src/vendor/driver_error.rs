//! Errors that a driver reports by itself, by the vendor's code.

use crate::model::{Severity, XidReport};

/// Where Linux keeps the kernel's log.
pub const KERNEL_LOG: &str = "/dev/kmsg";

/// An error that the driver reported about one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// The vendor's code.
    pub code: u32,
    /// The process that it is about, in the host's PID namespace, where the driver knows it.
    pub pid: Option<u32>,
    /// The driver's own message, where it has one.
    pub message: Option<String>,
}

/// An error that the driver wrote to the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedError {
    /// The PCI bus ID of the GPU, as its identity has it: `00000000:3B:00.0`.
    pub pci_bus_id: String,
    /// The error.
    pub error: DriverError,
}

/// Follows the errors of a driver in the kernel's log, on a thread of its own.
pub trait ErrorLog: Send {
    /// Blocks until the driver has logged an error; `None` once the log can no longer be read.
    fn wait(&mut self) -> Option<LoggedError>;
}

/// What an error code means, from the vendor's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The name of an error that is not known by its code; empty for an Xid.
    pub name: &'static str,
    /// What happened, in a sentence.
    pub meaning: &'static str,
    /// What to do about it, in a sentence.
    pub advice: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Whether a program caused it and, in most cases, only that program is affected.
    pub by_program: bool,
    /// Whether the GPU needs a reset, or the machine a reboot, before it works again.
    pub needs_reset: bool,
    /// The error in at most 14 letters, and a clause about it for terminals. Both are empty for a
    /// rare error.
    pub brief: [&'static str; 2],
}

impl ErrorInfo {
    /// Returns what people call the error: `Xid 79`, or its name.
    pub fn title(&self, code: u32) -> String {
        if self.name.is_empty() {
            format!("Xid {code}")
        } else {
            self.name.to_owned()
        }
    }

    /// Returns what happened, or else its effect, in a few words.
    pub fn short(&self) -> &'static str {
        match (self.brief[0], self.needs_reset, self.by_program) {
            ("", true, _) => "needs a reset",
            ("", false, true) => "program failed",
            ("", false, false) => "see events",
            (short, ..) => short,
        }
    }

    /// Returns what happened as a clause, with what to do about it if people often hear of it.
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

    /// The report of an error with this code.
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
