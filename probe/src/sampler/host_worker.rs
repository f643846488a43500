//! The thread that reads the host. A separate thread is used because readings of the host can hang,
//! for example on a failed disk.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender},
    },
    time::{Duration, Instant},
};

use super::{
    Options, SharedInterval,
    attention::{HOST_STEP_MS, Steps, WatchFlag},
    threads::spawn,
};
use crate::{host::HostReader, model::HostSample, vendor::SourceError};

/// The minimum age of the latest reading before the host is read again. This is slightly less than
/// a second to tolerate early ticks.
const MIN_AGE: Duration = Duration::from_millis(900);

/// A worker that reads the host on its own thread.
pub(super) struct HostWorker {
    ask: SyncSender<()>,
    answers: Receiver<HostSample>,
    latest: HostSample,
    asked: Option<Instant>,
    state: State,
    interval: Arc<SharedInterval>,
    watched: Arc<WatchFlag>,
    steps: Steps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// All queries have been answered.
    Free,
    /// The host was queried at this tick.
    Asked,
    /// An earlier query has not been answered yet. The sampler does not wait for the response,
    /// because that would delay the readings of GPUs.
    Late,
}

impl HostWorker {
    /// Reads the host once, so that there is always a latest reading, and starts the thread. If
    /// this first reading hangs, nothing is started, which the supervisor detects.
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

    /// Requests a reading, unless a query is pending or the latest reading is new enough.
    pub(super) fn request_reading(&mut self) {
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
        if self.watched.is_watched() {
            self.asked.is_none_or(|asked| asked.elapsed() >= MIN_AGE)
        } else {
            self.steps.closes_step(self.interval.get())
        }
    }

    /// Waits for the response to the current tick's query.
    pub(super) fn wait_for_reading(&mut self, deadline: Instant) {
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
