//! The inputs of the screen: keys, mouse events, the terminal's background, signals, readings, and
//! details of a process. This file also handles the signals; [`keyboard`] reads the terminal.

mod keyboard;

use std::{
    io,
    sync::{Arc, mpsc::SyncSender},
    thread,
    time::{Duration, Instant},
};

use gpumon_fleet::model::Fleet;
use ratatui::crossterm::event::Event;
use signal_hook::{
    consts::{
        SIGABRT, SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN,
        SIGTTOU, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
    },
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::{inspect::Inspection, model::Update, screen, theme::Background};
use crate::{background::spawn_detached_thread, exit::Failure};

pub(super) use self::keyboard::watch_terminal;

/// The maximum time to wait until the screen has ended. The program then ends in any case.
const SCREEN_EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval at which the thread tries again to send a signal while the input queue is full.
const RESEND_INTERVAL: Duration = Duration::from_millis(20);

/// Signals that end a program by default, except requests to end, such as SIGTERM, and signals that
/// a program's own errors cause.
const FATAL_SIGNALS: [i32; 9] = [
    SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
];

pub(super) enum Input {
    /// A key or mouse event.
    Terminal(Event),
    /// The terminal's response to [`BACKGROUND_QUERY`](super::theme::BACKGROUND_QUERY).
    Background(Background),
    Signal(Signal),
    Update(Update),
    Inspected(Box<Inspection>),
    /// A new state of the fleet.
    Fleet(Arc<Fleet>),
    /// An input for the screen of a fleet's node. The number identifies this screen.
    Node(u64, Box<Input>),
    Failed(Failure),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// A request to end the program, or the signal that the terminal was closed. In both cases, the
    /// exit code is 0.
    End,
    /// A signal whose default action ends the program. The terminal is restored first.
    Die(i32),
    Stop,
    Continue,
    Resize,
}

/// Starts to handle signals on a separate thread.
pub(super) fn watch_signals(inputs: SyncSender<Input>) -> io::Result<()> {
    let handled = [SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH];
    // The kernel sends SIGTTIN and SIGTTOU to a background program that uses the terminal. This
    // program receives them only if another program comes to the foreground at that moment. By
    // default, they would stop all threads, including the thread that ends this program.
    let mut signals = Signals::new(
        handled
            .into_iter()
            .chain(FATAL_SIGNALS)
            .chain([SIGTTIN, SIGTTOU]),
    )?;
    let body = move || {
        for number in signals.forever() {
            let signal = match number {
                SIGTTIN | SIGTTOU => continue,
                SIGTSTP => Signal::Stop,
                SIGCONT => Signal::Continue,
                SIGWINCH => Signal::Resize,
                SIGTERM | SIGINT | SIGHUP => Signal::End,
                deadly => Signal::Die(deadly),
            };
            if matches!(signal, Signal::End | Signal::Die(_)) {
                end_program_after_timeout(&inputs, signal);
            } else if inputs.send(Input::Signal(signal)).is_err() {
                return;
            }
        }
    };
    spawn_detached_thread("signals", body)
}

/// Ends this program by the default action of the signal, so that the parent process sees the
/// signal.
pub(super) fn end_by_signal(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    // This is reached only if the signal's default action does not end a program.
    std::process::exit(1);
}

/// Requests the end of the screen, waits, and then ends the program. This works even if the
/// terminal accepts no output, because only the thread that draws is then blocked.
fn end_program_after_timeout(inputs: &SyncSender<Input>, signal: Signal) {
    let begun = Instant::now();
    while inputs.try_send(Input::Signal(signal)).is_err() && begun.elapsed() < SCREEN_EXIT_TIMEOUT {
        thread::sleep(RESEND_INTERVAL);
    }
    thread::sleep(SCREEN_EXIT_TIMEOUT.saturating_sub(begun.elapsed()));
    screen::restore_terminal_mode();
    match signal {
        Signal::Die(number) => end_by_signal(number),
        _ => std::process::exit(1),
    }
}
