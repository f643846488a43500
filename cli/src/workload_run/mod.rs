//! Workload runs that are started and shown in a terminal. `gpumon_workload::parent` starts the
//! worker process; this module adds signal handling, printed results and the announcement to a
//! server.
//!
//! - [`RunTargetArgs`] and [`FrameworkArgs`] are the arguments of commands that start a run.
//! - [`printer`] prints reports, with the progress line below them on a terminal.
//! - [`Announcer`] passes reports on to a server of this machine.

mod printer;

use std::{
    env,
    ffi::OsString,
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use gpumon_probe::units::Amount;
use gpumon_workload::{
    parent::{self, Listener, StandardError, StopReason, WorkerCommand, WorkerEnd, WorkerError},
    protocol::{
        BackendChoice, InvalidReport, Job, ReportLine, Where,
        report::{EXIT_FAILED, EXIT_INTERRUPTED},
    },
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

use crate::{
    exit::{Failure, Result, print_message},
    local_server::{Server, ServerArgs},
    options::{SourceArgs, parse_time},
};

pub(crate) use self::printer::{ReportFormatter, print_list, run_and_print};

pub(crate) trait RunView {
    /// Handles a line from the worker process. `raw` is the unparsed line.
    fn on_line(&mut self, raw: &str, line: ReportLine) -> Result;

    fn on_tick(&mut self) {}

    fn end(&mut self) {}
}

/// Runs a job in a worker process and returns the reported exit code. `limit` is the run's time
/// limit.
pub(crate) fn run_job(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Duration>,
    beside: Option<&FrameworkArgs>,
    view: &mut dyn RunView,
) -> Result<u8> {
    let interrupted = install_signal_handlers()?;
    let limit = limit.unwrap_or_else(|| {
        job.default_time_limit()
            + beside
                .map(FrameworkArgs::additional_time)
                .unwrap_or_default()
    });
    let program = env::current_exe().context("cannot find the gpumon executable")?;
    let frameworks = beside.map(FrameworkArgs::to_arguments).unwrap_or_default();
    let arguments = source
        .to_arguments()
        .into_iter()
        .chain(["work".into()])
        .chain(frameworks)
        .collect();
    let command = WorkerCommand { program, arguments };
    let mut terminal = Terminal {
        view,
        announcer: Announcer::new(source),
        interrupted: &interrupted,
    };
    let end = parent::run_worker(&command, job, limit, StandardError::Inherit, &mut terminal);
    terminal.view.end();
    terminal.announcer.finish_sending();
    let end = end.map_err(|error| match error {
        WorkerError::Listener(failure) => failure,
        WorkerError::Start { .. } => {
            anyhow!("{error}: end other programs if there are too many processes").into()
        }
        WorkerError::LineTooLong(error) => anyhow!(error).into(),
    })?;
    if end.is_killed {
        print_message("the worker process did not exit and was killed");
    }
    match end {
        WorkerEnd { status: None, .. } => {
            Err(anyhow!("the worker process cannot be killed: it is stuck in the driver").into())
        }
        WorkerEnd {
            stopped: Some(StopReason::TimeLimit),
            ..
        } => {
            let limit = limit.as_secs();
            Err(
                anyhow!("the run exceeded its time limit of {limit} s: raise it with --time-limit")
                    .into(),
            )
        }
        WorkerEnd {
            code: Some(code), ..
        } => Ok(code),
        WorkerEnd {
            stopped: Some(StopReason::Canceled | StopReason::ParentEnds),
            ..
        } => Ok(EXIT_INTERRUPTED),
        WorkerEnd {
            stopped: None,
            status: Some(status),
            ..
        } => {
            let fix = "run `gpumon doctor`, and see the kernel log (`dmesg`)";
            let error = anyhow!(
                "the worker process ended unexpectedly ({}): {fix}",
                describe_status(status)
            );
            Err(Failure::with_code(error, EXIT_FAILED))
        }
    }
}

struct Terminal<'a> {
    view: &'a mut dyn RunView,
    announcer: Announcer,
    interrupted: &'a AtomicBool,
}

impl Listener for Terminal<'_> {
    type Error = Failure;

    fn on_line(&mut self, raw: &str, line: Result<ReportLine, InvalidReport>) -> Result {
        // A line that is not a report was printed by the driver or a library, and is ignored.
        let Ok(line) = line else { return Ok(()) };
        self.announcer.send_line(raw);
        self.view.on_line(raw, line)
    }

    fn on_tick(&mut self) -> Option<StopReason> {
        self.view.on_tick();
        self.interrupted
            .load(Relaxed)
            .then_some(StopReason::Canceled)
    }
}

/// Returns a flag that is set by the first signal to terminate. A second signal ends this process
/// immediately, and its worker process as well.
pub(crate) fn install_signal_handlers() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

fn describe_status(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => {
            "killed by signal 9, possibly by the kernel because memory ran out".to_owned()
        }
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or_default()),
    }
}

/// Options for the device of a run and for the run's time limit.
#[derive(Debug, clap::Args)]
pub(crate) struct RunTargetArgs {
    /// Backend to run on
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    backend: BackendChoice,

    /// GPU to run on: CUDA index, UUID or its prefix, or PCI bus ID, as listed by `gpumon info`;
    /// nvidia:0; or `all`. By default 0, or the CPU if there is no GPU
    #[arg(long, value_name = "GPU")]
    device: Option<String>,

    /// Run even if another user computes on the GPU, with at most a quarter of the free memory
    #[arg(long)]
    share: bool,

    /// Stop after this time, for example 30s or 2h; by default, ten minutes longer than the
    /// requested duration
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time_limit: Option<Duration>,
}

