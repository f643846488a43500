//! Tests of the complete text and XML with scripted boards.

pub(crate) mod boards;
pub(crate) mod dtd;
mod queries;
mod rendering;

use gpumon_probe::vendor::nvml::query::QueryBackend;
use jiff::{Zoned, civil::date, tz::TimeZone};

use crate::Context;

/// Returns a time with a single-digit day, which must be padded.
fn now() -> Zoned {
    date(2026, 11, 7)
        .at(9, 5, 3, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap()
}

/// Returns a context in which all of these GPUs are selected.
fn context<'a>(driver: &'a dyn QueryBackend, gpus: &'a [u32]) -> Context<'a> {
    Context {
        driver,
        gpus,
        count: gpus.len() as u32,
        now: now(),
    }
}
