//! What an Xid means and what to do about it.
//!
//! An Xid is the number that NVIDIA's driver gives to what went wrong on a GPU. The numbers are NVIDIA's public
//! catalogue of Xid errors; those that newer catalogues list as unused are described as older drivers meant them.

use crate::{model::Severity, vendor::ErrorInfo};

mod driver;
mod engines;
mod links;
mod memory;
mod programs;

/// What `code` means; `UNKNOWN` where NVIDIA does not document it.
pub fn describe(code: u32) -> ErrorInfo {
    let tables = [programs::TABLE, engines::TABLE, memory::TABLE, links::TABLE, driver::TABLE];
    let mut entries = tables.into_iter().flatten();
    entries.find(|entry| entry.codes.contains(&code)).map_or(UNKNOWN, |entry| entry.info)
}

/// Codes that mean the same.
struct Entry {
    codes: &'static [u32],
    info: ErrorInfo,
}

const UNKNOWN: ErrorInfo = ErrorInfo {
    meaning: "The driver reported an error that NVIDIA does not document.",
    advice: "Check the driver's message in the kernel log. If it recurs, update the driver or contact the vendor.",
    severity: Severity::Warning,
    by_program: false,
    needs_reset: false,
};

/// A program did it.
const fn program(codes: &'static [u32], severity: Severity, meaning: &'static str, advice: &'static str) -> Entry {
    Entry { codes, info: ErrorInfo { meaning, advice, severity, by_program: true, needs_reset: false } }
}

/// The GPU, the driver or the machine did it, and work goes on.
const fn fault(codes: &'static [u32], severity: Severity, meaning: &'static str, advice: &'static str) -> Entry {
    Entry { codes, info: ErrorInfo { meaning, advice, severity, by_program: false, needs_reset: false } }
}

/// The GPU is of no use before it was reset.
const fn broken(codes: &'static [u32], meaning: &'static str, advice: &'static str) -> Entry {
    Entry {
        codes,
        info: ErrorInfo { meaning, advice, severity: Severity::Critical, by_program: false, needs_reset: true },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn entries() -> impl Iterator<Item = &'static Entry> {
        [programs::TABLE, engines::TABLE, memory::TABLE, links::TABLE, driver::TABLE].into_iter().flatten()
    }

    #[test]
    fn every_code_up_to_172_that_has_a_meaning_is_described_once() {
        let mut times = HashMap::new();
        for code in entries().flat_map(|entry| entry.codes) {
            *times.entry(*code).or_insert(0) += 1;
        }
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        // Those that NVIDIA has reserved and never given a meaning.
        let unused = [5, 10, 15, 17, 23, 49, 50, 51, 52, 53, 55, 87, 90, 91];
        for code in 1..=172 {
            assert_eq!(times.contains_key(&code), !unused.contains(&code), "{code}");
        }
    }

    #[test]
    fn both_sentences_are_whole_and_short() {
        for entry in entries() {
            for sentence in [entry.info.meaning, entry.info.advice] {
                assert!(sentence.ends_with('.') && sentence.starts_with(char::is_uppercase), "{sentence}");
                assert!((20..=220).contains(&sentence.len()) && !sentence.contains("  "), "{sentence}");
            }
        }
    }

    #[test]
    fn a_program_s_mistake_is_never_critical_and_what_needs_a_reset_always_is() {
        for info in entries().map(|entry| entry.info) {
            assert!(!info.by_program || (info.severity < Severity::Critical && !info.needs_reset), "{info:?}");
            assert!(!info.needs_reset || info.severity == Severity::Critical, "{info:?}");
        }
        assert!([13, 31, 43, 45, 69].into_iter().all(|code| describe(code).by_program));
        assert!([48, 64, 79, 95, 119, 120, 140].into_iter().all(|code| describe(code).needs_reset));
    }

    #[test]
    fn an_unknown_code_is_said_to_be_unknown() {
        assert_eq!(describe(0), UNKNOWN);
        assert_eq!(describe(u32::MAX), UNKNOWN);
        assert_ne!(describe(79), UNKNOWN);
    }
}
