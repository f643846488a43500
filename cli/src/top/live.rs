//! The loop of a live screen: it waits for input, processes it, and draws whenever something has
//! changed.

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use gpumon_probe::local_time::time_zone;
use ratatui::buffer::Buffer;

use super::{
    input::{self, Input, Signal},
    job::Job,
    screen::{self, Screen},
    theme::ThemeName,
};
use crate::exit::Failure;

/// How often a background job checks whether it is in the foreground again.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// Nothing has changed, so wait.
    Wait,
    Draw,
    /// Draw everything, including unchanged cells.
    DrawAnew,
    /// Set the terminal up again, because another process stopped and continued this one: the
    /// terminal may be in any state.
    TakeAgain,
    /// Restore the terminal and stop until another process continues this one.
    Suspend,
    Quit,
    /// Restore the terminal and end by this signal.
    Die(i32),
}

impl From<Signal> for Next {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::End => Self::Quit,
            Signal::Stop => Self::Suspend,
            Signal::Continue => Self::TakeAgain,
            Signal::Resize => Self::Draw,
            Signal::Die(signal) => Self::Die(signal),
        }
    }
}

/// The content of a live screen.
pub(super) trait Live {
    /// Processes one input.
    fn take(&mut self, input: Input) -> Result<Next, Failure>;

    /// Returns how long to wait for the next input.
    fn idle(&self, now: Instant) -> Duration;

    fn theme(&self) -> ThemeName;

    /// Applies changes that depend on time alone.
    fn tick(&mut self, now: Instant) -> Next;

    fn draw(&mut self, buffer: &mut Buffer);
}

/// Runs a live screen until the user quits.
pub(super) fn show(
    mut app: impl Live,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<(), Failure> {
    // A warning about the time zone must appear before the live view hides this screen.
    time_zone();
    input::watch_signals(inputs.clone())?;
    let shown = run_in_terminal(&mut app, mouse, inputs, waiting);
    match shown {
        Ok(End::Of(signal)) => input::die(signal),
        Ok(End::Wanted) => Ok(()),
        // The terminal is gone, so nobody can read an error.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        Err(failure) => Err(failure),
    }
}

enum End {
    /// The user quit, or the terminal was closed.
    Wanted,
    /// A signal other than those that ask the program to end.
    Of(i32),
}

/// Runs a live screen. The terminal is restored when this function returns.
fn run_in_terminal(
    app: &mut impl Live,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    // The program may have been started in the background.
    if let Some(end) = wait_for_foreground(app, waiting)? {
        return Ok(end);
    }
    let mut screen = Screen::take(mouse).map_err(terminal_error)?;
    input::watch_terminal(inputs)?;
    follow(app, &mut screen, waiting)
}

/// Handles input until the screen ends, and draws only when something has changed.
fn follow(
    app: &mut impl Live,
    screen: &mut Screen,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    let mut next = Next::DrawAnew;
    loop {
        if next >= Next::Suspend
            && let Some(patience) = screen.patience()
        {
            match waiting.recv_timeout(patience) {
                Ok(input) => {
                    next = next.max(take(app, screen, input)?);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        match next {
            Next::Quit => return Ok(End::Wanted),
            Next::Die(signal) => return Ok(End::Of(signal)),
            Next::Suspend | Next::TakeAgain => {
                if next == Next::Suspend {
                    screen::suspend()?;
                }
                if let Some(end) = wait_for_foreground(app, waiting)? {
                    return Ok(end);
                }
                screen.take_again().map_err(terminal_error)?;
            }
            Next::Wait | Next::Draw | Next::DrawAnew => {}
        }
        if next != Next::Wait {
            if app.theme() == ThemeName::Auto {
                screen.ask_for_background()?;
            }
            screen
                .draw(|buffer| app.draw(buffer), next > Next::Draw)
                .map_err(terminal_error)?;
        }
        next = Next::Wait;
        match waiting.recv_timeout(app.idle(Instant::now())) {
            Ok(input) => next = take(app, screen, input)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(End::Wanted),
        }
        // All inputs that have arrived are handled before one drawing.
        while next < Next::TakeAgain
            && let Ok(input) = waiting.try_recv()
        {
            next = next.max(take(app, screen, input)?);
        }
        next = next.max(app.tick(Instant::now()));
    }
}

fn take(app: &mut impl Live, screen: &mut Screen, input: Input) -> Result<Next, Failure> {
    screen.is_answered |= matches!(input, Input::Background(_));
    app.take(input)
}

/// Handles input while another job has the terminal. Returns `None` once this program is in the
/// foreground, or how the program must end. Ending by a signal must not need the terminal, because
/// bash continues a stopped job in the background for that purpose.
fn wait_for_foreground(
    app: &mut impl Live,
    waiting: &Receiver<Input>,
) -> Result<Option<End>, Failure> {
    let was_behind = Job::now() == Job::Behind;
    loop {
        match Job::now() {
            Job::InFront => return Ok(None),
            Job::Alone if !was_behind => return Ok(None),
            // The shell that controlled the jobs is gone, or the terminal is.
            Job::Alone | Job::Lost => return Ok(Some(End::Wanted)),
            Job::Behind => {}
        }
        match waiting.recv_timeout(POLL_INTERVAL) {
            Ok(input) => match app.take(input)? {
                Next::Quit => return Ok(Some(End::Wanted)),
                Next::Die(signal) => return Ok(Some(End::Of(signal))),
                Next::Suspend => screen::suspend()?,
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(End::Wanted)),
        }
    }
}

/// Converts an error that means that the terminal is gone into a broken pipe, which is not
/// reported.
fn terminal_error(error: io::Error) -> io::Error {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::IO | rustix::io::Errno::NXIO) => io::ErrorKind::BrokenPipe.into(),
        _ => error,
    }
}
