//! What the screen waits for: keys and mouse, signals, readings, and what was read of a process.

use std::{
    io,
    sync::mpsc::SyncSender,
    thread,
    time::{Duration, Instant},
};

use ratatui::crossterm::{
    event::{self, Event},
    terminal::disable_raw_mode,
};
use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP},
    iterator::Signals,
};

use super::{inspect::Inspection, world::Update};
use crate::exit::Failure;

/// How long the screen may take to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether it has room for another input.
const GLANCE: Duration = Duration::from_millis(20);

/// One thing that happened.
pub(super) enum Input {
    /// A key, the mouse, or another size.
    Terminal(Event),
    /// A signal to this process.
    Signal(Signal),
    /// News of the GPUs.
    Update(Update),
    /// What was found of a process.
    Inspected(Box<Inspection>),
    /// Nothing can be read.
    Failed(Failure),
    /// The terminal is gone.
    Gone,
}

/// The signals that are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// Somebody wants this program to end.
    End,
    /// Somebody stops it.
    Stop,
    /// It goes on after a stop.
    Continue,
}

/// Listens to signals from now on.
///
/// # Errors
/// Where the system refuses it.
pub(super) fn watch_signals(inputs: SyncSender<Input>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT])?;
    let body = move || {
        for number in signals.forever() {
            let signal = match number {
                SIGTSTP => Signal::Stop,
                SIGCONT => Signal::Continue,
                _ => Signal::End,
            };
            if signal == Signal::End {
                end(&inputs);
            } else if inputs.send(Input::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(body).map(drop)
}

/// Asks for the end. A terminal that takes nothing any more holds up the one who draws, but not the end.
fn end(inputs: &SyncSender<Input>) {
    let begun = Instant::now();
    while inputs.try_send(Input::Signal(Signal::End)).is_err() && begun.elapsed() < PATIENCE {
        thread::sleep(GLANCE);
    }
    thread::sleep(PATIENCE.saturating_sub(begun.elapsed()));
    let _ = disable_raw_mode();
    std::process::exit(1);
}

/// Listens to keys and mouse from now on; the terminal must be set up for it.
///
/// # Errors
/// Where the system refuses a thread.
pub(super) fn watch_terminal(inputs: SyncSender<Input>) -> io::Result<()> {
    let body = move || {
        loop {
            let input = event::read().map_or(Input::Gone, Input::Terminal);
            let is_over = matches!(input, Input::Gone);
            if inputs.send(input).is_err() || is_over {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(body).map(drop)
}
