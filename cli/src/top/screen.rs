//! Access to the terminal, which the screen takes over and always restores. Job control determines
//! whether the program may use the terminal.

use std::{
    io::{self, IsTerminal, Write},
    mem, panic,
    path::Path,
    process,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use gpumon_probe::process_stat::ProcessStat;
use ratatui::{
    backend::{Backend, CrosstermBackend},
    buffer::Buffer,
    crossterm::{
        cursor::{Hide, Show},
        event::{DisableMouseCapture, EnableMouseCapture},
        queue,
        style::Print,
        terminal::{
            BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
            LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
        },
    },
    layout::Rect,
};
use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
    process::{Signal, getpid, kill_process},
    stdio::stdout,
    termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetwinsize},
};

use super::theme;
use crate::exit::{Failure, usage};

/// The capacity, in bytes, to which the output buffer is reduced after each frame.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// The maximum size to draw, in columns and rows. A terminal may report 65535 columns and rows, for
/// which memory would be insufficient.
const MAX_SIZE: (u16, u16) = (1000, 500);

/// The maximum time to wait for the terminal's response before the terminal is restored. If the
/// response arrived later, the shell would receive it and interpret it as keys.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Advice on commands to use instead of `gpumon top`.
pub(super) const ALTERNATIVES: &str = "use `gpumon top --once` for one frame, `gpumon --watch` \
                                       for a table that is printed repeatedly, or `gpumon collect` \
                                       for JSON";

/// Whether the terminal is taken over. The panic hook restores the terminal only in this case.
static IS_TAKEN_OVER: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over until this value is dropped.
pub(super) struct Screen {
    out: CrosstermBackend<FrameWriter>,
    shown: Buffer,
    /// The buffer for the next frame. It is kept so that its memory is reused.
    spare: Buffer,
    mouse: bool,
    /// The time at which the terminal's background was requested.
    background_requested: Option<Instant>,
    /// Whether the terminal has responded to the request.
    pub(super) is_background_known: bool,
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn take_over_terminal(mouse: bool) -> io::Result<Self> {
        let out = CrosstermBackend::new(FrameWriter::default());
        let mut screen = Self {
            out,
            shown: Buffer::default(),
            spare: Buffer::default(),
            mouse,
            background_requested: None,
            is_background_known: false,
        };
        install_panic_hook();
        screen.set_up_terminal()?;
        Ok(screen)
    }

    /// Requests the terminal's background. The request is sent with the next frame, once each time
    /// the terminal is taken over.
    pub(super) fn request_background(&mut self) -> io::Result<()> {
        if self.background_requested.is_some() || !theme::supports_background_query() {
            return Ok(());
        }
        (self.background_requested, self.is_background_known) = (Some(Instant::now()), false);
        queue!(self.out, Print(theme::BACKGROUND_QUERY))
    }

    /// Returns how much longer to wait for the terminal's response before restoring the terminal.
    pub(super) fn remaining_response_wait(&self) -> Option<Duration> {
        let requested = self
            .background_requested
            .filter(|_| !self.is_background_known)?;
        RESPONSE_TIMEOUT.checked_sub(requested.elapsed())
    }

