//! The terminal: taken over as a whole, and always given back as it was.

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

/// What is kept of the memory that a frame took.
const FRAME: usize = 64 * 1024;

/// Columns and rows that are drawn at most, from the top left. A terminal can say that it has 65535
/// of each, which would take more memory than there is.
const LARGEST: (u16, u16) = (1000, 500);

/// How long the terminal may take to answer before it is given back: a shell would read the answer
/// as keys.
const ANSWER: Duration = Duration::from_millis(200);

/// Whether the terminal is taken over, for the one who gives it back in an emergency.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, until this is dropped.
pub(super) struct Screen {
    out: CrosstermBackend<Out>,
    shown: Buffer,
    /// What is drawn next; kept for its memory.
    spare: Buffer,
    mouse: bool,
    /// When the terminal was asked for its background.
    asked: Option<Instant>,
    pub(super) is_answered: bool,
}

/// The commands to use in place of `gpumon top`.
pub(super) const INSTEAD: &str = "use `gpumon top --once` for one frame, `gpumon --watch` for a table again and again, or \
                                  `gpumon collect` for JSON";

/// Checks that the output is a terminal that the command can draw on. `instead` is the advice if it
/// is not.
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

    /// Draws what has changed since the last time, or everything.
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

    /// Sets the terminal up once more, whatever somebody did to it meanwhile.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        // What is already in this mode would otherwise be left as it is.
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

/// Gives the terminal back and stops this program, as Ctrl-Z does, until somebody lets it go on: in
/// front, or behind, or to end.
pub(super) fn suspend() -> io::Result<()> {
    leave();
    // The signal that cannot be handled: the other one is handled here, or this would not be asked
    // for.
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// Gives the mode of the terminal back, and nothing that a terminal which takes nothing could hold
/// up.
pub(super) fn leave_in_a_hurry() {
    if Job::now().has_terminal() {
        let _ = disable_raw_mode();
    }
}

/// Gives the terminal back, once. A terminal that is gone needs nothing.
fn leave() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let has_terminal = Job::now().has_terminal();
    // From behind, the shell has its own modes by now, and some terminals let nobody write.
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

/// The message of a panic must be readable, on whichever thread it happens.
fn give_back_in_a_panic() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        leave();
        before(what);
    }));
}

/// Columns and rows, where standard output is a terminal that tells them.
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

/// Standard output, to which a frame goes in one piece. It has no lock as `std` has, for which a
/// thread that panics while another one draws would wait, and what could not be written is dropped
/// with it.
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
