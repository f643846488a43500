//! The loop of a live screen: it waits, takes in what comes, and draws whenever something has
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

/// How often it is looked whether the terminal is this program's again.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// Wait: nothing has changed.
    Wait,
    Draw,
    /// Draw everything, also what has not changed.
    DrawAnew,
    /// It goes on after somebody else stopped it: the terminal may be in any state.
    TakeAgain,
    /// Give the terminal back and stop, until somebody goes on.
    Suspend,
    Quit,
    /// Give the terminal back, and die of this signal.
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

/// What is shown live.
pub(super) trait Live {
    /// Takes in what has come.
    fn take(&mut self, input: Input) -> Result<Next, Failure>;

    /// How long to wait for more.
    fn idle(&self, now: Instant) -> Duration;

    fn theme(&self) -> ThemeName;

    /// What has changed by itself.
    fn tick(&mut self, now: Instant) -> Next;

    fn draw(&mut self, buffer: &mut Buffer);
}

/// Shows it until somebody leaves.
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
        // The terminal is gone, and nobody is there to be told.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        Err(failure) => Err(failure),
    }
}

enum End {
    /// Somebody wants it to, or nobody is there any more.
    Wanted,
    /// Of a signal that is none of those that ask for the end.
    Of(i32),
}

/// Shows it, and has given the terminal back when this returns.
fn run_in_terminal(
    app: &mut impl Live,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    // A job can be started behind.
    if let Some(end) = wait_for_foreground(app, waiting)? {
        return Ok(end);
    }
    let mut screen = Screen::take(mouse).map_err(terminal_error)?;
    input::watch_terminal(inputs)?;
    follow(app, &mut screen, waiting)
}

/// Draws whenever something has changed, and never otherwise.
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
        // All that has come is drawn at once.
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

/// Waits while another job has the terminal, and takes in what comes, until it is this program's
/// turn, which is `None`, or its end. A signal that ends it must not need the terminal: bash lets a
/// stopped job go on behind, so that it can.
fn wait_for_foreground(
    app: &mut impl Live,
    waiting: &Receiver<Input>,
) -> Result<Option<End>, Failure> {
    let was_behind = Job::now() == Job::Behind;
    loop {
        match Job::now() {
            Job::InFront => return Ok(None),
            Job::Alone if !was_behind => return Ok(None),
            // Whoever shared the terminal out has gone, or the terminal has.
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

/// A terminal that is gone is no error to tell.
fn terminal_error(error: io::Error) -> io::Error {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::IO | rustix::io::Errno::NXIO) => io::ErrorKind::BrokenPipe.into(),
        _ => error,
    }
}