    /// Draws the cells that have changed since the last frame. If `anew` is set, draws all cells.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer), anew: bool) -> io::Result<()> {
        let size = tcgetwinsize(stdout())?;
        let area = limited_screen_area(size.ws_col, size.ws_row);
        queue!(self.out, BeginSynchronizedUpdate)?;
        if anew || self.shown.area != area {
            queue!(self.out, Clear(ClearType::All))?;
            self.shown = Buffer::empty(area);
        }
        self.spare.resize(area);
        self.spare.reset();
        draw(&mut self.spare);
        self.out.draw(self.shown.diff_iter(&self.spare))?;
        mem::swap(&mut self.shown, &mut self.spare);
        queue!(self.out, EndSynchronizedUpdate)?;
        Write::flush(&mut self.out)
    }

    /// Sets up the terminal again, regardless of the state in which another process left it.
    pub(super) fn take_over_terminal_again(&mut self) -> io::Result<()> {
        // Raw mode is disabled first. Otherwise, crossterm would still record it as enabled, and
        // would not enable it again.
        disable_raw_mode()?;
        self.background_requested = None;
        self.set_up_terminal()
    }

    fn set_up_terminal(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_TAKEN_OVER.store(true, Ordering::SeqCst);
        queue!(self.out, EnterAlternateScreen, Hide)?;
        if self.mouse {
            queue!(self.out, EnableMouseCapture)?;
        }
        Write::flush(&mut self.out)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Checks that standard output is a terminal on which the command can draw. Otherwise, the error
/// contains the advice `instead`.
pub(super) fn check_terminal(command: &str, instead: &str) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(usage!(
            "{command} needs a terminal, but its output is redirected; {instead}"
        ));
    }
    let terminal = std::env::var("TERM").unwrap_or_default();
    if matches!(terminal.as_str(), "" | "dumb" | "unknown") {
        let what = if terminal.is_empty() {
            "TERM is not set".to_owned()
        } else {
            format!("TERM is {terminal}")
        };
        return Err(usage!(
            "{command} needs a terminal that can move the cursor, but {what}; {instead}"
        ));
    }
    Ok(())
}

/// Restores the terminal and stops this program, as Ctrl-Z does. Another process may later continue
/// the program in the foreground or in the background, possibly only to end it.
pub(super) fn suspend_program() -> io::Result<()> {
    restore_terminal();
    // `SIGSTOP` always stops the program. `SIGTSTP` is not used, because this program handles it by
    // calling this function.
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Restores only the terminal's mode and writes nothing. Writing would block if the terminal
/// accepts no output.
pub(super) fn restore_terminal_mode() {
    if TerminalJob::detect().has_terminal() {
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal unless it is already restored.
fn restore_terminal() {
    if !IS_TAKEN_OVER.swap(false, Ordering::SeqCst) {
        return;
    }
    let has_terminal = TerminalJob::detect().has_terminal();
    // In the background, this program does not restore the modes, because the shell has already set
    // its own. If the terminal forbids writing in the background, this program also writes nothing.
    if has_terminal
        || tcgetattr(stdout()).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::TOSTOP))
    {
        let mut out = FrameWriter::default();
        let _ = queue!(
            out,
            EndSynchronizedUpdate,
            DisableMouseCapture,
            Show,
            LeaveAlternateScreen
        );
        let _ = out.flush();
    }
    if has_terminal {
        let _ = disable_raw_mode();
    }
}

/// Installs a hook that restores the terminal before the message of a panic on any thread is
/// printed.
fn install_panic_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        restore_terminal();
        before(what);
    }));
}

/// Returns the number of columns and rows of standard output, or `None` if it is not a terminal
/// that reports them.
pub(super) fn terminal_size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout())
        .ok()
        .filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
    let Rect { width, height, .. } = limited_screen_area(size.ws_col, size.ws_row);
    Some((width, height))
}

fn limited_screen_area(columns: u16, rows: u16) -> Rect {
    Rect {
        x: 0,
        y: 0,
        width: columns.min(MAX_SIZE.0),
        height: rows.min(MAX_SIZE.1),
    }
}

/// A writer for standard output that collects a frame and writes it at once. Standard output in
/// `std` has a lock, so a panicking thread would have to wait for the thread that draws. This
/// writer has none. If writing fails, the remaining bytes are dropped with the writer.
#[derive(Default)]
struct FrameWriter {
    waiting: Vec<u8>,
}

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut left = self.waiting.as_slice();
        while !left.is_empty() {
            match rustix::io::write(stdout(), left) {
                Ok(written) => left = &left[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => drop(rustix::event::poll(
                    &mut [PollFd::new(&stdout(), PollFlags::OUT)],
                    None,
                )),
                Err(error) => return Err(error.into()),
            }
        }
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_BUFFER_BYTES);
        Ok(())
    }
}

// Job control.
//
// If a background job reads or changes its terminal, the kernel stops all threads of the job. No
// thread could then handle a request to end the program, so the program first checks whether it may
// use the terminal.

