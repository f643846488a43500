//! `gpumon collect`: one JSON line per sample.

use std::{
    ffi::OsString,
    io::{self, BufRead, Write},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use gpumon_probe::{
    model::Record,
    owner::CommandLines,
    sampler::{self, Options, Pace},
};
use gpumon_server::{frame::INTERVAL_MS, supervisor::Request};

use crate::{
    exit::{Failure, say},
    options::{SamplingArgs, SourceArgs},
};

/// Write one JSON line per sample to standard output, until it is closed
///
/// The first line is the inventory; samples and events follow, told apart by `type`. Try `gpumon collect | jq`.
///
/// A reading is a bare value, an older value with its time, or the reason why there is none. It goes on when a GPU is
/// lost or hangs, and says so in that GPU's `health`; it ends when the driver is replaced underneath it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    sampling: SamplingArgs,

    /// End after so many samples; without it, run until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Leave out the command lines of other users' processes
    #[arg(long)]
    hide_commands: bool,

    /// Take requests from standard input, as `{"interval_ms":100}`, one per line, and end when it is closed
    #[arg(long)]
    supervised: bool,
}

const EXAMPLES: &str = "\
Examples:
  gpumon collect | jq 'select(.type == \"sample\").gpus[].power.draw_watts'
      The watts of every GPU, once a second.
  gpumon collect --interval-ms 100 --count 600 > minute.ndjson
      A minute, ten times a second, into a file.

Exit codes: 0 done, 2 bad argument, 4 no permission, 6 no GPU, 9 driver not loaded, 12 no NVIDIA library, \
18 library and driver do not match, 1 anything else";

/// What `serve` types to start its collector.
pub(crate) fn arguments(sampling: &SamplingArgs) -> Vec<OsString> {
    let mut arguments: Vec<_> = ["collect", "--hide-commands", "--supervised"].map(OsString::from).into();
    arguments.extend(sampling.to_arguments());
    arguments
}

pub(crate) fn run(source: &SourceArgs, args: &CollectArgs) -> Result<(), Failure> {
    let commands = if args.hide_commands { CommandLines::Own } else { CommandLines::All };
    let options = Options { answers: args.supervised, ..args.sampling.options(commands) };
    if args.supervised {
        let pace = Arc::clone(&options.pace);
        // Also where the driver hangs, so it cannot be the thread that reads the driver.
        std::thread::spawn(move || {
            obey(io::stdin().lock(), &pace);
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

/// Does what each line says, until there are no more. A line that says nothing is reported and left out.
fn obey(mut requests: impl BufRead, pace: &Pace) {
    let mut line = Vec::new();
    while requests.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        match serde_json::from_slice(line.trim_ascii()) {
            Ok(Request { interval_ms }) if INTERVAL_MS.contains(&interval_ms) => {
                pace.set(Duration::from_millis(interval_ms.into()));
            }
            Ok(Request { interval_ms }) => say(&format!("ignored an interval of {interval_ms} ms: give 100 to 60000")),
            Err(error) => say(&format!("ignored what is no request: {error}; give {{\"interval_ms\":1000}}")),
        }
        line.clear();
    }
}

/// A line is written whole, so that a reader never waits for the rest of one.
fn write_line(out: &mut impl Write, record: &Record) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_change_the_pace_and_nonsense_does_not() {
        let pace = Pace::new(Duration::from_secs(1));
        let after = |lines: &[u8]| {
            obey(lines, &pace);
            pace.interval().as_millis()
        };
        assert_eq!(after(b"{\"interval_ms\":100}\n"), 100);
        assert_eq!(after(b"{\"interval_ms\":99}\n{\"interval_ms\":60001}\n"), 100);
        assert_eq!(after(b"\n\xff\n{\"interval\":500}\n{\"interval_ms\":500,\"x\":1}\n"), 100);
        assert_eq!(after(b"nonsense\n{\"interval_ms\":250}"), 250, "what follows nonsense counts");
    }
}
