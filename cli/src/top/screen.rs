//! The terminal: taken over as a whole, and always given back as it was.

use std::{
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    panic,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::anyhow;
use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::{Hide, Show},
        event::{DisableMouseCapture, EnableMouseCapture},
        execute, queue,
        terminal::{
            BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
            disable_raw_mode, enable_raw_mode,
        },
    },
    layout::Rect,
};
use rustix::process::{Signal, getpid, kill_process};

use super::{app::App, draw::draw, pen::Hit};
use crate::exit::Failure;

/// A frame goes out in one piece.
const BUFFER: usize = 64 * 1024;

/// Whether the terminal is taken over, for the one who gives it back in an emergency.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, until this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    mouse: bool,
}

/// Whether there is a terminal that can be drawn on.
///
/// # Errors
/// With what to use instead.
pub(super) fn check() -> Result<(), Failure> {
    let instead = "use `gpumon --watch` for a table again and again, or `gpumon collect` for JSON";
    if !io::stdout().is_terminal() {
        return Err(Failure::usage(anyhow!("gpumon top needs a terminal, and its output goes elsewhere; {instead}")));
    }
    let terminal = std::env::var("TERM").unwrap_or_default();
    if matches!(terminal.as_str(), "" | "dumb" | "unknown") {
        let what = if terminal.is_empty() { "TERM is not set".to_owned() } else { format!("TERM is {terminal}") };
        return Err(Failure::usage(anyhow!(
            "gpumon top needs a terminal whose cursor can be moved, and {what}; {instead}"
        )));
    }
    Ok(())
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Where it cannot be set up.
    pub(super) fn take(mouse: bool) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER, io::stdout());
        let mut screen = Self { terminal: Terminal::new(CrosstermBackend::new(out))?, mouse };
        give_back_in_a_panic();
        screen.enter()?;
        Ok(screen)
    }

    /// Draws what has changed since the last time; what a click means where.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(super) fn draw(&mut self, app: &mut App, anew: bool) -> io::Result<Vec<(Rect, Hit)>> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        if anew {
            self.forget()?;
        }
        let mut hits = Vec::new();
        self.terminal.draw(|frame| hits = draw(app, frame.buffer_mut()))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Ok(hits)
    }

    /// Gives the terminal back and stops this program, as Ctrl-Z does, until somebody goes on.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        leave();
        // The signal that cannot be handled: the other one is handled here, or this would not be asked for.
        kill_process(getpid(), Signal::STOP)?;
        self.enter()
    }

    /// Sets the terminal up once more, whatever somebody did to it meanwhile.
    ///
    /// # Errors
    /// Where the terminal is gone.
    pub(super) fn take_again(&mut self) -> io::Result<()> {
        // What is already in this mode would otherwise be left as it is.
        disable_raw_mode()?;
        self.enter()
    }

    /// Clears the screen, so that everything is drawn. `Terminal::clear` would ask the terminal where its cursor is, and
    /// the answer would go to the thread that reads keys.
    fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let backend = self.terminal.backend_mut();
        execute!(backend, EnterAlternateScreen, Hide)?;
        if self.mouse {
            execute!(backend, EnableMouseCapture)?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, once. A terminal that is gone needs nothing.
fn leave() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, EndSynchronizedUpdate, DisableMouseCapture, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
        let _ = out.flush();
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
