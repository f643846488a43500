//! `gpumon export`: what was recorded, for other programs.

mod history;

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::model::{Inventory, Record};
use gpumon_recording::Recording;

use super::{
    replay,
    show::csv::{self, Csv, Format, Rows},
};
use crate::{
    exit::{Result, say, usage},
    moment::{Beside, Moment, MomentSpan},
    options::parse_time,
    past::PastArgs,
    recorded::samples,
};

/// Print a recording, or the history of a running server, as CSV or JSON
///
/// One row per sample and GPU, in the columns of `gpumon --csv`; MIG devices and the host have rows of their own where
/// readings of theirs are asked for. Units are in the column names, and times are UTC. History that is older than ten minutes has means over ten seconds or more, with a minimum and a maximum of each.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct ExportArgs {
    /// Recording to export; by default, the history of the running server
    file: Option<PathBuf>,

    /// First moment: a date, a time of day or both, a time before now (of a recording: before its end), as -2h, or after
    /// the first sample, as +90s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<Moment>,

    /// First moment that is left out, in the same forms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<Moment>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,

    /// Print only these readings beside time and GPU, comma-separated; `help` lists them. Readings of MIG devices begin with
    /// `mig.`, those of the host with `host.`; `all`, `mig` and `host` are all of a kind
    #[arg(long, value_name = "NAMES")]
    metrics: Option<String>,

    /// One row per process instead; only of recordings
    #[arg(long, requires = "file")]
    processes: bool,

    /// Time of one row of history, for example 10s or 1m; by default, as fine as 5000 rows per GPU allow
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
      Print the host's CPU and all of MIG devices, too, in rows whose column `kind` is `host` and `mig`.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or not a recording";

/// What tells rows apart.
const GPU_KEYS: [&str; 5] = ["time", "time_ms", "index", "uuid", "name"];
const PROCESS_KEYS: [&str; 4] = ["time", "time_ms", "gpu_index", "pid"];

pub(crate) fn run(args: &ExportArgs) -> Result {
    let (rows, keys) = if args.processes {
        (Rows::Processes, &PROCESS_KEYS[..])
    } else {
        (Rows::Devices, &GPU_KEYS[..])
    };
    if args.metrics.as_deref() == Some(csv::HELP) {
        io::stdout().write_all(csv::help(rows).replace("--columns", "--metrics").as_bytes())?;
        return Ok(());
    }
    let columns = Csv::with_keys(rows, keys, args.metrics.as_deref()).map_err(|error| {
        usage!(error.replace("gpumon --csv --columns", "gpumon export --metrics"))
    })?;
    let span = MomentSpan::new(args.from, args.to);
    let mut out = BufWriter::new(io::stdout().lock());
    match &args.file {
        Some(file) => export_recording(file, span, &columns, args.format, &mut out)?,
        None => history::export(
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
    span: MomentSpan,
    columns: &Csv,
    format: Format,
    out: &mut impl Write,
) -> Result {
    let recording = Recording::open(file).map_err(replay::failure)?;
    if let Some(cuts) = replay::cuts(&recording) {
        say(&cuts);
    }
    let span = span
        .resolve(&Beside::recording(recording.times_ms()))
        .map_err(|why| usage!(why))?;
    if format == Format::Csv {
        out.write_all(columns.header().as_bytes())?;
    }
    let mut inventory: Option<Inventory> = None;
    samples(&recording, &span, |record| {
        match record {
            Record::Inventory(newer) => inventory = Some(newer),
            Record::Sample(sample) => {
                if let Some(inventory) = &inventory {
                    let rows = columns.rows(inventory, &sample, format);
                    out.write_all(rows.as_bytes())?;
                }
            }
            _ => {}
        }
        Ok(())
    })
}
