//! `gpumon compare`: compares two recordings or two spans of history.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, slice};

use anyhow::anyhow;
use gpumon_history::span::HistorySpan;
use gpumon_probe::{
    local_time::time_zone,
    model::{ConditionKind, Health, Inventory, Record, Sample, Vendor, fields::GPU_FIELDS, now_ms},
    stat::{Stat, Window},
    units::format_duration,
    untrusted::escape_untrusted,
};
use serde_json::json;

use super::{
    figures::{
        FIGURES, Figure, Figures, METRICS, Meter, Point, calculate_ratio,
        calculate_throttled_percent, format_change,
    },
    replay::open_recording,
};
use crate::{
    exit::{Result, print_message, usage},
    past_readings::{PastArgs, for_each_sample},
    terminal::{
        columns::{Column, Columns},
        line::{STRONG, paint},
        output::print_report,
    },
    time_spans::{TimeReference, TypedTimeSpan, format_time},
};

/// Compare two recordings, or two spans of the running server's history
///
/// Each side is a file of `gpumon record`, or FROM..TO: a span of history in local time, for
/// example 2026-11-23T20:00..22:00, 'yesterday 20:00..22:00', -2h..-1h or 14:30..now. The
/// comparison has utilization, SM active, Tensor active, memory, energy, power and the share of
/// time with reduced clocks, for all GPUs together and for each GPU.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct CompareArgs {
    /// Baseline of the comparison: a recording, or FROM..TO
    #[arg(value_name = "A", allow_hyphen_values = true)]
    first: String,

    /// Subject of the comparison: a recording, or FROM..TO
    #[arg(value_name = "B", allow_hyphen_values = true)]
    second: String,

    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon compare before.gpumon.gz after.gpumon.gz
      Compare two recorded runs.
  gpumon compare 'yesterday 20:00..22:00' 20:00..22:00
      After 22:00, compare this evening with yesterday evening, if the history of the running server reaches back that far.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or not a recording";

