//! Tests of complete queries with scripted NVML answers.

mod board;
mod lists;
mod names;
mod queries;
mod values;

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject, SystemQuery, Value};
use jiff::{Timestamp, tz::TimeZone};

use super::{QueryKind, parse_request};
use crate::{Context, tests::scripted::ScriptedBackend};

/// Returns the header and the rows, exactly as they are printed.
fn render_query(
    driver: &dyn QueryBackend,
    gpus: &[u32],
    query: QueryKind,
    fields: &str,
    format: &str,
) -> String {
    let request = parse_request(query, fields, Some(format)).unwrap();
    let now = "2026-11-21T12:00:10.555Z"
        .parse::<Timestamp>()
        .unwrap()
        .to_zoned(TimeZone::UTC);
    let context = Context {
        driver,
        gpus,
        count: 2,
        now,
    };
    request.format_header().unwrap_or_default() + &request.render_rows(&context)
}

/// Returns the cells of GPU 0, without the header.
fn render_cells(driver: &dyn QueryBackend, fields: &str) -> String {
    let line = render_query(driver, &[0], QueryKind::Gpu, fields, "csv,noheader");
    line.strip_suffix('\n').unwrap().to_owned()
}
