//! A ticker for loops that run until the user presses Ctrl-C.

use std::{
    io, process,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use signal_hook::{consts::SIGINT, iterator::Signals};

/// The maximum time that a round may continue after SIGINT. It ensures that a hanging driver call
/// cannot keep the process alive.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A ticker that waits for the next round, or until SIGINT arrives.
pub(crate) struct Ticker {
    interval: Duration,
    next: Instant,
    interrupted: Receiver<()>,
}

impl Ticker {
    /// Starts the first round. From this call on, SIGINT ends the loop between two rounds. If a
    /// round does not end in time, SIGINT ends the process with exit code 0, as in nvidia-smi.
    pub(crate) fn start(interval: Duration) -> io::Result<Self> {
        // The signal handler is registered before the thread starts, so that no signal is missed.
        let mut signals = Signals::new([SIGINT])?;
        let (sender, interrupted) = mpsc::channel();
        thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(move || {
                if signals.forever().next().is_some() && sender.send(()).is_ok() {
                    thread::sleep(GRACE_PERIOD);
                    // If the loop has already ended, sending fails.
                    if sender.send(()).is_ok() {
                        process::exit(0);
                    }
                }
            })?;
        Ok(Self {
            interval,
            next: Instant::now() + interval,
            interrupted,
        })
    }

    /// Waits for the next round. Returns `false` if SIGINT has arrived. Rounds start at fixed
    /// intervals, regardless of how long they take. If a round takes too long, the rounds that it
    /// overlaps are skipped.
    pub(crate) fn wait_for_next(&mut self) -> bool {
        let now = Instant::now();
        while self.next < now {
            self.next += self.interval;
        }
        let goes_on =
            self.interrupted.recv_timeout(self.next - now) == Err(RecvTimeoutError::Timeout);
        self.next += self.interval;
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_continue_until_sigint() {
        let mut ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        assert!(ticker.wait_for_next());
        ticker.next = Instant::now() + Duration::from_mins(10);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)
            .unwrap();
        assert!(!ticker.wait_for_next());
    }
}