/// One side of a comparison.
struct Side {
    /// The name of the recording, or the span as the user typed it.
    name: String,
    from_ms: u64,
    to_ms: u64,
    all: Figures,
    /// The figures of each GPU, sorted by index.
    gpus: Vec<(GpuName, Figures)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GpuName {
    index: u32,
    uuid: Option<String>,
    name: Option<String>,
}

pub(crate) fn run(args: &CompareArgs) -> Result {
    let (a, b) = (
        ComparedSubject::new(&args.first)?,
        ComparedSubject::new(&args.second)?,
    );
    let sides = [a.measure(&args.past)?, b.measure(&args.past)?];
    print_report(
        args.json,
        || to_json(&sides),
        |terminal| format_report(&sides, terminal),
    )
}

fn to_json(sides: &[Side; 2]) -> serde_json::Value {
    let side = |side: &Side| {
        let gpus: Vec<_> = side
            .gpus
            .iter()
            .map(|(GpuName { index, uuid, name }, figures)| {
                json!({ "index": index, "uuid": uuid, "name": name, "figures": figures.to_json() })
            })
            .collect();
        json!({
            "name": side.name,
            "from_ms": side.from_ms,
            "to_ms": side.to_ms,
            "duration_ms": side.duration_ms(),
            "all": side.all.to_json(),
            "gpus": gpus,
        })
    };
    let [a, b] = sides;
    let gpus: Vec<_> = pair_gpus(sides)
        .filter_map(|(name, [a, b])| {
            Some(json!({ "index": name.index, "figures": b?.compare_with(a?).to_json() }))
        })
        .collect();
    let ratio = calculate_ratio(a.duration_ms() as f64, b.duration_ms() as f64);
    json!({
        "a": side(a),
        "b": side(b),
        "b_relative_to_a": {
            "duration_ratio": ratio,
            "all": b.all.compare_with(&a.all).to_json(),
            "gpus": gpus,
        },
    })
}

impl Side {
    fn duration_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

/// Returns each GPU that occurs on at least one side, with its figures on both sides.
fn pair_gpus([a, b]: &[Side; 2]) -> impl Iterator<Item = (&GpuName, [Option<&Figures>; 2])> {
    let mut names: Vec<&GpuName> = a.gpus.iter().chain(&b.gpus).map(|(name, _)| name).collect();
    names.sort_by_key(|name| name.index);
    names.dedup_by_key(|name| name.index);
    names.into_iter().map(move |name| {
        let found = [a, b].map(|side| {
            side.gpus
                .iter()
                .find(|(known, _)| known.index == name.index)
                .map(|(_, figures)| figures)
        });
        (name, found)
    })
}

fn format_report(sides: &[Side; 2], terminal: Option<usize>) -> String {
    let [a, b] = sides;
    let zone = time_zone();
    let mut text = String::new();
    for (letter, side) in ["A", "B"].iter().zip(sides) {
        let [from, to] = [side.from_ms, side.to_ms].map(|ms| format_time(ms, &zone));
        let time = format_duration(side.duration_ms());
        let longer = calculate_ratio(a.duration_ms() as f64, b.duration_ms() as f64)
            .filter(|_| *letter == "B");
        let longer = longer
            .map(|ratio| format!(", {}", format_change(ratio)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {}  {from} to {to} ({time}{longer})",
            paint(STRONG, letter),
            escape_untrusted(&side.name)
        );
    }
    let mut rows = Vec::new();
    if pair_gpus(sides).count() != 1 {
        rows.extend(format_comparison_rows(
            "All GPUs",
            [Some(&a.all), Some(&b.all)],
        ));
    }
    for (gpu, figures) in pair_gpus(sides) {
        let name = gpu.name.as_deref().map(Vendor::strip_vendor);
        let name = format!("GPU {} {}", gpu.index, name.unwrap_or_default());
        rows.extend(format_comparison_rows(
            &escape_untrusted(name.trim_end()),
            figures,
        ));
    }
    let first = [Column::new_left_aligned("", 0); 2].into_iter();
    let all: Vec<_> = first.chain(FIGURES.iter().map(Figure::column)).collect();
    let columns = Columns::new(&all, &rows, terminal);
    text += "\n";
    text + &columns.format_rows(&rows)
}

/// Returns the rows of side A, side B, and the difference B - A.
fn format_comparison_rows(name: &str, figures: [Option<&Figures>; 2]) -> Vec<Vec<String>> {
    let row =
        |side: &str, cells: Vec<String>| [vec![String::new(), side.to_owned()], cells].concat();
    let mut rows = Vec::new();
    for (side, figures) in ["A", "B"].into_iter().zip(figures) {
        rows.extend(figures.map(|figures| row(side, figures.format_cells().collect())));
    }
    if let [Some(a), Some(b)] = figures {
        rows.push(row("B - A", b.compare_with(a).format_cells().collect()));
    }
    if let Some(first) = rows.first_mut() {
        name.clone_into(&mut first[0]);
    }
    rows
}

enum ComparedSubject<'a> {
    Recording(&'a str),
    Span(&'a str, TypedTimeSpan),
}

impl<'a> ComparedSubject<'a> {
    /// Parses one side of the comparison. If a file with the name `text` exists, it is read as a
    /// recording, even if `text` looks like a span.
    fn new(text: &'a str) -> Result<Self> {
        if Path::new(text).exists() {
            return Ok(Self::Recording(text));
        }
        if !text.contains("..") {
            let cure = "give a file written by `gpumon record`, or a span of history as FROM..TO, \
                        for example 20:00..22:00";
            return Err(usage!("there is no recording '{text}': {cure}"));
        }
        text.parse()
            .map(|span| Self::Span(text, span))
            .map_err(|why: String| usage!(why))
    }

    fn measure(&self, past: &PastArgs) -> Result<Side> {
        match self {
            Self::Recording(file) => measure_recording(file),
            Self::Span(text, span) => measure_history(text, *span, past),
        }
    }
}

#[derive(Default)]
struct RecordingMeter {
    /// The UUID of each GPU, if known, and the sums of its readings.
    gpus: BTreeMap<u32, (Option<String>, Meter)>,
    inventory: Option<Inventory>,
    first_ms: Option<u64>,
    last: Option<(u64, u32)>,
    /// The total memory of all GPUs.
    memory: Window,
}

fn measure_recording(file: &str) -> Result<Side> {
    let recording = open_recording(Path::new(file))?;
    let mut measured = RecordingMeter::default();
    let (first_ms, last_ms) = recording.first_and_last_sample_ms();
    for_each_sample(
        &recording,
        &(first_ms.min(last_ms)..last_ms.max(first_ms).saturating_add(1)),
        |record| {
            match record {
                Record::Inventory(inventory) => measured.inventory = Some(inventory),
                Record::Sample(sample) => measured.add(&sample),
                _ => {}
            }
            Ok(())
        },
    )?;
    Ok(measured.into_side(file))
}

impl RecordingMeter {
    fn add(&mut self, sample: &Sample) {
        let interval_ms = u64::from(sample.interval_ms);
        // After a gap, a sample counts for only one interval, because nothing was measured during
        // the gap.
        let time_ms = self.last.map_or(interval_ms, |(before_ms, _)| {
            let apart_ms = sample.at_ms.saturating_sub(before_ms);
            if apart_ms > (interval_ms * 5 / 2).max(1500) {
                interval_ms
            } else {
                apart_ms
            }
        });
        self.first_ms.get_or_insert(sample.at_ms);
        self.last = Some((sample.at_ms, sample.interval_ms));
        let mut memory = Window::default();
        for gpu in sample.gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
            let (_, meter) = self
                .gpus
                .entry(gpu.index)
                .or_insert_with(|| (gpu.uuid.clone(), Meter::default()));
            let stat = |id| {
                let field = GPU_FIELDS.iter().find(|field| field.id == id)?;
                field.access.value(gpu).map(Stat::from_value)
            };
            let is_throttled = gpu
                .conditions
                .iter()
                .any(|condition| matches!(condition.kind, ConditionKind::Throttled { .. }));
            let point = Point {
                time_ms,
                stats: METRICS.map(stat),
                counted_ms: gpu.power.energy_joules_total.read_at_ms(gpu.at_ms),
                is_throttled: Some(is_throttled),
            };
            meter.add(&point);
            if let Some(bytes) = point.memory_bytes() {
                memory.add(bytes, 1.0);
            }
        }
        if let Some(bytes) = memory.weighted_sum() {
            self.memory.add(bytes, 1.0);
        }
    }

    fn into_side(self, name: &str) -> Side {
        // The last inventory of a recording is the most complete. It may contain names and UUIDs
        // that earlier inventories lack.
        let known = self
            .inventory
            .map_or_else(Vec::new, |inventory| inventory.gpus);
        let named = |(index, (uuid, meter)): (u32, (Option<String>, Meter))| {
            let known = known.iter().find(|known| known.index == index);
            let name = GpuName {
                index,
                uuid: known.and_then(|known| known.uuid.clone()).or(uuid),
                name: known.and_then(|known| known.name.value().cloned()),
            };
            (name, meter.to_figures(None))
        };
        let gpus: Vec<_> = self.gpus.into_iter().map(named).collect();
        Side {
            name: name.to_owned(),
            from_ms: self.first_ms.unwrap_or(0),
            to_ms: self.last.map_or(0, |(at_ms, interval_ms)| {
                at_ms.saturating_add(interval_ms.into())
            }),
            all: Figures::combine(&gpus.iter().map(|(_, figures)| figures), self.memory.max()),
            gpus,
        }
    }
}

fn measure_history(text: &str, span: TypedTimeSpan, past: &PastArgs) -> Result<Side> {
    let asked = span
        .resolve(&TimeReference::from_now(now_ms()))
        .map_err(|why| usage!("{text}: {why}"))?;
    let span = past.fetch_history(&asked, &METRICS, None)?;
    if span.gpus.is_empty() {
        return Err(anyhow!(
            "{text}: no history is recorded for that time; {}",
            past.describe_missing_history_fix()
        )
        .into());
    }
    // If history starts later than the requested span, this side covers less time than the user
    // expects. A message therefore reports the start of history.
    if span.from_ms > asked.start.saturating_add(span.resolution_ms) {
        let from = format_time(span.from_ms, &time_zone());
        print_message(&format!("{text}: no history is recorded before {from}"));
    }
    Ok(measure_span(text, &span))
}

fn measure_span(text: &str, span: &HistorySpan) -> Side {
    let times = &span.times_ms;
    let mut memory = vec![Window::default(); times.len()];
    let gpus: Vec<_> = span
        .gpus
        .iter()
        .map(|gpu| {
            let mut meter = Meter::default();
            for (place, memory) in memory.iter_mut().enumerate() {
                let point = Point::new(span, gpu, place);
                if let Some(bytes) = point.memory_bytes() {
                    memory.add(bytes, 1.0);
                }
                meter.add(&point);
            }
            let name = GpuName {
                index: gpu.index,
                uuid: Some(gpu.uuid.clone()),
                name: gpu.name.clone(),
            };
            let conditions = span.conditions.iter();
            let throttled = calculate_throttled_percent(
                conditions.filter(|condition| condition.uuid == gpu.uuid),
                slice::from_ref(&(span.from_ms..span.to_ms)),
            );
            (name, meter.to_figures(Some(throttled)))
        })
        .collect();
    Side {
        name: text.to_owned(),
        from_ms: span.from_ms,
        // `to_ms` is exclusive.
        to_ms: span.to_ms + 1,
        all: Figures::combine(
            &gpus.iter().map(|(_, figures)| figures),
            memory
                .iter()
                .filter_map(Window::weighted_sum)
                .reduce(f64::max),
        ),
        gpus,
    }
}
