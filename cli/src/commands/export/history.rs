//! Rows of a server's history.

use std::{io::Write, ops::Range, time::Duration};

use anyhow::anyhow;
use gpumon_history::span::{DeviceSpan, HistorySpan, Series};
use gpumon_probe::model::{
    fields::{Field, GPU_FIELDS},
    now_ms,
};
use serde_json::{Number, Value};

use super::{Format, GPU_KEYS};
use crate::{
    commands::show::csv::{self, Csv, rounded, time},
    exit::Failure,
    moment::{Beside, MomentSpan},
    past::{PastArgs, most_points},
};

pub(super) fn export(
    past: &PastArgs,
    span: MomentSpan,
    resolution: Option<Duration>,
    columns: &Csv,
    format: Format,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let span = span.resolve(&Beside::now(now_ms())).map_err(|why| Failure::usage(anyhow!(why)))?;
    let fields = fields(columns);
    if fields.is_empty() {
        return Err(Failure::usage(anyhow!("history has readings alone: name one, as power.draw_watts")));
    }
    let ids: Vec<&str> = fields.iter().map(|field| field.id).collect();
    let mut rows = Rows { fields, format, has_range: None, is_begun: false };
    for part in parts(past, &span, &ids, resolution)? {
        rows.write(&past.ask(&part, &ids)?, out)?;
    }
    if rows.has_range.is_none() {
        return Err(anyhow!(
            "the server knows nothing of that time; `gpumon serve --data-dir` keeps history for longer"
        )
        .into());
    }
    Ok(())
}

/// The readings among the columns; the others tell of a moment, and not of a time.
fn fields(columns: &Csv) -> Vec<&'static Field> {
    let names = columns.names();
    let is_named = |field: &&Field| names.contains(&&*field.id.replace('.', "_"));
    GPU_FIELDS.iter().filter(is_named).collect()
}

/// Spans of which each is answered at once, in a resolution that was asked for.
fn parts(
    past: &PastArgs,
    span: &Range<u64>,
    ids: &[&str],
    resolution: Option<Duration>,
) -> Result<Vec<Range<u64>>, Failure> {
    // One reading tells how far back anything is known.
    let known = past.ask(span, &ids[..1])?;
    let span = span.start.max(known.oldest_ms)..span.end;
    let Some(resolution) = resolution.map(|resolution| resolution.as_millis() as u64) else { return Ok(vec![span]) };
    let step = resolution.saturating_mul(most_points()) as usize;
    let parts = (span.start..span.end).step_by(step);
    Ok(parts.map(|start| start..span.end.min(start.saturating_add(step as u64))).collect())
}

struct Rows {
    fields: Vec<&'static Field>,
    format: Format,
    /// Whether there are columns of minima and maxima, once that is known.
    has_range: Option<bool>,
    /// Whether the header was written.
    is_begun: bool,
}

impl Rows {
    fn write(&mut self, span: &HistorySpan, out: &mut impl Write) -> Result<(), Failure> {
        if span.gpus.is_empty() {
            return Ok(());
        }
        let ranges = |gpu: &DeviceSpan| gpu.metrics.values().any(|series| series.min.is_some());
        let has_range = *self.has_range.get_or_insert_with(|| span.gpus.iter().any(ranges));
        let names = self.names(has_range);
        if self.format == Format::Csv && !std::mem::replace(&mut self.is_begun, true) {
            out.write_all(csv::row(names.iter().cloned()).as_bytes())?;
        }
        for (place, at_ms) in span.times_ms.iter().enumerate() {
            for gpu in &span.gpus {
                let values = self.values(gpu, place, has_range);
                // A GPU that was not there has no row.
                if values.iter().all(Option::is_none) {
                    continue;
                }
                out.write_all(self.row(gpu, *at_ms, &names, &values).as_bytes())?;
            }
        }
        Ok(())
    }

    fn names(&self, has_range: bool) -> Vec<String> {
        let of = |field: &&Field| {
            let name = field.id.replace('.', "_");
            let ends = if has_range { &["", "_min", "_max"][..] } else { &[""][..] };
            ends.iter().map(|end| format!("{name}{end}")).collect::<Vec<_>>()
        };
        GPU_KEYS.iter().map(|key| (*key).to_owned()).chain(self.fields.iter().flat_map(of)).collect()
    }

    fn values(&self, gpu: &DeviceSpan, place: usize, has_range: bool) -> Vec<Option<f64>> {
        let at = |values: &Vec<Option<f64>>| values.get(place).copied().flatten();
        let of = |field: &&Field| {
            let series = gpu.metrics.get(field.id);
            let value = series.and_then(|series| at(&series.values));
            let end = |of: fn(&Series) -> &Option<Vec<Option<f64>>>| {
                series.and_then(|series| of(series).as_ref().map_or(value, at))
            };
            if has_range { vec![value, end(|series| &series.min), end(|series| &series.max)] } else { vec![value] }
        };
        self.fields.iter().flat_map(of).collect()
    }

    fn row(&self, gpu: &DeviceSpan, at_ms: u64, names: &[String], values: &[Option<f64>]) -> String {
        let (index, name) = (gpu.index, gpu.name.clone());
        match self.format {
            Format::Csv => {
                let keys =
                    [time(at_ms), at_ms.to_string(), index.to_string(), gpu.uuid.clone(), name.unwrap_or_default()];
                csv::row(keys.into_iter().chain(values.iter().map(|value| value.map(rounded).unwrap_or_default())))
            }
            Format::Ndjson => {
                let name = name.map_or(Value::Null, Value::String);
                let keys = [time(at_ms).into(), at_ms.into(), index.into(), gpu.uuid.clone().into(), name];
                let number = |value: &Option<f64>| value.and_then(Number::from_f64).map_or(Value::Null, Value::Number);
                csv::object(names.iter().cloned().zip(keys.into_iter().chain(values.iter().map(number))))
            }
        }
    }
}
