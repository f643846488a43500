//! The thread that reads the host. It is separate, because its readings can hang, for example on a
//! dead disk.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    time::{Duration, Instant},
};

use super::{
    Options, SharedInterval,
    attention::{HOST_STEP_MS, Steps, Watched},
    threads::spawn,
};
use crate::{host::HostReader, model::HostSample, vendor::SourceError};

/// The minimum age of a reading before the host is read again, slightly less than a second to
/// tolerate early ticks.
const FRESH: Duration = Duration::from_millis(900);

/// A worker that reads the host on its own thread.
pub(super) struct HostWorker {
    ask: SyncSender<()>,
    answers: Receiver<HostSample>,
    latest: HostSample,
    asked: Option<Instant>,
    state: State,
    interval: Arc<SharedInterval>,
    watched: Arc<Watched>,
    steps: Steps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// All queries have been answered.
    Free,
    /// The thread was asked at this tick.
    Asked,
    /// The answer to an earlier query is missing. The sampler does not wait for it, because that
    /// would delay the readings of GPUs.
    Late,
}

impl HostWorker {
    /// Reads the host once, so that there is always a latest reading, and starts the thread. If
    /// this first reading hangs, nothing starts, which the supervisor notices.
    pub(super) fn start(options: &Options) -> Result<Self, SourceError> {
        let mut reader = HostReader::new();
        let latest = reader.read();
        let (ask, asked) = mpsc::sync_channel(1);
        let (answer, answers) = mpsc::channel();
        spawn("host", move || {
            while asked.recv().is_ok() && answer.send(reader.read()).is_ok() {}
        })?;
        let (interval, watched) = (Arc::clone(&options.interval), Arc::clone(&options.watched));
        let steps = Steps::new(HOST_STEP_MS);
        Ok(Self {
            ask,
            answers,
            latest,
            asked: None,
            state: State::Free,
            interval,
            watched,
            steps,
        })
    }

    /// Requests a reading, unless an answer is pending, or the latest reading is new enough.
    pub(super) fn ask(&mut self) {
        self.ingest(self.answers.try_recv().ok());
        let is_due = self.is_due();
        self.state = match self.state {
            State::Free if is_due && self.ask.try_send(()).is_ok() => State::Asked,
            State::Free => State::Free,
            State::Asked | State::Late => State::Late,
        };
        if self.state == State::Asked {
            self.asked = Some(Instant::now());
        }
    }

    fn is_due(&mut self) -> bool {
        if self.watched.get() {
            self.asked.is_none_or(|asked| asked.elapsed() >= FRESH)
        } else {
            self.steps.close(self.interval.get())
        }
    }

    /// Waits for the answer to this tick's query.
    pub(super) fn wait(&mut self, deadline: Instant) {
        if self.state == State::Asked {
            self.ingest(
                self.answers
                    .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                    .ok(),
            );
        }
    }

    /// Returns the newest reading.
    pub(super) fn latest(&self) -> HostSample {
        self.latest.clone()
    }

    fn ingest(&mut self, answer: Option<HostSample>) {
        if let Some(sample) = answer {
            self.latest = sample;
            self.state = State::Free;
        }
    }
}
