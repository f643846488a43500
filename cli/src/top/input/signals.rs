//! Signals, on a thread of their own.

use std::{
    io,
    sync::mpsc::SyncSender,
    thread,
    time::{Duration, Instant},
};

use signal_hook::{
    consts::{
        SIGABRT, SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN,
        SIGTTOU, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
    },
    iterator::Signals,
    low_level::emulate_default_handler,
};

use super::{Input, Signal};
use crate::top::screen;

/// How long the screen may take to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether it has room for another input.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The other signals that end a program which does not handle them, but for those that a fault of
/// its own brings.
const DEADLY: [i32; 9] = [
    SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
];

/// Listens to signals from now on.
pub(in crate::top) fn watch_signals(inputs: SyncSender<Input>) -> io::Result<()> {
    let handled = [SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH];
    // The last two come to who uses the terminal from behind, which is not done here but in the
    // moment in which somebody else comes to the front. They would stop every thread, also the one
    // that is to end this program.
    let mut signals = Signals::new(handled.into_iter().chain(DEADLY).chain([SIGTTIN, SIGTTOU]))?;
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
                end(&inputs, signal);
            } else if inputs.send(Input::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(body)
        .map(drop)
}

/// Ends this program as the signal does by default; its parent sees the signal.
pub(in crate::top) fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    // What is none of the signals above has no default that ends a program.
    std::process::exit(1);
}

/// Asks for the end. A terminal that takes nothing any more holds up the one who draws, but not the
/// end.
fn end(inputs: &SyncSender<Input>, signal: Signal) {
    let begun = Instant::now();
    while inputs.try_send(Input::Signal(signal)).is_err() && begun.elapsed() < PATIENCE {
        thread::sleep(POLL_INTERVAL);
    }
    thread::sleep(PATIENCE.saturating_sub(begun.elapsed()));
    screen::leave_in_a_hurry();
    match signal {
        Signal::Die(number) => die(number),
        _ => std::process::exit(1),
    }
}
