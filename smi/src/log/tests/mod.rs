//! Tests of the complete text and XML output for scripted boards.

pub(crate) mod boards;
pub(crate) mod dtd;
mod queries;
mod rendering;

use gpumon_probe::vendor::nvml::query::QueryBackend;
use jiff::{Zoned, civil::date, tz::TimeZone};

use crate::Context;

/// Returns a date with a single-digit day, which the output must pad.
fn fixed_time() -> Zoned {
    date(2026, 11, 7)
        .at(9, 5, 3, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap()
}

/// Returns a context in which all of `gpus` are selected.
fn make_context<'a>(driver: &'a dyn QueryBackend, gpus: &'a [u32]) -> Context<'a> {
    Context {
        driver,
        gpus,
        count: gpus.len() as u32,
        now: fixed_time(),
    }
}
