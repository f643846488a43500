//! Signals, which a separate thread handles.

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
/// How often the thread retries to send while the input queue is full.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The other signals that end a program by default, except those caused by the program's own
/// faults.
const DEADLY: [i32; 9] = [
    SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ,
];

/// Starts handling signals.
pub(in crate::top) fn watch_signals(inputs: SyncSender<Input>) -> io::Result<()> {
    let handled = [SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH];
    // The kernel sends SIGTTIN and SIGTTOU to a background program that uses the terminal. That
    // happens here only if another program comes to the foreground at that moment. By default, they
    // would stop all threads, including the one that ends this program.
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

/// Ends this program by the signal's default action, which the parent process sees.
pub(in crate::top) fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    // Signals other than those above do not end a program by default.
    std::process::exit(1);
}

/// Asks the screen to end, and then ends the program. A terminal that accepts no output blocks the
/// thread that draws, but not this one.
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
