//! Classification of driver error messages that have no error codes.

use std::ops::Range;

use crate::{
    model::{Severity, normalize_bus_id},
    vendor::ErrorInfo,
};

/// A kind of driver error, which is recognized by its message.
#[derive(Clone, Copy)]
pub(in crate::vendor) struct ErrorKind {
    /// Strings that must all occur in the message, in this order.
    patterns: &'static [&'static str],
    pub(in crate::vendor) info: ErrorInfo,
}

impl ErrorKind {
    /// Creates a kind of error that is caused by the hardware or the driver.
    pub(in crate::vendor) const fn new(
        patterns: &'static [&'static str],
        severity: Severity,
        name: &'static str,
        meaning: &'static str,
        advice: &'static str,
    ) -> Self {
        let info = ErrorInfo {
            name,
            meaning,
            advice,
            severity,
            by_program: false,
            needs_reset: false,
            brief: ["", ""],
        };
        Self { patterns, info }
    }

    /// Marks the error as caused by a program.
    pub(in crate::vendor) const fn mark_as_caused_by_program(self) -> Self {
        Self {
            info: ErrorInfo {
                by_program: true,
                ..self.info
            },
            ..self
        }
    }

    /// Marks the error as fatal, so that the GPU needs a reset.
    pub(in crate::vendor) const fn mark_as_needing_reset(self) -> Self {
        Self {
            info: ErrorInfo {
                needs_reset: true,
                ..self.info
            },
            ..self
        }
    }

    fn matches(&self, message: &str) -> bool {
        let mut rest = Some(message);
        for pattern in self.patterns {
            rest = rest.and_then(|rest| Some(rest.split_once(pattern)?.1));
        }
        rest.is_some()
    }
}

/// A vendor's kinds of errors, and the code of the first kind. The codes do not overlap with those
/// of other vendors or with Xids.
pub(in crate::vendor) struct ErrorTable {
    pub(in crate::vendor) first: u32,
    pub(in crate::vendor) kinds: &'static [ErrorKind],
}

impl ErrorTable {
    /// Returns the range of the table's error codes.
    pub(in crate::vendor) const fn codes(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.kinds.len() as u32)
    }

    /// Returns the explanation of an error code, or `None` if the code is not in this table.
    pub(in crate::vendor) fn describe(&self, code: u32) -> Option<ErrorInfo> {
        let place = code.checked_sub(self.first)? as usize;
        self.kinds.get(place).map(|kind| kind.info)
    }

    /// Returns the first kind of error that matches `message`, and its code.
    pub(in crate::vendor) fn find(&self, message: &str) -> Option<(u32, &'static ErrorKind)> {
        let mut kinds = self.codes().zip(self.kinds);
        kinds.find(|(_, kind)| kind.matches(message))
    }
}

/// Splits a driver message such as `amdgpu 0000:03:00.0: amdgpu: GPU reset begin!` into the PCI bus
/// ID and the text.
pub(in crate::vendor) fn split_message<'a>(
    text: &'a str,
    driver: &str,
) -> Option<(String, &'a str)> {
    let rest = text.strip_prefix(driver)?.strip_prefix(' ')?;
    let (address, message) = rest.split_once(": ")?;
    Some((normalize_bus_id(address)?, message))
}
