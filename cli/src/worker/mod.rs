//! The process that works, as the one that started it sees it: `gpumon work` gives a line for everything that happens,
//! and is ended where it takes too long or nobody wants it any more.
//!
//! - [`asked`] is what all commands can be asked for.
//! - [`printer`] prints what it says, with [`status`], the line on a terminal that says how far it is.
//! - [`announce`] tells a server of this machine.

mod announce;
mod asked;
mod printer;
mod status;

use std::{
    env,
    io::{self, BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use gpumon_workload::{
    job::Job,
    report::{Line, Report},
};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

use self::announce::Announcer;
pub(crate) use self::{
    asked::{DtypeChoice, WhereArgs, parse_share},
    printer::Printer,
    status::Status,
};
use crate::{
    commands::work::{FAILED, INTERRUPTED, Load},
    exit::{Failure, say},
    options::{SourceArgs, Time},
};

/// How long work may take where nobody says, beyond what it asks for by itself.
const USUAL_LIMIT: Duration = Duration::from_mins(10);
/// How long a worker may take to give back what it holds.
const GRACE: Duration = Duration::from_secs(10);
/// How often signals and limits are looked at.
const TICK: Duration = Duration::from_millis(50);

/// Who is told what the worker says.
pub(crate) trait Listener {
    /// A line, as it came and as what it means.
    fn hear(&mut self, raw: &str, line: Line<Load>) -> Result<(), Failure>;

    /// Some time has passed.
    fn tick(&mut self) {}

    /// Nothing more comes.
    fn end(&mut self) {}
}

/// Has a job done, and returns the exit code that the worker told. `limit` is how long it may take.
pub(crate) fn follow(
    source: &SourceArgs,
    job: &Job,
    limit: Option<Time>,
    listener: &mut dyn Listener,
) -> Result<u8, Failure> {
    let interrupted = heed_signals()?;
    let limit = limit.map_or_else(|| USUAL_LIMIT + Duration::from_secs_f64(job.asked_seconds()), |Time(limit)| limit);
    let mut worker = Worker::start(source, job)?;
    let lines = worker.lines();
    let mut announcer = Announcer::new(source);
    let begun = Instant::now();
    let mut ended = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(raw) => {
                // What a driver may print by itself is no report.
                let Ok(line) = serde_json::from_str::<Line<Load>>(&raw) else { continue };
                announcer.tell(&raw);
                if let Report::Ended { code } = line.report {
                    ended = Some(code);
                }
                listener.hear(&raw, line)?;
            }
            Err(RecvTimeoutError::Timeout) => listener.tick(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let why = if interrupted.load(Relaxed) {
            Some(Why::Interrupted)
        } else {
            (begun.elapsed() >= limit && ended.is_none()).then_some(Why::TooLong)
        };
        if why.is_some_and(|why| worker.ask_to_stop(why)) {
            listener.end();
            say("the process that worked did not end by itself, and was killed");
        }
    }
    listener.end();
    announcer.end();
    let status = worker.wait()?;
    let why = worker.asked.map(|(why, _)| why);
    match (why, ended) {
        (Some(Why::TooLong), _) => {
            let limit = Time(limit);
            Err(anyhow!("it took longer than {limit} and was ended: give it more with --time-limit").into())
        }
        (_, Some(code)) => Ok(code),
        (Some(Why::Interrupted), None) => Ok(INTERRUPTED),
        (None, None) => {
            let cure = "look with `gpumon doctor`, and in the kernel's log (`dmesg`)";
            let error = anyhow!("the process that worked has ended in the middle of it ({}): {cure}", how(status));
            Err(Failure::with_code(error, FAILED))
        }
    }
}

/// Whoever asks twice to stop is obeyed at once: the worker ends with this process.
fn heed_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    Ok(asked)
}

/// As `signal 9, SIGKILL`.
fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => "killed by signal 9, as the kernel does where memory runs out".to_owned(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or_default()),
    }
}

/// Why it is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Interrupted,
    TooLong,
}

/// The process that works; it is ended where this is dropped.
struct Worker {
    child: Child,
    asked: Option<(Why, Instant)>,
}

impl Worker {
    /// It is started from the thread that lasts as long as the work: the kernel ends it with that.
    fn start(source: &SourceArgs, job: &Job) -> Result<Self, Failure> {
        let own = env::current_exe().context("cannot find gpumon's own program")?;
        let job = serde_json::to_string(job).context("cannot write the job")?;
        let mut command = Command::new(own);
        command.args(["work", "--parent", &std::process::id().to_string()]).args(source.to_arguments()).arg(job);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.context("cannot start the process that works: are there too many processes?")?;
        Ok(Self { child, asked: None })
    }

    /// What it says, line by line.
    fn lines(&mut self) -> mpsc::Receiver<String> {
        let (tell, lines) = mpsc::channel();
        let out = self.child.stdout.take();
        thread::spawn(move || {
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        lines
    }

    /// Asks once, and kills it where it has not obeyed in time. Returns whether it was killed now.
    fn ask_to_stop(&mut self, why: Why) -> bool {
        match self.asked {
            None => {
                self.asked = Some((why, Instant::now()));
                if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
                    // It is a child that nobody has waited for, so that its PID is its own.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
            Some((first, at)) if at.elapsed() >= GRACE => {
                self.asked = Some((first, Instant::now()));
                return self.child.kill().is_ok();
            }
            Some(_) => {}
        }
        false
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Whoever reads our output has seen enough, or cannot be written to; one that has ended is beyond that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
