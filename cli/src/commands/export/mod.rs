//! `gpumon export`: prints recordings or history for other programs.

use std::{
    io::{self, BufWriter, Write},
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::anyhow;
use gpumon_history::{
    database::TIERS,
    span::{DeviceSpan, HistorySpan, Metric, SpanPart},
};
use gpumon_probe::model::{Inventory, Record, now_ms};
use serde_json::Value;

use super::{
    replay::open_recording,
    show::csv::{self, DEVICE_KEYS, Format, RowKind, SelectedColumns, format_timestamp},
};
use crate::{
    exit::{Result, usage},
    options::parse_time,
    past_readings::{PastArgs, for_each_sample, max_response_points},
    terminal::output::print_raw,
    time_spans::{TimeReference, TypedTime, TypedTimeSpan},
};

/// Print a recording, or the history of a running server, as CSV or JSON
///
/// Each row is one sample of one GPU, in the columns of `gpumon --csv`; MIG devices and the host
/// have rows of their own if their readings are requested. Units are in the column names, and times
/// are UTC. History that is older than ten minutes has means over ten seconds or more, with a
/// minimum and a maximum of each.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct ExportArgs {
    /// Recording to export; by default, the running server's history
    file: Option<PathBuf>,

    /// Start of the export: a date, a time of day or both; a time before now (for a recording,
    /// before its end), such as -2h; or a time after the first sample, such as +90s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<TypedTime>,

    /// End of the export (exclusive), in the formats of --from
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<TypedTime>,

    /// Output format of the rows
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

    /// Print only these readings in addition to time and GPU, comma-separated; `help` lists them.
    /// Readings of MIG devices begin with `mig.`, those of the host with `host.`; `all`, `mig` and
    /// `host` select all readings of a kind
    #[arg(long, value_name = "NAMES")]
    metrics: Option<String>,

    /// Print one row per process instead; for recordings only
    #[arg(long, requires = "file")]
    processes: bool,

    /// Time between rows of history, for example 10s or 1m; by default, as short as 5000 rows per
    /// GPU allow
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "file")]
    resolution: Option<Duration>,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon export night.gpumon.gz > night.csv
      Print a recording as CSV.
  gpumon export night.gpumon.gz --from 03:00 --to 03:30 --metrics power.draw_watts --format ndjson
      Print half an hour of one reading as JSON.
  gpumon export --from -2h --metrics utilization,power.draw_watts > today.csv
      Print the last two hours of the running server.
  gpumon export --from -2h --metrics utilization,host.cpu.busy_percent,mig
      Also print the host's CPU utilization and all readings of MIG devices, in rows with `host` or `mig` in column `kind`.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or not a recording";

/// The columns that identify a row.
const GPU_KEYS: [&str; 5] = ["time", "time_ms", "index", "uuid", "name"];
const PROCESS_KEYS: [&str; 4] = ["time", "time_ms", "gpu_index", "pid"];

pub(crate) fn run(args: &ExportArgs) -> Result {
    let (rows, keys) = if args.processes {
        (RowKind::Processes, &PROCESS_KEYS[..])
    } else {
        (RowKind::Devices, &GPU_KEYS[..])
    };
    if args.metrics.as_deref() == Some(csv::HELP) {
        return print_raw(&csv::format_help(rows).replace("--columns", "--metrics"));
    }
    let columns =
        SelectedColumns::with_keys(rows, keys, args.metrics.as_deref()).map_err(|error| {
            usage!(error.replace("gpumon --csv --columns", "gpumon export --metrics"))
        })?;
    let span = TypedTimeSpan::new(args.from, args.to);
    let mut out = BufWriter::new(io::stdout().lock());
    match &args.file {
        Some(file) => export_recording(file, span, &columns, args.format, &mut out)?,
        None => export_history(
            &args.past,
            span,
            args.resolution,
            &columns,
            args.format,
            &mut out,
        )?,
    }
    out.flush()?;
    Ok(())
}

