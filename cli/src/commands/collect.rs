//! `gpumon collect`: writes samples as JSON lines.

use std::{
    ffi::OsString,
    io::{self, BufRead},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use gpumon_probe::{
    allocation::Allocations,
    benchmarks::{self, BelowBaselines},
    model::{KnownGpu, Record},
    owner::CommandLines,
    sampler::{self, LearnedBaselines, Options, SharedInterval, WatchFlag},
    vendor::LatestAnswers,
};
use gpumon_server::{frame::INTERVAL_LIMITS_MS, supervisor::CollectorRequest};

use crate::{
    exit::{Result, print_message},
    options::{SamplingArgs, SourceArgs},
    terminal::output::print_json,
};

/// Write samples to standard output, one JSON record per line
///
/// The first record is the inventory. Samples, details and events follow; `type` distinguishes
/// them.
///
/// A reading is a bare value, an older value with its timestamp, or the reason it is absent.
/// Collection continues if a GPU is lost or not responding, and that GPU's `health` reports it.
/// Collection ends if the driver is replaced.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each of these fields is a command-line switch"
)]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    sampling: SamplingArgs,

    /// Stop after this number of samples; by default, run until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Omit the command lines of other users' processes
    #[arg(long)]
    hide_commands: bool,

    /// File that keeps the usual clock and power of each GPU, as learned from readings; by default,
    /// both are learned again after each start
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// File of `gpumon bench --save-baseline`, benchmarks.json in its data directory: a GPU whose
    /// latest result is below its baseline has a condition. The file is read again every minute
    #[arg(long, value_name = "FILE")]
    benchmarks: Option<PathBuf>,

    /// Read requests such as `{"interval_ms":100}` from standard input, one per line, and exit when
    /// it is closed
    #[arg(long)]
    supervised: bool,

    /// Read the GPUs of an earlier collector from the first line of standard input, and keep their
    /// indices
    #[arg(long, hide = true, requires = "supervised")]
    known_gpus: bool,

    /// Print the UUIDs of the GPUs that the driver finds as a JSON list, with null for an unknown
    /// UUID, and exit
    #[arg(long, hide = true)]
    list_gpus: bool,
}

const EXAMPLES: &str = "\
Examples:
  gpumon collect | jq 'select(.type == \"sample\").gpus[].power.draw_watts'
      Print the power draw of every GPU once per second.
  gpumon collect --interval-ms 100 --count 600 > minute.ndjson
      Record one minute at ten samples per second.

Exit codes: 0 success, 1 error, 2 invalid argument, 4 permission denied, 6 no GPU, 9 driver not loaded, \
12 NVML library not found, 18 NVML library and driver versions differ";

/// The interval at which learned values, such as a GPU's usual clock and power, are written to
/// their file.
const WRITE_INTERVAL: Duration = Duration::from_mins(1);

/// The interval at which the file of benchmarks is read again.
const BENCHMARKS_INTERVAL: Duration = Duration::from_mins(1);

/// The maximum time that the first sample waits for the file of benchmarks.
const BENCHMARKS_TIMEOUT: Duration = Duration::from_millis(200);

/// The file of learned values in the data directory.
const LEARNED_FILE: &str = "learned.json";

/// The maximum time for which the process waits for the disk when it exits.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the arguments with which `serve` starts its collector.
pub(crate) fn build_collector_arguments(
    sampling: &SamplingArgs,
    data_dir: Option<&Path>,
) -> Vec<OsString> {
    let mut arguments: Vec<_> = ["collect", "--hide-commands", "--supervised"]
        .map(OsString::from)
        .into();
    arguments.extend(sampling.to_arguments());
    for (option, file) in [
        ("--state", LEARNED_FILE),
        ("--benchmarks", benchmarks::FILE_NAME),
    ] {
        arguments.extend(
            data_dir
                .into_iter()
                .flat_map(|folder| [option.into(), folder.join(file).into()]),
        );
    }
    arguments
}