/// Whether this program may use its terminal, according to job control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalJob {
    /// This program is in the foreground.
    InFront,
    /// Another job is in the foreground.
    Behind,
    /// There is no job control: the terminal is not the controlling terminal of this session.
    Alone,
    /// The terminal was closed, or no process can bring this program back to the foreground.
    Lost,
}

impl TerminalJob {
    pub(super) fn detect() -> Self {
        let front = match tcgetpgrp(stdout()) {
            Ok(front) => front.as_raw_nonzero().get().unsigned_abs(),
            // `OPNOTSUPP` means that the foreground process group is outside this container's PID
            // namespace.
            Err(Errno::NOTTY | Errno::OPNOTSUPP) => return Self::Alone,
            Err(_) => return Self::Lost,
        };
        match read_process_stat(process::id()) {
            Some(own) if own.group != front => {
                if is_process_group_orphaned(own, read_process_stat) {
                    Self::Lost
                } else {
                    Self::Behind
                }
            }
            _ => Self::InFront,
        }
    }

    /// Returns `true` if the terminal may be changed and read.
    pub(super) fn has_terminal(self) -> bool {
        matches!(self, Self::InFront | Self::Alone)
    }
}

/// Returns `true` if this program's process group is orphaned. According to the kernel's rule, a
/// group is orphaned if none of its processes has a parent in another group of the same session.
fn is_process_group_orphaned(
    own: ProcessStat,
    state_of: impl Fn(u32) -> Option<ProcessStat>,
) -> bool {
    let mut parent = own.parent;
    loop {
        match state_of(parent) {
            Some(above) if above.session == own.session && above.group == own.group => {
                parent = above.parent;
            }
            Some(above) => return above.session != own.session,
            None => return true,
        }
    }
}

/// Reads the process group and the session of a process. Each is 0 if it is outside of the
/// container.
fn read_process_stat(pid: u32) -> Option<ProcessStat> {
    ProcessStat::read_with_boot_time(Path::new("/proc"), pid, None).ok()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::process_stat::Birth;

    use super::*;

    #[test]
    fn drawing_area_of_huge_terminal_is_limited() {
        assert_eq!(
            limited_screen_area(80, 24),
            Rect {
                x: 0,
                y: 0,
                width: 80,
                height: 24
            }
        );
        assert_eq!(
            limited_screen_area(u16::MAX, u16::MAX),
            Rect {
                x: 0,
                y: 0,
                width: 1000,
                height: 500
            }
        );
        assert_eq!(limited_screen_area(0, u16::MAX).area(), 0);
    }

    #[test]
    fn terminal_job_without_parent_in_session_is_orphaned() {
        let place = |parent, group, session| ProcessStat {
            state: 'S',
            parent,
            group,
            session,
            threads: 1,
            cpu_ms: 0,
            birth: Birth {
                ticks: 0,
                started_ms: None,
            },
        };
        // The process 10 is a shell, 20 is a job that the shell started, and 21 is a child of
        // process 20.
        let all = |pid| match pid {
            1 => Some(place(0, 0, 0)),
            10 => Some(place(1, 10, 10)),
            20 => Some(place(10, 20, 10)),
            21 => Some(place(20, 20, 10)),
            _ => None,
        };
        assert!(!is_process_group_orphaned(place(10, 20, 10), all));
        assert!(
            !is_process_group_orphaned(place(21, 20, 10), all),
            "by way of its own group"
        );
        assert!(
            is_process_group_orphaned(place(1, 20, 10), all),
            "its shell has ended"
        );
        assert!(
            is_process_group_orphaned(place(1, 10, 10), all),
            "the shell itself"
        );
        assert!(
            is_process_group_orphaned(place(0, 20, 10), all),
            "from outside the container"
        );
        assert!(
            is_process_group_orphaned(place(30, 20, 10), all),
            "it ended just now"
        );
    }

    #[test]
    fn stat_of_current_process_has_parent_and_group() {
        let own = read_process_stat(process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.group > 0);
    }
}
