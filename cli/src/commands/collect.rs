//! `gpumon collect`: one JSON line per sample.

use std::{
    io::{self, Write},
    ops::ControlFlow,
};

use gpumon_probe::{
    model::Record,
    owner::CommandLines,
    sampler::{self, Options},
    source::kernel_log,
};

use crate::{
    exit::Failure,
    options::{IntervalArgs, SourceArgs},
};

/// Write one JSON line per sample to standard output, until it is closed
///
/// The first line is the inventory; samples and events follow, told apart by `type`. Try `gpumon collect | jq`.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    interval: IntervalArgs,

    /// End after so many samples; without it, run until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Leave out the command lines of other users' processes
    #[arg(long)]
    hide_commands: bool,

    /// End when standard input is closed, which a supervisor holds open for as long as it lives
    #[arg(long)]
    exit_with_stdin: bool,
}

/// What `serve` types to start its collector.
pub(crate) fn arguments(interval: &IntervalArgs) -> Vec<String> {
    let interval_ms = interval.interval_ms.to_string();
    ["collect", "--interval-ms", &interval_ms, "--hide-commands", "--exit-with-stdin"].map(str::to_owned).into()
}

pub(crate) fn run(source: &SourceArgs, args: &CollectArgs) -> Result<(), Failure> {
    let commands = if args.hide_commands { CommandLines::Own } else { CommandLines::All };
    let options = Options {
        kernel_log: Some(kernel_log::PATH.into()),
        details: true,
        events: true,
        ..Options::new(args.interval.interval(), commands)
    };
    if args.exit_with_stdin {
        // Also where the driver hangs, so it cannot be the thread that reads the driver.
        std::thread::spawn(|| {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            std::process::exit(0);
        });
    }
    let source = source.open()?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut left = args.count;
    let mut written = Ok(());
    sampler::run(&source, &options, |record| {
        written = write_line(&mut out, record);
        if let (Record::Sample(_), Some(left)) = (record, &mut left) {
            *left -= 1;
        }
        if written.is_err() || left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(written?)
}

/// A line is written whole, so that a reader never waits for the rest of one.
fn write_line(out: &mut impl Write, record: &Record) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")?;
    out.flush()
}