fn export_recording(
    file: &Path,
    span: TypedTimeSpan,
    columns: &SelectedColumns,
    format: Format,
    out: &mut impl Write,
) -> Result {
    let recording = open_recording(file)?;
    let span = span
        .resolve(&TimeReference::from_recording(
            recording.first_and_last_sample_ms(),
        ))
        .map_err(|why| usage!(why))?;
    if format == Format::Csv {
        out.write_all(columns.format_header().as_bytes())?;
    }
    let mut inventory: Option<Inventory> = None;
    for_each_sample(&recording, &span, |record| {
        match record {
            Record::Inventory(newer) => inventory = Some(newer),
            Record::Sample(sample) => {
                if let Some(inventory) = &inventory {
                    let rows = columns.format_rows(inventory, &sample, format);
                    out.write_all(rows.as_bytes())?;
                }
            }
            _ => {}
        }
        Ok(())
    })
}

fn export_history(
    past: &PastArgs,
    span: TypedTimeSpan,
    resolution: Option<Duration>,
    columns: &SelectedColumns,
    format: Format,
    out: &mut impl Write,
) -> Result {
    let span = span
        .resolve(&TimeReference::from_now(now_ms()))
        .map_err(|why| usage!(why))?;
    let asked = select_metrics(columns);
    if asked.is_empty() {
        return Err(usage!(
            "no readings are selected, and history contains only readings: select at least one \
             with --metrics, such as power.draw_watts"
        ));
    }
    let ids: Vec<&str> = asked.iter().map(|metric| &*metric.id).collect();
    let resolution_ms = resolution.map(|resolution| (resolution.as_millis() as u64).max(1));
    let is_key = |name: &&'static str| GPU_KEYS.contains(name) || DEVICE_KEYS.contains(name);
    let keys = columns.names().filter(is_key).collect();
    let mut rows = HistoryRows {
        asked,
        keys,
        format,
        has_range: None,
        knows_time: false,
        last_ms: None,
    };
    for part in split_span_for_requests(past, &span, &ids, resolution_ms)? {
        rows.write(&past.fetch_history(&part, &ids, resolution_ms)?, out)?;
    }
    if rows.has_range.is_none() && rows.knows_time {
        let names = ids.join(", ");
        return Err(anyhow!(
            "no device on this machine reported {names} in the requested time: choose from the \
             readings that `gpumon export --metrics help` lists"
        )
        .into());
    }
    if rows.has_range.is_none() {
        return Err(anyhow!(
            "no history is recorded for the requested time; {}",
            past.describe_missing_history_fix()
        )
        .into());
    }
    Ok(())
}

/// Returns the metrics of the selected columns. Other columns describe a single sample and are not
/// recorded in history.
fn select_metrics(columns: &SelectedColumns) -> Vec<&'static Metric> {
    let names: Vec<_> = columns.names().collect();
    Metric::all()
        .filter(|metric| names.contains(&&*format_column_name(metric)))
        .collect()
}

fn format_column_name(metric: &Metric) -> String {
    metric.id.replace('.', "_")
}

/// Splits a span of history into parts, so that the rows of each part fit into one response of the
/// server. Without a resolution, the whole span is a single part.
fn split_span_for_requests(
    past: &PastArgs,
    span: &Range<u64>,
    ids: &[&str],
    resolution_ms: Option<u64>,
) -> Result<Vec<Range<u64>>> {
    // The first request is for a single metric. Its response contains the time of the oldest
    // history.
    let known = past.fetch_history(span, &ids[..1], None)?;
    let span = span.start.max(known.oldest_ms)..span.end;
    let Some(resolution_ms) = resolution_ms else {
        return Ok(vec![span]);
    };
    let part_ms = find_part_length_ms(resolution_ms);
    let first = span.start / part_ms * part_ms;
    let starts = (first..span.end).step_by(part_ms as usize);
    Ok(starts
        .map(|start| start.max(span.start)..span.end.min(start.saturating_add(part_ms)))
        .collect())
}

/// Returns the length, in milliseconds, of the parts into which a span is split. The rows of a part
/// fit into one response. History is stored at several resolutions. If possible, the length is a
/// multiple of all of them, so that no row is divided between two parts.
fn find_part_length_ms(resolution_ms: u64) -> u64 {
    let longest_ms = TIERS
        .iter()
        .map(|tier| tier.resolution_ms)
        .max()
        .unwrap_or(1);
    let most_ms = resolution_ms.saturating_mul(max_response_points());
    let common_ms = (1..=longest_ms).map(|times| resolution_ms.saturating_mul(times));
    let common_ms = common_ms
        .take_while(|ms| *ms <= most_ms)
        .find(|ms| ms.is_multiple_of(longest_ms));
    common_ms.map_or(most_ms, |common_ms| most_ms / common_ms * common_ms)
}