pub(crate) fn run(source: &SourceArgs, args: &CollectArgs) -> Result {
    if args.list_gpus {
        return print_gpu_uuids_and_exit(source, args);
    }
    let known_gpus = if args.known_gpus {
        read_known_gpus(io::stdin().lock())
    } else {
        Vec::new()
    };
    let commands = if args.hide_commands {
        CommandLines::Own
    } else {
        CommandLines::All
    };
    let answers = args.supervised.then(Arc::<LatestAnswers>::default);
    let learned = args.state.clone().map(read_and_persist_learned_baselines);
    let options = Options {
        answers: answers.clone(),
        below_baselines: args.benchmarks.clone().map(watch_benchmarks),
        learned: learned.clone(),
        known_gpus: known_gpus.into(),
        ..args.sampling.to_options(commands)
    };
    if let Some(answers) = answers {
        let (interval, allocations) = (
            Arc::clone(&options.interval),
            Arc::clone(&options.allocations),
        );
        let watched = Arc::clone(&options.watched);
        let learned = learned.clone();
        // The process must exit when standard input is closed, even if the driver hangs. A separate
        // thread therefore reads the requests.
        thread::spawn(move || {
            let write_answers = || print_json(&Record::Answers(answers.collect_answers()));
            apply_requests(
                io::stdin().lock(),
                &interval,
                &watched,
                &allocations,
                write_answers,
            );
            write_learned_baselines(learned);
            std::process::exit(0);
        });
    }
    let source = source.open_with_sampling(&args.sampling)?;
    let mut left = args.count;
    let mut written = Ok(());
    sampler::run_sampler(&source, &options, |record| {
        written = print_json(record);
        if let (Record::Sample(_), Some(left)) = (record, &mut left) {
            *left -= 1;
        }
        if written.is_err() || left == Some(0) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    write_learned_baselines(learned);
    written
}

fn print_gpu_uuids_and_exit(source: &SourceArgs, args: &CollectArgs) -> Result {
    let sys_root = args.sampling.to_options(CommandLines::Own).sys_root;
    let uuids = sampler::read_gpu_uuids(&source.open_with_sampling(&args.sampling)?, &sys_root)?;
    print_json(&uuids)?;
    // `exit` does not wait for the thread that reads the driver, which may be blocked by a hung
    // GPU.
    std::process::exit(0);
}

/// Returns the GPUs listed in the first line. If the first line is another request, returns an
/// empty list.
fn read_known_gpus(mut requests: impl BufRead) -> Vec<KnownGpu> {
    let mut line = Vec::new();
    let _ = requests.read_until(b'\n', &mut line);
    if let Ok(CollectorRequest::KnownGpus(gpus)) = serde_json::from_slice(line.trim_ascii()) {
        return gpus;
    }
    print_message("no list of known GPUs was received: send it as the first line of the input");
    Vec::new()
}

/// Reads the learned values and starts a thread that writes them regularly. Sampling also works if
/// the file cannot be read or written.
fn read_and_persist_learned_baselines(file: PathBuf) -> Arc<LearnedBaselines> {
    let (learned, problem) = LearnedBaselines::read(file);
    if let Some(problem) = problem {
        print_message(&problem);
    }
    let learned = Arc::new(learned);
    let kept = Arc::clone(&learned);
    thread::spawn(move || {
        let mut last_problem = None;
        loop {
            thread::sleep(WRITE_INTERVAL);
            let problem = kept.write().err().map(|error| error.to_string());
            if let Some(problem) = problem.as_ref().filter(|_| problem != last_problem) {
                print_message(problem);
            }
            last_problem = problem;
        }
    });
    learned
}

/// Starts a thread that reads the file of benchmarks regularly. This function waits only briefly
/// for the first read, because reading may block on the disk.
fn watch_benchmarks(file: PathBuf) -> Arc<BelowBaselines> {
    let below = Arc::<BelowBaselines>::default();
    let watched = Arc::clone(&below);
    let (sender, first) = mpsc::channel();
    thread::spawn(move || {
        let mut seen = None;
        loop {
            if let Err(error) = watched.update_from_file(&file, &mut seen) {
                let cure = "run `gpumon bench --baseline` for advice";
                print_message(&format!("ignored {}: {error}; {cure}", file.display()));
            }
            let _ = sender.send(());
            thread::sleep(BENCHMARKS_INTERVAL);
        }
    });
    let _ = first.recv_timeout(BENCHMARKS_TIMEOUT);
    below
}

/// Writes the learned values, but gives up if the disk does not respond in time.
fn write_learned_baselines(learned: Option<Arc<LearnedBaselines>>) {
    let Some(learned) = learned else { return };
    let (sender, written) = mpsc::channel();
    thread::spawn(move || sender.send(learned.write()));
    if let Ok(Err(error)) = written.recv_timeout(WRITE_TIMEOUT) {
        print_message(&error.to_string());
    }
}

/// Applies the requests, one per line, until the input ends or writing a response fails. An invalid
/// line is reported and ignored.
fn apply_requests(
    mut requests: impl BufRead,
    interval: &SharedInterval,
    watched: &WatchFlag,
    allocations: &Allocations,
    mut write_answers: impl FnMut() -> Result,
) {
    let mut line = Vec::new();
    while requests
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        match serde_json::from_slice(line.trim_ascii()) {
            Ok(CollectorRequest::IntervalMs(ms)) if INTERVAL_LIMITS_MS.contains(&ms) => {
                interval.set(Duration::from_millis(ms.into()));
            }
            Ok(CollectorRequest::IntervalMs(ms)) => print_message(&format!(
                "ignored an interval of {ms} ms: give 100 to 60000 ms"
            )),
            Ok(CollectorRequest::Watched(is_watched)) => watched.set(is_watched),
            Ok(CollectorRequest::Answers) if write_answers().is_err() => return,
            Ok(CollectorRequest::Answers) => {}
            Ok(CollectorRequest::Allocations(devices)) => allocations.set_kubernetes(devices),
            Ok(CollectorRequest::KnownGpus(_)) => {
                print_message(
                    "ignored a list of known GPUs: it must be the first line of the \
                 input",
                );
            }
            Err(error) => print_message(&format!(
                "ignored an invalid request: {error}; send a request such as \
                 {{\"interval_ms\":1000}}"
            )),
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{model::Health, vendor::SourceChoice};

    use super::*;

    #[test]
    fn known_gpus_are_read_from_first_request_line() {
        let gpu = SourceChoice::Sim(1)
            .open(&gpumon_probe::vendor::Roots::default())
            .unwrap()
            .open(0)
            .unwrap()
            .identify();
        let known = vec![KnownGpu {
            gpu,
            health: Health::Lost { since_ms: 7 },
        }];
        let line = serde_json::to_string(&CollectorRequest::KnownGpus(known.clone())).unwrap()
            + "\n\"answers\"\n";
        let mut requests = line.as_bytes();
        assert_eq!(read_known_gpus(&mut requests), known);
        assert_eq!(requests, b"\"answers\"\n", "the next request is not read");
        assert_eq!(read_known_gpus(&b"\"answers\"\n"[..]), []);
    }

    #[test]
    fn invalid_requests_are_ignored() {
        let interval = SharedInterval::new(Duration::from_secs(1));
        let mut answers = 0;
        let mut after = |lines: &[u8]| {
            apply_requests(
                lines,
                &interval,
                &WatchFlag::default(),
                &Allocations::default(),
                || {
                    answers += 1;
                    Ok(())
                },
            );
            (interval.get().as_millis(), answers)
        };
        assert_eq!(after(b"{\"interval_ms\":100}\n"), (100, 0));
        assert_eq!(
            after(b"{\"interval_ms\":99}\n{\"interval_ms\":60001}\n"),
            (100, 0)
        );
        assert_eq!(
            after(b"\n\xff\n{\"interval\":500}\n{\"interval_ms\":500,\"x\":1}\n\"answer\"\n"),
            (100, 0)
        );
        assert_eq!(
            after(b"\"answers\"\nnonsense\n{\"interval_ms\":250}"),
            (250, 1),
            "what follows an invalid line counts"
        );
    }
}
