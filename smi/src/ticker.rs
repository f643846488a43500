//! The ticks of a loop, until Ctrl-C.

use std::{
    io, process,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use signal_hook::{consts::SIGINT, iterator::Signals};

/// How long a round may go on after SIGINT. A driver that hangs does not keep the process.
const GRACE: Duration = Duration::from_millis(500);

/// Waits between rounds, until SIGINT.
pub(crate) struct Ticker {
    interval: Duration,
    next: Instant,
    interrupted: Receiver<()>,
}

impl Ticker {
    /// Starts the first round. From here on SIGINT ends the loop between two rounds, and the
    /// process with exit code 0 where a round does not end, as nvidia-smi does.
    pub(crate) fn start(interval: Duration) -> io::Result<Self> {
        // Registered before the thread starts, so that no signal comes too early.
        let mut signals = Signals::new([SIGINT])?;
        let (sender, interrupted) = mpsc::channel();
        thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(move || {
                if signals.forever().next().is_some() && sender.send(()).is_ok() {
                    thread::sleep(GRACE);
                    // Nobody listens where the loop has come to its end.
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

    /// Waits for the next round. Rounds keep their distance from the first one, however long each
    /// takes; one that was missed is left out. `false` after SIGINT.
    pub(crate) fn next(&mut self) -> bool {
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
    fn rounds_go_on_until_sigint() {
        let mut ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        assert!(ticker.next());
        ticker.next = Instant::now() + Duration::from_mins(10);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)
            .unwrap();
        assert!(!ticker.next());
    }
}
