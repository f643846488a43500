//! The measured command: its start, the signals forwarded to it, and its end.

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

/// Signals that are sent to gpumon but meant for the command.
const FORWARDED: [i32; 7] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];

/// The offset that shells add to a signal's number for the exit code of a command that ended by
/// that signal.
const NO_SIGNAL: i32 = 128;

pub(super) struct Child {
    /// The start time in milliseconds since 1970.
    pub(super) started_ms: f64,
    process: process::Child,
}

/// The end of the command: the time and the exit status.
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
        // From here on, these signals do not end gpumon before the command. Signals that are
        // ignored, as with nohup, stay ignored for both.
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

/// Returns the signals that this process ignores as a bit mask (`SigIgn` in `/proc/self/status`).
/// The lowest bit is signal 1.
fn ignored_signals() -> u64 {
    let status = bounded::text("/proc/self/status", bounded::TABLE).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Forwards signals from other processes to the command. Signals from the terminal are not
/// forwarded, because the terminal sends them to the command, too.
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
                // Sending fails if the command has just ended.
                let _ = kill_process(pid, signal);
            }
        }
    };
    spawn("signals", work)
}

impl Ended {
    /// Ends this process in the same way as the command: by its signal, or with its exit code.
    ///
    /// # Errors
    /// Returns the exit code as a failure unless it is 0.
    pub(super) fn pass_on(self) -> Result {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = self.status.signal() {
            // The parent sees the signal that ended the command. Core dumps are disabled, because
            // the dump would be of gpumon and not of the command.
            let _ = rustix::process::setrlimit(
                rustix::process::Resource::Core,
                rustix::process::Rlimit {
                    current: Some(0),
                    maximum: Some(0),
                },
            );
            // Signals without a default handler become an exit code, as in shells.
            let _ = emulate_default_handler(signal);
            return Failure::unless_success((NO_SIGNAL + signal) as u8);
        }
        Failure::unless_success(self.status.code().map_or(1, |code| code as u8))
    }
}

/// Returns the current time in milliseconds since 1970, with fractions.
fn exact_now_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

/// The command's environment variable with the path of the pipe.
const MARKS: &str = "GPUMON_MARKS";

/// The maximum length of a mark's line in bytes. The rest of a longer line becomes another mark.
const LONGEST: u64 = 400;

/// The pipe for marks, which is removed on drop. The reader then ends once all writers have closed
/// the pipe.
pub(super) struct Pipe {
    path: PathBuf,
    /// A writer that keeps the reader from ending when the first other writer closes the pipe.
    _writer: OwnedFd,
    _folder: TempDir,
}

impl Pipe {
    /// Creates the pipe in a directory that only this user may enter.
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
    // With `NONBLOCK`, opening the pipe does not wait for a writer.
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
