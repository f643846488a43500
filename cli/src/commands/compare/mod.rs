//! `gpumon compare`: two recordings, or two spans of history, in numbers.

mod subject;
mod table;

use serde_json::json;

use self::subject::Subject;
use super::figures::{self, Figures};
use crate::{exit::Failure, past::PastArgs, terminal::output::print_report};

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
        |terminal| table::draw(&sides, terminal),
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