struct HistoryRows {
    asked: Vec<&'static Metric>,
    /// The columns that identify a row. They precede the metrics.
    keys: Vec<&'static str>,
    format: Format,
    /// Whether the rows have minima and maxima; `None` until the first part has arrived.
    has_range: Option<bool>,
    /// Whether history contains any point in the span, even if none of the requested metrics has a
    /// value there.
    knows_time: bool,
    /// The time of the last written row. Parts with different resolutions may overlap, so rows up
    /// to this time are skipped.
    last_ms: Option<u64>,
}

impl HistoryRows {
    fn write(&mut self, span: &HistorySpan, out: &mut impl Write) -> Result {
        self.knows_time |= !span.times_ms.is_empty();
        let devices: Vec<_> = span.parts().collect();
        if devices.is_empty() {
            return Ok(());
        }
        let ranges =
            |device: &SpanPart<'_>| device.metrics.values().any(|series| series.min.is_some());
        let is_first = self.has_range.is_none();
        let has_range = *self
            .has_range
            .get_or_insert_with(|| devices.iter().any(ranges));
        let names = self.list_column_names(has_range);
        if self.format == Format::Csv && is_first {
            out.write_all(csv::format_row(names.iter().cloned()).as_bytes())?;
        }
        let is_new = |at_ms: u64| self.last_ms.is_none_or(|last_ms| at_ms > last_ms);
        for (place, at_ms) in span
            .times_ms
            .iter()
            .enumerate()
            .filter(|(_, at_ms)| is_new(**at_ms))
        {
            for device in &devices {
                let values = self.read_values(device, place, has_range);
                // A device without any value at this time gets no row.
                if values.iter().all(Option::is_none) {
                    continue;
                }
                out.write_all(self.format_row(device, *at_ms, &names, &values).as_bytes())?;
            }
        }
        self.last_ms = span.times_ms.last().copied().max(self.last_ms);
        Ok(())
    }

    fn list_column_names(&self, has_range: bool) -> Vec<String> {
        let of = |metric: &&Metric| {
            let name = format_column_name(metric);
            let ends = if has_range {
                &["", "_min", "_max"][..]
            } else {
                &[""][..]
            };
            ends.iter()
                .map(|end| format!("{name}{end}"))
                .collect::<Vec<_>>()
        };
        self.keys
            .iter()
            .map(|key| (*key).to_owned())
            .chain(self.asked.iter().flat_map(of))
            .collect()
    }

    fn read_values(
        &self,
        device: &SpanPart<'_>,
        place: usize,
        has_range: bool,
    ) -> Vec<Option<f64>> {
        let of = |metric: &&Metric| {
            let series = device.metrics.get(&*metric.id);
            let series = series.filter(|_| metric.device == device.kind);
            let stat = series.and_then(|series| series.stat_at(place));
            let parts = [
                stat.map(|stat| stat.mean),
                stat.map(|stat| stat.min),
                stat.map(|stat| stat.max),
            ];
            parts.into_iter().take(if has_range { 3 } else { 1 })
        };
        self.asked.iter().flat_map(of).collect()
    }

    fn format_row(
        &self,
        device: &SpanPart<'_>,
        at_ms: u64,
        names: &[String],
        values: &[Option<f64>],
    ) -> String {
        let keys = self
            .keys
            .iter()
            .map(|key| read_key_column(device, key, at_ms));
        let values = values.iter().map(|value| Value::from(*value));
        self.format
            .format_line(names.iter().cloned(), keys.chain(values))
    }
}

/// Returns the value of an identifying column.
fn read_key_column(part: &SpanPart<'_>, key: &str, at_ms: u64) -> Value {
    let of =
        |read: fn(&DeviceSpan) -> Option<Value>| part.device.and_then(read).unwrap_or(Value::Null);
    match key {
        "time" => format_timestamp(at_ms).into(),
        "time_ms" => at_ms.into(),
        "index" => of(|device| Some(device.index.into())),
        "uuid" => of(|device| Some(device.uuid.clone().into())),
        "name" => of(|device| device.name.clone().map(Value::from)),
        "parent" => of(|device| device.parent.clone().map(Value::from)),
        _ => part.kind.export_name().into(),
    }
}

#[cfg(test)]
mod tests;
