//! The main loop of a live screen, which waits for input, handles it, and draws the screen after
//! changes.

use std::{
    io,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use gpumon_probe::local_time::time_zone;
use ratatui::buffer::Buffer;

use super::{
    input::{self, Input, Signal},
    screen::{self, Screen, TerminalJob},
    theme::ThemeName,
};
use crate::exit::Failure;

/// The interval at which a background job checks whether it is in the foreground again.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextStep {
    /// Wait for the next input, because nothing has changed.
    Wait,
    Draw,
    /// Draw everything, including unchanged cells.
    DrawAnew,
    /// Set up the terminal again. Another process has stopped and continued this program, so the
    /// terminal may be in any state.
    TakeAgain,
    /// Restore the terminal and stop this program until another process continues it.
    Suspend,
    Quit,
    /// Restore the terminal and end this program with the given signal.
    Die(i32),
}

impl From<Signal> for NextStep {
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

/// A screen that the main loop can run.
pub(super) trait LiveScreen {
    /// Handles an input.
    fn handle_input(&mut self, input: Input) -> Result<NextStep, Failure>;

    /// Returns the maximum time to wait for the next input.
    fn poll_timeout(&self, now: Instant) -> Duration;

    fn theme(&self) -> ThemeName;

    /// Applies changes that depend only on the time.
    fn tick(&mut self, now: Instant) -> NextStep;

    fn draw(&mut self, buffer: &mut Buffer);
}

/// Runs a live screen until the user quits.
pub(super) fn run_screen(
    mut app: impl LiveScreen,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<(), Failure> {
    // This call may print a warning about the time zone. The warning must be printed before the
    // live screen covers the terminal.
    time_zone();
    input::watch_signals(inputs.clone())?;
    let shown = run_in_terminal(&mut app, mouse, inputs, waiting);
    match shown {
        Ok(End::Of(signal)) => input::end_by_signal(signal),
        Ok(End::Wanted) => Ok(()),
        // If the terminal was closed, nobody could read an error message.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        Err(failure) => Err(failure),
    }
}

enum End {
    /// The user quit, or the terminal was closed.
    Wanted,
    /// The program received a signal that is not an ordinary request to end, such as SIGQUIT.
    Of(i32),
}

/// Runs a live screen, and restores the terminal when it returns.
fn run_in_terminal(
    app: &mut impl LiveScreen,
    mouse: bool,
    inputs: SyncSender<Input>,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    // The program may have been started as a background job, which must wait before it uses the
    // terminal.
    if let Some(end) = wait_for_foreground(app, waiting)? {
        return Ok(end);
    }
    let mut screen = Screen::take_over_terminal(mouse).map_err(convert_terminal_error)?;
    input::watch_terminal(inputs)?;
    run_loop(app, &mut screen, waiting)
}

/// Handles input until the screen ends. The screen is drawn only if something has changed.
fn run_loop(
    app: &mut impl LiveScreen,
    screen: &mut Screen,
    waiting: &Receiver<Input>,
) -> Result<End, Failure> {
    let mut next = NextStep::DrawAnew;
    loop {
        if next >= NextStep::Suspend
            && let Some(patience) = screen.remaining_response_wait()
        {
            match waiting.recv_timeout(patience) {
                Ok(input) => {
                    next = next.max(forward_input(app, screen, input)?);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        match next {
            NextStep::Quit => return Ok(End::Wanted),
            NextStep::Die(signal) => return Ok(End::Of(signal)),
            NextStep::Suspend | NextStep::TakeAgain => {
                if next == NextStep::Suspend {
                    screen::suspend_program()?;
                }
                if let Some(end) = wait_for_foreground(app, waiting)? {
                    return Ok(end);
                }
                screen
                    .take_over_terminal_again()
                    .map_err(convert_terminal_error)?;
            }
            NextStep::Wait | NextStep::Draw | NextStep::DrawAnew => {}
        }
        if next != NextStep::Wait {
            if app.theme() == ThemeName::Auto {
                screen.request_background()?;
            }
            screen
                .draw(|buffer| app.draw(buffer), next > NextStep::Draw)
                .map_err(convert_terminal_error)?;
        }
        next = NextStep::Wait;
        match waiting.recv_timeout(app.poll_timeout(Instant::now())) {
            Ok(input) => next = forward_input(app, screen, input)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(End::Wanted),
        }
        // All inputs that have already arrived are handled before the next drawing.
        while next < NextStep::TakeAgain
            && let Ok(input) = waiting.try_recv()
        {
            next = next.max(forward_input(app, screen, input)?);
        }
        next = next.max(app.tick(Instant::now()));
    }
}

fn forward_input(
    app: &mut impl LiveScreen,
    screen: &mut Screen,
    input: Input,
) -> Result<NextStep, Failure> {
    screen.is_background_known |= matches!(input, Input::Background(_));
    app.handle_input(input)
}

/// Handles input while another job uses the terminal. Returns `None` when this program is in the
/// foreground, or how the program should end. bash ends a stopped job by continuing it in the
/// background, so a signal must be able to end this program without the terminal.
fn wait_for_foreground(
    app: &mut impl LiveScreen,
    waiting: &Receiver<Input>,
) -> Result<Option<End>, Failure> {
    let was_behind = TerminalJob::detect() == TerminalJob::Behind;
    loop {
        match TerminalJob::detect() {
            TerminalJob::InFront => return Ok(None),
            TerminalJob::Alone if !was_behind => return Ok(None),
            // The shell that controlled the jobs has ended, or the terminal was closed.
            TerminalJob::Alone | TerminalJob::Lost => return Ok(Some(End::Wanted)),
            TerminalJob::Behind => {}
        }
        match waiting.recv_timeout(POLL_INTERVAL) {
            Ok(input) => match app.handle_input(input)? {
                NextStep::Quit => return Ok(Some(End::Wanted)),
                NextStep::Die(signal) => return Ok(Some(End::Of(signal))),
                NextStep::Suspend => screen::suspend_program()?,
                _ => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(End::Wanted)),
        }
    }
}

/// Converts errors of a closed terminal to a broken pipe, which is not reported.
fn convert_terminal_error(error: io::Error) -> io::Error {
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::IO | rustix::io::Errno::NXIO) => io::ErrorKind::BrokenPipe.into(),
        _ => error,
    }
}
