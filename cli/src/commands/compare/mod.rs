//! `gpumon compare`: two recordings, or two spans of history, in numbers.

mod subject;

use std::fmt::Write as _;

use gpumon_probe::{local_time::time_zone, model::Vendor, units::duration, untrusted::escaped};
use serde_json::json;

use self::subject::Subject;
use super::figures::{self, FIGURES, Figure, Figures, divide, percent};
use crate::{
    exit::Failure,
    moment::shown,
    past::PastArgs,
    terminal::{
        columns::{Column, Columns},
        output::print_report,
        style::{STRONG, paint},
    },
};

/// Compare two recordings, or two spans of the running server's history
///
/// Each is a file of `gpumon record`, or FROM..TO: a span of history in local time, for example 2026-11-23T20:00..22:00,
/// 'yesterday 20:00..22:00', -2h..-1h or 14:30..now. Utilization, SM active, Tensor active, memory, energy, power and the
/// share of time with reduced clocks are compared, of all GPUs and of each.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct CompareArgs {
    /// What to compare with: a recording, or FROM..TO
    #[arg(value_name = "A", allow_hyphen_values = true)]
    first: String,

    /// What is compared: a recording, or FROM..TO
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
      Compare last night with the night before, as far as the running server remembers.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or not a recording";

/// One side of a comparison.
struct Side {
    /// As it was typed.
    name: String,
    from_ms: u64,
    to_ms: u64,
    all: Figures,
    /// By index.
    gpus: Vec<(GpuName, Figures)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GpuName {
    index: u32,
    uuid: Option<String>,
    name: Option<String>,
}

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let subjects = [Subject::new(&args.first)?, Subject::new(&args.second)?];
    let [a, b] = subjects;
    let sides = [a.measure(&args.past)?, b.measure(&args.past)?];
    print_report(
        args.json,
        || as_json(&sides),
        |terminal| draw(&sides, terminal),
    )
}

fn as_json(sides: &[Side; 2]) -> serde_json::Value {
    let side = |side: &Side| {
        let gpus: Vec<_> = side
            .gpus
            .iter()
            .map(|(GpuName { index, uuid, name }, figures)| {
                json!({ "index": index, "uuid": uuid, "name": name, "figures": figures.as_json() })
            })
            .collect();
        json!({
            "name": side.name,
            "from_ms": side.from_ms,
            "to_ms": side.to_ms,
            "duration_ms": side.duration_ms(),
            "all": side.all.as_json(),
            "gpus": gpus,
        })
    };
    let [a, b] = sides;
    let gpus: Vec<_> = pairs(sides)
        .filter_map(|(name, [a, b])| {
            Some(json!({ "index": name.index, "figures": b?.compare_with(a?).as_json() }))
        })
        .collect();
    let ratio = figures::divide(a.duration_ms() as f64, b.duration_ms() as f64);
    json!({
        "a": side(a),
        "b": side(b),
        "b_relative_to_a": {
            "duration_ratio": ratio,
            "all": b.all.compare_with(&a.all).as_json(),
            "gpus": gpus,
        },
    })
}

impl Side {
    fn duration_ms(&self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }
}

/// Each GPU that is on one of the sides, with its figures on both.
fn pairs([a, b]: &[Side; 2]) -> impl Iterator<Item = (&GpuName, [Option<&Figures>; 2])> {
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

fn draw(sides: &[Side; 2], terminal: Option<usize>) -> String {
    let [a, b] = sides;
    let zone = time_zone();
    let mut text = String::new();
    for (letter, side) in ["A", "B"].iter().zip(sides) {
        let [from, to] = [side.from_ms, side.to_ms].map(|ms| shown(ms, &zone));
        let time = duration(side.duration_ms());
        let longer =
            divide(a.duration_ms() as f64, b.duration_ms() as f64).filter(|_| *letter == "B");
        let longer = longer
            .map(|ratio| format!(", {}", percent(ratio)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {}  {from} to {to} ({time}{longer})",
            paint(STRONG, letter),
            escaped(&side.name)
        );
    }
    let mut rows = Vec::new();
    if pairs(sides).count() != 1 {
        rows.extend(group("All GPUs", [Some(&a.all), Some(&b.all)]));
    }
    for (gpu, figures) in pairs(sides) {
        let name = gpu.name.as_deref().map(Vendor::strip_from);
        let name = format!("GPU {} {}", gpu.index, name.unwrap_or_default());
        rows.extend(group(&escaped(name.trim_end()), figures));
    }
    let first = [Column::align_left("", 0), Column::align_left("", 0)].into_iter();
    let all: Vec<_> = first.chain(FIGURES.iter().map(Figure::column)).collect();
    let columns = Columns::new(&all, &rows, terminal);
    text += "\n";
    text += &columns.headings();
    for row in &rows {
        text += &(columns.line(row) + "\n");
    }
    text
}

/// Returns the rows of A, of B, and of B compared with A.
fn group(name: &str, figures: [Option<&Figures>; 2]) -> Vec<Vec<String>> {
    let row =
        |side: &str, cells: Vec<String>| [vec![String::new(), side.to_owned()], cells].concat();
    let mut rows = Vec::new();
    for (side, figures) in ["A", "B"].into_iter().zip(figures) {
        rows.extend(figures.map(|figures| row(side, figures.cells().collect())));
    }
    if let [Some(a), Some(b)] = figures {
        rows.push(row("B - A", b.compare_with(a).cells().collect()));
    }
    if let Some(first) = rows.first_mut() {
        name.clone_into(&mut first[0]);
    }
    rows
}
