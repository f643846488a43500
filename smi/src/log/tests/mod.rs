//! The whole of both forms, over boards that are scripted.

pub(crate) mod boards;
pub(crate) mod dtd;
mod queries;
mod rendering;

use gpumon_probe::vendor::nvml::query::QueryBackend;
use jiff::{Zoned, civil::date, tz::TimeZone};

use crate::Context;

/// A single digit for the day, which is padded.
fn now() -> Zoned {
    date(2026, 11, 7)
        .at(9, 5, 3, 0)
        .to_zoned(TimeZone::UTC)
        .unwrap()
}

/// As many GPUs, all of them selected.
fn context<'a>(driver: &'a dyn QueryBackend, gpus: &'a [u32]) -> Context<'a> {
    Context {
        driver,
        gpus,
        count: gpus.len() as u32,
        now: now(),
    }
}
