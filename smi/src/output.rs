//! The output of rounds: the destination of their text, the repetition of headings, and the ticker
//! that starts each round.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
    process,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::safe_file;
use signal_hook::{consts::SIGINT, iterator::Signals};

use super::Refusal;

/// Standard output, or the file given with `-f`.
pub(crate) struct Output(Box<dyn Write>);

impl Output {
    pub(crate) fn to_stdout() -> Self {
        Self(Box::new(io::stdout()))
    }

    /// Opens and empties the file at `path`, or uses standard output if no path is given. As in
    /// nvidia-smi, the wording of the error depends on whether the output is that of a query.
    pub(crate) fn open(path: Option<&Path>, is_query: bool) -> Result<Self, Refusal> {
        let Some(path) = path else {
            return Ok(Self::to_stdout());
        };
        let log_file = if is_query { "log file" } else { "the log file" };
        let failed = |_| {
            Refusal::new(
                255,
                format!("Failed to create {log_file} {}\n\n", path.display()),
            )
        };
        Ok(Self(Box::new(
            safe_file::create_empty(path).map_err(failed)?,
        )))
    }

    /// Writes and flushes a complete round, so that a reader never has to wait for the rest of it.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}

/// An output for rows that are added again and again. The heading is written before the first row,
/// and again after each `every` rows.
pub(crate) struct ScrollingOutput<'a> {
    output: Box<dyn Write + 'a>,
    heading: String,
    every: usize,
    rows: Option<usize>,
}

impl<'a> ScrollingOutput<'a> {
    /// Creates an output that writes to `output`, or to a new file if `file` is set.
    pub(crate) fn new(
        output: &'a mut dyn Write,
        file: Option<&str>,
        heading: String,
        every: usize,
    ) -> io::Result<Self> {
        let output: Box<dyn Write + 'a> = match file {
            Some(path) => Box::new(BufWriter::new(safe_file::create_empty(Path::new(path))?)),
            None => Box::new(output),
        };
        Ok(Self {
            output,
            heading,
            every,
            rows: None,
        })
    }

    /// Writes all rows of a round together, so that a reader always sees complete rounds.
    pub(crate) fn write_round(&mut self, rows: &[String]) -> io::Result<()> {
        let mut text = String::new();
        if self.rows.is_none_or(|rows| rows >= self.every) {
            text.push_str(&self.heading);
            self.rows = Some(0);
        }
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        self.rows = self.rows.map(|before| before + rows.len());
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }
}

/// The maximum time that a round may continue after SIGINT. It ensures that a hanging driver call
/// cannot keep the process alive.
const INTERRUPT_GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A ticker for loops that run until the user presses Ctrl-C. It waits for the next round, or until
/// SIGINT arrives.
pub(crate) struct Ticker {
    interval: Duration,
    next: Instant,
    interrupted: Receiver<()>,
}

impl Ticker {
    /// Starts the first round. From this call on, SIGINT ends the loop after the current round. If
    /// the round does not end in time, SIGINT ends the process with exit code 0, as in nvidia-smi.
    pub(crate) fn start(interval: Duration) -> io::Result<Self> {
        // The signal handler is registered before the thread starts, so that no signal is missed.
        let mut signals = Signals::new([SIGINT])?;
        let (sender, interrupted) = mpsc::channel();
        thread::Builder::new()
            .name("interrupt".to_owned())
            .spawn(move || {
                if signals.forever().next().is_some() && sender.send(()).is_ok() {
                    thread::sleep(INTERRUPT_GRACE_PERIOD);
                    // Sending fails if the loop has already ended.
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
    /// intervals, regardless of how long they take. If a round is still running when the next one
    /// should start, the next one is skipped.
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
    fn output_heading_repeats_after_44_rows() {
        let mut output = Vec::new();
        let mut scroll = ScrollingOutput::new(&mut output, None, "#\n".to_owned(), 44).unwrap();
        for _ in 0..23 {
            scroll
                .write_round(&["a".to_owned(), "b".to_owned()])
                .unwrap();
        }
        drop(scroll);
        let text = String::from_utf8(output).unwrap();
        let headings: Vec<_> = text
            .lines()
            .enumerate()
            .filter(|(_, line)| *line == "#")
            .map(|(number, _)| number)
            .collect();
        assert_eq!(headings, [0, 45]);
    }

    #[test]
    fn output_loop_continues_until_sigint() {
        let mut ticker = Ticker::start(Duration::from_millis(1)).unwrap();
        assert!(ticker.wait_for_next());
        ticker.next = Instant::now() + Duration::from_mins(10);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)
            .unwrap();
        assert!(!ticker.wait_for_next());
    }
}