impl RunTargetArgs {
    pub(crate) fn to_target(&self) -> Where {
        Where {
            backend: self.backend,
            device: self.device.clone(),
            share: self.share,
        }
    }
}

/// Parses a share greater than 0 and at most 1, such as `80%` or `0.8`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = Amount::parse(text).and_then(|amount| match amount.unit.as_str() {
        "" => Some(amount.number),
        "%" => Some(amount.number / 100.0),
        _ => None,
    });
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "expected a share above 0 and up to 1, such as 0.9 or 90%".to_owned())
}

/// The time by which the time limit of a run with frameworks is extended. Each framework is
/// imported, compiles its operations, and is measured for as long as a workload.
const FRAMEWORK_TIME: Duration = Duration::from_mins(20);

/// Options for the frameworks that run for comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct FrameworkArgs {
    /// Run each operation also with NumPy, Numba, CuPy, PyTorch and JAX, if they are installed and
    /// support the operation: on the same data, with the same verification; the time limit is half
    /// an hour by default
    #[arg(long)]
    pub(crate) beside: bool,

    /// Python interpreter for `--beside`; by default, that of the active environment
    /// (`VIRTUAL_ENV`, `CONDA_PREFIX`), or python3 in PATH
    #[arg(
        long,
        value_name = "PATH",
        requires = "beside",
        value_hint = clap::ValueHint::ExecutablePath
    )]
    python: Option<PathBuf>,
}

impl FrameworkArgs {
    /// Returns the time to add to the usual limit of a run.
    fn additional_time(&self) -> Duration {
        if self.beside {
            FRAMEWORK_TIME
        } else {
            Duration::ZERO
        }
    }

    /// Returns the arguments for the worker process.
    fn to_arguments(&self) -> Vec<OsString> {
        if !self.beside {
            return Vec::new();
        }
        let named = self.python.clone();
        let python =
            named.unwrap_or_else(|| find_python(["VIRTUAL_ENV", "CONDA_PREFIX"].map(env::var_os)));
        vec!["--python".into(), python.into()]
    }
}

/// Returns the Python interpreter of the first environment that is set.
fn find_python(environments: [Option<OsString>; 2]) -> PathBuf {
    let active = environments
        .into_iter()
        .flatten()
        .find(|folder| !folder.is_empty());
    active.map_or_else(
        || "python3".into(),
        |folder| PathBuf::from(folder).join("bin/python3"),
    )
}

/// The maximum number of lines that may be queued because the server is slow. Once the queue is
/// full, nothing more is sent to the server.
const MAX_QUEUED_LINES: usize = 1000;
/// The maximum time to send one line.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum time to wait, at the end of a run, until the last line is sent.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(300);

struct Announcer(Option<(SyncSender<String>, JoinHandle<()>)>);

impl Announcer {
    /// Connects to a running server that reads the same GPUs. If there is none, nothing is
    /// announced.
    fn new(source: &SourceArgs) -> Self {
        if source.bypasses_server() {
            return Self(None);
        }
        let (sender, lines) = mpsc::sync_channel(MAX_QUEUED_LINES);
        let thread = thread::spawn(move || {
            if let Ok(server) = ServerArgs::from_environment().connect() {
                // If the server does not accept announcements, it closes the connection, and the
                // run continues without it.
                let _ = stream_lines(server, &lines);
            }
        });
        Self(Some((sender, thread)))
    }

    fn send_line(&mut self, line: &str) {
        let Some((sender, _)) = &self.0 else { return };
        if sender.try_send(format!("{line}\n")).is_err() {
            self.0 = None;
        }
    }

    fn finish_sending(&mut self) {
        let Some((sender, thread)) = self.0.take() else {
            return;
        };
        drop(sender);
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < FLUSH_TIMEOUT {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sends one request with the lines as its chunked body, so that each line is sent as soon as it
/// arrives.
fn stream_lines(server: Server, lines: &Receiver<String>) -> io::Result<()> {
    let mut stream = server.stream;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let id = RandomState::new().hash_one(std::process::id());
    write!(
        stream,
        "POST /api/v1/runs/announced HTTP/1.1\r\nHost: localhost\r\nX-Gpumon-Run: {id:016x}\r\n\
         Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n"
    )?;
    for line in lines {
        write!(stream, "{:x}\r\n{line}\r\n", line.len())?;
    }
    write!(stream, "0\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_share_is_parsed_as_fraction_or_percentage() {
        for (text, thousandths) in [
            ("80%", 800.0),
            ("0.8", 800.0),
            ("1", 1000.0),
            ("100 %", 1000.0),
            ("0.5%", 5.0),
        ] {
            assert_eq!(
                (parse_share(text).unwrap() * 1000.0).round().to_bits(),
                f64::to_bits(thousandths),
                "{text}"
            );
        }
        for text in ["", "0", "-1", "1.1", "101%", "80", "nan", "all", "%"] {
            assert!(parse_share(text).unwrap_err().contains("90%"), "{text}");
        }
    }

    #[test]
    fn python_of_active_environment_precedes_path() {
        let of = |virtual_env: Option<&str>, conda: Option<&str>| {
            find_python([virtual_env, conda].map(|it| it.map(Into::into)))
        };
        assert_eq!(of(None, None), PathBuf::from("python3"));
        assert_eq!(
            of(Some("/venv"), Some("/conda")),
            PathBuf::from("/venv/bin/python3")
        );
        assert_eq!(
            of(Some(""), Some("/conda")),
            PathBuf::from("/conda/bin/python3")
        );
    }
}
