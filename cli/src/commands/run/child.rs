//! The measured command: starting it, forwarding signals to it, and waiting for its end.

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

use super::RunEvent;
use crate::{
    background::spawn_detached_thread,
    child_processes,
    exit::{Failure, Result, usage},
    wait,
};

/// Signals that gpumon receives and forwards to the command.
const FORWARDED_SIGNALS: [i32; 7] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH];

/// The number that shells add to a signal's number. The sum is the exit code of a command that was
/// ended by this signal.
const SIGNAL_CODE_OFFSET: i32 = 128;

pub(super) struct MeasuredCommand {
    /// The command's start time in milliseconds since 1970.
    pub(super) started_ms: f64,
    process: process::Child,
}

/// The time at which the command ended, and its exit status.
#[derive(Debug)]
pub(super) struct CommandEnd {
    pub(super) at_ms: f64,
    status: ExitStatus,
}

impl MeasuredCommand {
    pub(super) fn start(command: &[OsString], marks: Option<&Path>) -> Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(usage!("no command after --"));
        };
        // The handlers ensure that a signal does not end gpumon before the command. A signal that
        // is already ignored, for example because of nohup, gets no handler, so that gpumon and the
        // command continue to ignore it.
        let ignored = read_ignored_signals();
        let signals = FORWARDED_SIGNALS
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let signals = SignalsInfo::<WithOrigin>::new(signals)?;
        child_processes::adopt_orphans()?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(marks.map(|path| (MARKS_VARIABLE, path)));
        let started_ms = precise_now_ms();
        let process = child_processes::start_program(&mut command)
            .map_err(|error| wait::make_start_failure(program, &error))?;
        let pid = process.id();
        forward_signals(signals, pid)?;
        Ok(Self {
            started_ms,
            process,
        })
    }

    pub(super) fn wait_in_background(mut self, happenings: SyncSender<RunEvent>) -> io::Result<()> {
        let work = move || {
            let status = self.process.wait();
            let at_ms = precise_now_ms();
            let _ = happenings.send(RunEvent::Ended(
                status.map(|status| CommandEnd { at_ms, status }),
            ));
        };
        spawn_detached_thread("wait", work)
    }
}

/// Returns the signals that this process ignores as a bit mask, read from `SigIgn` in
/// `/proc/self/status`. The lowest bit is signal 1.
fn read_ignored_signals() -> u64 {
    let status = bounded::read_text("/proc/self/status", bounded::TABLE_LIMIT).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Forwards signals to the command if other processes sent them to gpumon. Signals from the
/// terminal are not forwarded, because the terminal also sends them to the command.
fn forward_signals(mut signals: SignalsInfo<WithOrigin>, pid: u32) -> io::Result<()> {
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
    spawn_detached_thread("signals", work)
}

impl CommandEnd {
    /// Ends this process in the same way as the command: by the same signal, or with the same exit
    /// code.
    ///
    /// # Errors
    /// Returns the exit code as a failure unless it is 0.
    pub(super) fn exit_like_command(self) -> Result {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = self.status.signal() {
            // gpumon ends itself with the same signal as the command, so that its parent sees the
            // signal. Core dumps are disabled, because a dump would be of gpumon and not of the
            // command.
            let _ = rustix::process::setrlimit(
                rustix::process::Resource::Core,
                rustix::process::Rlimit {
                    current: Some(0),
                    maximum: Some(0),
                },
            );
            // If the signal's default action does not end this process, the signal becomes an exit
            // code, as in shells.
            let _ = emulate_default_handler(signal);
            return Failure::check_exit_code((SIGNAL_CODE_OFFSET + signal) as u8);
        }
        Failure::check_exit_code(self.status.code().map_or(1, |code| code as u8))
    }
}

/// Returns the current time in milliseconds since 1970, including fractions of a millisecond.
fn precise_now_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

/// The environment variable that contains the pipe's path for the command.
const MARKS_VARIABLE: &str = "GPUMON_MARKS";

/// The maximum length in bytes of a line that contains a mark. If a line is longer, its remaining
/// bytes are read as another mark.
const MAX_MARK_BYTES: u64 = 400;

/// A named pipe for marks. The pipe is removed on drop, and its reader ends once all writers have
/// closed the pipe.
pub(super) struct MarkPipe {
    path: PathBuf,
    /// The writing end of the pipe. It is kept open, so that the reader does not end when the first
    /// program that writes to the pipe closes it.
    _writer: OwnedFd,
    _folder: TempDir,
}

impl MarkPipe {
    /// Creates the pipe in a directory that only this user can access.
    pub(super) fn new(happenings: SyncSender<RunEvent>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("gpumon-marks-")
            .tempdir()
            .context("cannot create the pipe for marks")?;
        let path = folder.path().join("marks");
        let (pipe, writer) =
            create_and_open_fifo(&path).context("cannot create the pipe for marks")?;
        let work = move || read_marks(File::from(pipe), &happenings);
        spawn_detached_thread("marks", work)?;
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

fn create_and_open_fifo(path: &Path) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
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

fn read_marks(pipe: File, happenings: &SyncSender<RunEvent>) {
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    while lines
        .by_ref()
        .take(MAX_MARK_BYTES)
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        let mark = CostMark::from_text(now_ms(), &String::from_utf8_lossy(&line));
        line.clear();
        if !mark.text.is_empty() && happenings.send(RunEvent::Mark(mark)).is_err() {
            return;
        }
    }
    let _ = happenings.send(RunEvent::NoMoreMarks);
}
