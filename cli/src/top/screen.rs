//! The terminal, which is taken over as a whole and always restored.

use std::{
    io::{self, IsTerminal, Write},
    mem, panic,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::anyhow;
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
    termios::{LocalModes, tcgetattr, tcgetwinsize},
};

use super::{background, job::Job};
use crate::exit::Failure;

/// The capacity in bytes of the output buffer that is kept from one frame to the next.
const FRAME: usize = 64 * 1024;

/// The maximum size that is drawn, in columns and rows from the top left. A terminal may report
/// 65535 of each, for which there would not be enough memory.
const LARGEST: (u16, u16) = (1000, 500);

/// How long to wait for the terminal's answer before restoring the terminal. A shell would read the
/// answer as keys.
const ANSWER: Duration = Duration::from_millis(200);

/// Whether the terminal is taken over, for the panic hook that restores it.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over until this value is dropped.
pub(super) struct Screen {
    out: CrosstermBackend<Out>,
    shown: Buffer,
    /// The buffer of the next frame, which is kept to reuse its memory.
    spare: Buffer,
    mouse: bool,
    /// The time at which the terminal was asked for its background.
    asked: Option<Instant>,
    pub(super) is_answered: bool,
}

/// The commands to use in place of `gpumon top`.
pub(super) const INSTEAD: &str = "use `gpumon top --once` for one frame, `gpumon --watch` for a table again and again, or \
                                  `gpumon collect` for JSON";

/// Checks that standard output is a terminal on which the command can draw. `instead` is the advice
/// if it is not.
pub(super) fn check(command: &str, instead: &str) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(anyhow!(
            "{command} needs a terminal, and its output goes elsewhere; {instead}"
        )));
    }
    let terminal = std::env::var("TERM").unwrap_or_default();
    if matches!(terminal.as_str(), "" | "dumb" | "unknown") {
        let what = if terminal.is_empty() {
            "TERM is not set".to_owned()
        } else {
            format!("TERM is {terminal}")
        };
        return Err(Failure::usage(anyhow!(
            "{command} needs a terminal whose cursor can be moved, and {what}; {instead}"
        )));
    }
    Ok(())
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        let out = CrosstermBackend::new(Out::default());
        let mut screen = Self {
            out,
            shown: Buffer::default(),
            spare: Buffer::default(),
            mouse,
            asked: None,
            is_answered: false,
        };
        give_back_in_a_panic();
        screen.enter()?;
        Ok(screen)
    }

    /// Asks for the background before the next frame, once each time the terminal is taken over.
    pub(super) fn ask_for_background(&mut self) -> io::Result<()> {
        if self.asked.is_some() || !background::is_askable() {
            return Ok(());
        }
        (self.asked, self.is_answered) = (Some(Instant::now()), false);
        queue!(self.out, Print(background::QUERY))
    }

    /// Returns how much longer to wait for an answer before the terminal is given back.
    pub(super) fn patience(&self) -> Option<Duration> {
        let asked = self.asked.filter(|_| !self.is_answered)?;
        ANSWER.checked_sub(asked.elapsed())
    }

    /// Draws the cells that have changed since the last frame, or all cells.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer), anew: bool) -> io::Result<()> {
        let size = tcgetwinsize(stdout())?;
        let area = drawn(size.ws_col, size.ws_row);
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

    /// Sets the terminal up again, whatever state another process left it in.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        // Crossterm does not set raw mode again while it considers it enabled.
        disable_raw_mode()?;
        self.asked = None;
        self.enter()
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        queue!(self.out, EnterAlternateScreen, Hide)?;
        if self.mouse {
            queue!(self.out, EnableMouseCapture)?;
        }
        Write::flush(&mut self.out)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal and stops this program, as Ctrl-Z does, until a process continues it in
/// the foreground or in the background, or to end it.
pub(super) fn suspend() -> io::Result<()> {
    leave();
    // `SIGSTOP` cannot be handled. This program handles `SIGTSTP` itself, which leads here.
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Restores the terminal's mode only. Writing to a terminal that accepts no output could block.
pub(super) fn leave_in_a_hurry() {
    if Job::now().has_terminal() {
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal if it has not been restored yet.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let has_terminal = Job::now().has_terminal();
    // In the background, the shell has already set its own modes, and some terminals forbid
    // writing.
    if has_terminal
        || tcgetattr(stdout()).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::TOSTOP))
    {
        let mut out = Out::default();
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

/// Restores the terminal before a panic of any thread prints its message.
fn give_back_in_a_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        leave();
        before(what);
    }));
}

/// Returns the columns and rows of standard output if it is a terminal that reports them.
pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdout())
        .ok()
        .filter(|size| size.ws_col > 0 && size.ws_row > 0)?;
    let Rect { width, height, .. } = drawn(size.ws_col, size.ws_row);
    Some((width, height))
}

fn drawn(columns: u16, rows: u16) -> Rect {
    Rect {
        x: 0,
        y: 0,
        width: columns.min(LARGEST.0),
        height: rows.min(LARGEST.1),
    }
}

/// Standard output, to which each frame is written in one piece. It has no lock, unlike that of
/// `std`, because a thread that panics would wait for a thread that draws. Bytes that could not be
/// written are dropped with it.
#[derive(Default)]
struct Out {
    waiting: Vec<u8>,
}

impl Write for Out {
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
        self.waiting.shrink_to(FRAME);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_is_so_large_that_memory_ends() {
        assert_eq!(
            drawn(80, 24),
            Rect {
                x: 0,
                y: 0,
                width: 80,
                height: 24
            }
        );
        assert_eq!(
            drawn(u16::MAX, u16::MAX),
            Rect {
                x: 0,
                y: 0,
                width: 1000,
                height: 500
            }
        );
        assert_eq!(drawn(0, u16::MAX).area(), 0);
    }
}
