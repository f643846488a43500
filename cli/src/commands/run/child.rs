//! The command: its start, the signals that are meant for it, and its end.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{self, Command, ExitStatus},
    sync::mpsc::SyncSender,
};

use anyhow::Context;
use gpumon_probe::{
    bounded,
    model::{CostMark, now_ms},
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open},
    process::{Pid, Signal, kill_process},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::{
        SignalsInfo,
        exfiltrator::{WithOrigin, origin::Origin},
    },
    low_level::emulate_default_handler,
};
use tempfile::TempDir;

use super::Happening;
use crate::{
    background::spawn,
    children,
    exit::{Failure, Result, usage},
    wait,
};

/// Signals that somebody sends to gpumon and means the command.
const FORWARDED: [i32; 7] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];

/// A shell's exit code for a command that ended by a signal, less the signal.
const NO_SIGNAL: i32 = 128;

pub(super) struct Child {
    /// In milliseconds since 1970.
    pub(super) started_ms: f64,
    process: process::Child,
}

/// How it ended, and when.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) at_ms: f64,
    status: ExitStatus,
}

impl Child {
    pub(super) fn start(command: &[OsString], marks: Option<&Path>) -> Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(usage!("no command after --"));
        };
        // From here on nothing ends gpumon before the command. What is ignored, as by nohup, stays
        // so for both.
        let ignored = ignored_signals();
        let signals = FORWARDED
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let signals = SignalsInfo::<WithOrigin>::new(signals)?;
        children::adopt_orphans()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(marks.map(|path| (MARKS, path)));
        let started_ms = exact_now_ms();
        let process =
            children::start(&mut command).map_err(|error| wait::not_started(program, &error))?;
        let pid = process.id();
        forward(signals, pid)?;
        Ok(Self {
            started_ms,
            process,
        })
    }

    pub(super) fn wait_in_background(
        mut self,
        happenings: SyncSender<Happening>,
    ) -> io::Result<()> {
        let work = move || {
            let status = self.process.wait();
            let at_ms = exact_now_ms();
            let _ = happenings.send(Happening::Ended(
                status.map(|status| Ended { at_ms, status }),
            ));
        };
        spawn("wait", work)
    }
}

/// A bit for each signal that this process ignores (`SigIgn` in `/proc/self/status`), signal 1 the
/// lowest.
fn ignored_signals() -> u64 {
    let status = bounded::text("/proc/self/status", bounded::TABLE).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Passes on what other processes send. What a terminal sends, its whole foreground job gets, the
/// command too.
fn forward(mut signals: SignalsInfo<WithOrigin>, pid: u32) -> io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed());
    let work = move || {
        for Origin {
            signal,
            process: sender,
            ..
        } in signals.forever()
        {
            if sender.is_some()
                && let Some((pid, signal)) = pid.zip(Signal::from_named_raw(signal))
            {
                // It fails where the command has just ended.
                let _ = kill_process(pid, signal);
            }
        }
    };
    spawn("signals", work)
}

impl Ended {
    /// Ends this process as the command has ended: by its signal, or with its exit code.
    ///
    /// # Errors
    /// The exit code, unless it is 0.
    pub(super) fn pass_on(self) -> Result {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = self.status.signal() {
            // Whoever waits sees what the command ended by; a core would be gpumon's own.
            let _ = rustix::process::setrlimit(
                rustix::process::Resource::Core,
                rustix::process::Rlimit {
                    current: Some(0),
                    maximum: Some(0),
                },
            );
            // Those that it does not know are told as shells do.
            let _ = emulate_default_handler(signal);
            return Failure::unless_success((NO_SIGNAL + signal) as u8);
        }
        Failure::unless_success(self.status.code().map_or(1, |code| code as u8))
    }
}

/// Now, in milliseconds since 1970.
fn exact_now_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

/// The variable with the path, for the command.
const MARKS: &str = "GPUMON_MARKS";

/// Bytes of a line; the rest of a longer one is a mark of its own.
const LONGEST: u64 = 400;

/// Removes the pipe when it is dropped; then, its reader ends with the last who may write.
pub(super) struct Pipe {
    path: PathBuf,
    /// So the reader does not end with the first who has written.
    _writer: OwnedFd,
    _folder: TempDir,
}

impl Pipe {
    /// In a folder that nobody else may enter.
    pub(super) fn new(happenings: SyncSender<Happening>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("gpumon-marks-")
            .tempdir()
            .context("cannot make the pipe for marks")?;
        let path = folder.path().join("marks");
        let (pipe, writer) = open_both(&path).context("cannot make the pipe for marks")?;
        let work = move || read(File::from(pipe), &happenings);
        spawn("marks", work)?;
        Ok(Self {
            path,
            _writer: writer,
            _folder: folder,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn open_both(path: &Path) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Without waiting for the other end.
    let reader = open(
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let writer = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&reader, OFlags::empty())?;
    Ok((reader, writer))
}

fn read(pipe: File, happenings: &SyncSender<Happening>) {
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    while lines
        .by_ref()
        .take(LONGEST)
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        let mark = CostMark::read(now_ms(), &String::from_utf8_lossy(&line));
        line.clear();
        if !mark.text.is_empty() && happenings.send(Happening::Mark(mark)).is_err() {
            return;
        }
    }
    let _ = happenings.send(Happening::NoMoreMarks);
}
