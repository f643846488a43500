//! Joining the system's server. While that server is available, this server shows its readings
//! instead of reading the GPUs, so that only one process per machine reads them. [`client`]
//! contains the connection and the requests for more history.
//!
//! No private data of other users is passed on, because the system's server only sends data that
//! any user may see. This server adds the details of its own user's processes, in the same way as
//! its own collector would.

pub(crate) mod client;

use std::{convert::Infallible, io, path::PathBuf, sync::Arc, time::Duration};

use gpumon_probe::{
    model::{FiringAlert, Object, Record, read_type},
    own_processes::OwnProcessReader,
};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until},
};

use self::client::{Frames, JoinRefusal, ServerConnection};
use crate::{
    frame::{ClientFrame, CollectorState, CollectorStatus, Hello, INTERVAL_LIMITS_MS},
    history::RETENTION_MS,
    hub::Hub,
};

/// The time limit for reconnecting after the connection was lost. A restarted service is usually
/// available again sooner.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval between attempts to reconnect after the connection was lost.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(250);

/// The duration after which a connection counts as steady.
const STEADY_DURATION: Duration = Duration::from_mins(1);

/// The settings for joining a server.
#[derive(Debug, Clone)]
pub struct JoinSettings {
    /// The socket that the server to join shares with all users.
    pub socket: PathBuf,
    /// The directory from which the user's own processes are read: `/proc` or, in a container, the
    /// mount of the host's `/proc`.
    pub proc_root: PathBuf,
}

/// The connection to the system's server, and the state of the attempts to join it.
pub(crate) struct ServerJoin {
    settings: JoinSettings,
    /// The sampling interval requested by the clients.
    interval: watch::Receiver<Duration>,
    /// The number of clients that are watching the readings.
    watchers: watch::Receiver<usize>,
    attempts: JoinAttempts,
    /// The reason why the last attempt was refused.
    refusal: Option<String>,
    own: Option<OwnProcessReader>,
}

/// The reason for leaving a joined server.
enum LeaveReason {
    /// The connection was lost. The server may be available again soon.
    Lost(String),
    /// The joined server's readings cannot be used.
    Unfit(String),
}

impl ServerJoin {
    pub(crate) fn new(
        settings: JoinSettings,
        interval: watch::Receiver<Duration>,
        watchers: watch::Receiver<usize>,
    ) -> Self {
        Self {
            settings,
            interval,
            watchers,
            attempts: JoinAttempts::new(),
            refusal: None,
            own: None,
        }
    }

    /// Shows the other server's readings as long as that server is available. Returns when this
    /// server should start its own collector. This is immediately the case if there is no other
    /// server, or if the next attempt is not due yet.
    pub(crate) async fn follow_server(&mut self, hub: &Arc<Hub>) {
        if !self.attempts.is_due() {
            return;
        }
        let Some(mut connection) = self.connect().await else {
            return;
        };
        let socket = self.settings.socket.display().to_string();
        tracing::info!("joined the server at {socket}, which reads the GPUs for this server, too");
        let joined = hub.join_server(self.settings.socket.clone());
        let begun = Instant::now();
        let mut give_up = None;
        let why = loop {
            let connected = Instant::now();
            match self.relay_frames(connection, hub).await {
                LeaveReason::Unfit(why) => break why,
                LeaveReason::Lost(why) => {
                    // A connection that lasts only briefly does not extend the time limit.
                    // Otherwise, the limit would never be reached if a server accepts connections
                    // but closes them immediately.
                    let until = give_up.filter(|_| connected.elapsed() < RECONNECT_TIMEOUT);
                    let until = *give_up
                        .insert(until.unwrap_or_else(|| Instant::now() + RECONNECT_TIMEOUT));
                    let message =
                        format!("no connection to the server at {socket} ({why}); retrying");
                    hub.set_collector_state(CollectorState::Restarting, Some(message));
                    match self.connect_until(until).await {
                        Some(again) => connection = again,
                        None => break why,
                    }
                }
            }
        };
        drop(joined);
        self.attempts
            .record_loss(begun.elapsed() >= STEADY_DURATION);
        let seconds = self.attempts.current_pause().as_secs();
        tracing::warn!(
            "left the server at {socket} ({why}): this server reads the GPUs itself, and tries to \
             join again in {seconds} s or later"
        );
    }

    /// Waits until the system's server can be joined.
    pub(crate) async fn wait_until_available(&mut self) {
        loop {
            sleep_until(self.attempts.due).await;
            if self.connect().await.is_some() {
                return;
            }
        }
    }

    /// Connects to the system's server. If the server exists but cannot be joined, this is logged
    /// once. A missing server is not logged.
    async fn connect(&mut self) -> Option<ServerConnection> {
        let refusal = match ServerConnection::open(&self.settings.socket).await {
            Ok(connection) => {
                self.refusal = None;
                return Some(connection);
            }
            Err(JoinRefusal::Absent) => None,
            Err(JoinRefusal::Unfit(why)) => Some(why),
        };
        self.attempts.record_failure(refusal.is_none());
        if let Some(why) = refusal
            .as_ref()
            .filter(|why| self.refusal.as_ref() != Some(why))
        {
            let socket = self.settings.socket.display();
            tracing::warn!(
                "not joining the server at {socket}: {why}; this server reads the GPUs itself"
            );
        }
        self.refusal = refusal;
        None
    }

    async fn connect_until(&self, give_up: Instant) -> Option<ServerConnection> {
        loop {
            if Instant::now() >= give_up {
                return None;
            }
            sleep(RECONNECT_INTERVAL).await;
            match ServerConnection::open(&self.settings.socket).await {
                Ok(connection) => return Some(connection),
                Err(JoinRefusal::Unfit(_) | JoinRefusal::Absent) => {}
            }
        }
    }
}

// Processing of the joined server's frames.

/// The time limit for adding process details to a sample. If this takes longer, the sample is
/// passed on without details.
const DETAILS_TIMEOUT: Duration = Duration::from_millis(200);

impl ServerJoin {
    /// Passes frames on until the connection is lost or the readings cannot be used.
    async fn relay_frames(&mut self, connection: ServerConnection, hub: &Arc<Hub>) -> LeaveReason {
        let ServerConnection { hello, mut frames } = connection;
        match self.relay_until_lost(hello, &mut frames, hub).await {
            Ok(never) => match never {},
            Err(left) => left,
        }
    }

    async fn relay_until_lost(
        &mut self,
        hello: Hello,
        frames: &mut Frames,
        hub: &Arc<Hub>,
    ) -> Result<Infallible, LeaveReason> {
        self.adopt_hello(hello, hub).await?;
        let (mut asked, mut has_traces, mut is_watched) = (None, false, true);
        loop {
            let wanted = interval_frame(*self.interval.borrow_and_update());
            if asked.as_ref() != Some(&wanted) {
                frames.send(&wanted).await.map_err(LeaveReason::Lost)?;
                asked = Some(wanted);
            }
            if has_traces != hub.has_trace_requests() {
                has_traces = !has_traces;
                frames
                    .send(&ClientFrame::Traces { on: has_traces })
                    .await
                    .map_err(LeaveReason::Lost)?;
            }
            if is_watched != (*self.watchers.borrow_and_update() > 0) {
                is_watched = !is_watched;
                frames
                    .send(&ClientFrame::Watching { on: is_watched })
                    .await
                    .map_err(LeaveReason::Lost)?;
            }
            let text = tokio::select! {
                text = frames.next() => text.map_err(LeaveReason::Lost)?,
                Ok(()) = self.interval.changed() => continue,
                Ok(()) = self.watchers.changed() => continue,
            };
            self.process_frame(&text, hub).await?;
        }
    }

    /// Processes the hello frame, and requests the history of the last few minutes.
    async fn adopt_hello(&mut self, mut hello: Hello, hub: &Arc<Hub>) -> Result<(), LeaveReason> {
        if let Some(sample) = hello.sample.take()
            && let (Record::Sample(described), _) =
                self.add_own_process_details(Record::Sample(sample)).await?
        {
            hello.sample = Some(described);
        }
        let (socket, at_ms) = (self.settings.socket.clone(), hello.at_ms);
        let past =
            spawn_blocking(move || client::request_recent_history(&socket, at_ms, RETENTION_MS))
                .await;
        let past = past.map_err(io::Error::other).flatten();
        if let Err(error) = &past {
            tracing::debug!("cannot read the history of the joined server: {error}");
        }
        hub.adopt_server_data(hello, past.ok());
        Ok(())
    }

    async fn process_frame(&mut self, text: &str, hub: &Hub) -> Result<(), LeaveReason> {
        let bad = |error: serde_json::Error| {
            LeaveReason::Unfit(format!(
                "the server runs another version of gpumon; install the same version for both \
                 servers ({error})"
            ))
        };
        let kind = read_type(text).map_err(bad)?.into_owned();
        match &*kind {
            "inventory" | "sample" | "details" | "event" | "trace" => {
                let record = Record::decode(text).map_err(bad)?;
                let is_changed = matches!(record, Record::Sample(_) | Record::Event(_));
                let (record, changed) = if is_changed {
                    self.add_own_process_details(record).await?
                } else {
                    (record, None)
                };
                hub.process_record(changed.as_deref().unwrap_or(text), record, true);
            }
            "alerts" => {
                let firing: Vec<FiringAlert> = Object::parse(text)
                    .and_then(|mut frame| frame.take("firing"))
                    .map_err(bad)?;
                hub.set_joined_firing_alerts(firing);
            }
            "collector" => {
                let status: CollectorStatus = serde_json::from_str(text).map_err(bad)?;
                if status.state == CollectorState::Unavailable {
                    return Err(LeaveReason::Unfit(
                        status
                            .message
                            .unwrap_or_else(|| "the server reads no GPUs".to_owned()),
                    ));
                }
                hub.set_collector_status(status.state, status.message, status.resumes_ms);
            }
            // Other frames, including new kinds from newer servers, are not needed.
            _ => {}
        }
        Ok(())
    }

    /// Adds details of the user's own processes to a record. Returns the record and, if it was
    /// changed, its text. The details are read outside the event loop, because reading processes
    /// can be slow.
    async fn add_own_process_details(
        &mut self,
        record: Record,
    ) -> Result<(Record, Option<String>), LeaveReason> {
        let is_about_processes = match &record {
            Record::Sample(sample) => sample.gpus.iter().any(|gpu| {
                gpu.processes
                    .value()
                    .is_some_and(|processes| !processes.is_empty())
            }),
            _ => true,
        };
        if !is_about_processes {
            return Ok((record, None));
        }
        let (own, proc_root) = (self.own.take(), self.settings.proc_root.clone());
        let patience = DETAILS_TIMEOUT.min(*self.interval.borrow() / 4);
        let described = spawn_blocking(move || {
            let mut own = own.unwrap_or_else(|| OwnProcessReader::new(proc_root));
            let (record, text) = add_process_details(record, &mut own, patience);
            (own, record, text)
        });
        let (own, record, text) = described
            .await
            .map_err(|error| LeaveReason::Unfit(error.to_string()))?;
        self.own = Some(own);
        Ok((record, text))
    }
}

fn add_process_details(
    mut record: Record,
    own: &mut OwnProcessReader,
    patience: Duration,
) -> (Record, Option<String>) {
    let is_changed = match &mut record {
        Record::Sample(sample) => own.fill_own_processes(&mut sample.gpus, patience),
        Record::Event(event) => own.name_event_process(event, patience),
        _ => false,
    };
    let text = is_changed
        .then(|| serde_json::to_string(&record).expect("records can always be serialized"));
    (record, text)
}

fn interval_frame(interval: Duration) -> ClientFrame {
    let (shortest, longest) = INTERVAL_LIMITS_MS.into_inner();
    ClientFrame::Interval {
        ms: u32::try_from(interval.as_millis())
            .unwrap_or(longest)
            .clamp(shortest, longest),
    }
}

// The times of the attempts to join. The more often a server is lost, the longer is the pause
// before it is joined again.

/// The pause before the next attempt if there is no server. Such attempts cost almost nothing.
/// `REFUSED_PAUSE` applies if the server cannot be joined.
const ABSENT_PAUSE: Duration = Duration::from_secs(5);
const REFUSED_PAUSE: Duration = Duration::from_mins(1);

/// The shortest pause before joining again after a lost connection. The pause doubles with each
/// loss, up to `MAX_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_secs(10);
const MAX_PAUSE: Duration = Duration::from_mins(5);

/// The time of the next attempt to join, and the pauses that determine it.
#[derive(Debug)]
struct JoinAttempts {
    due: Instant,
    /// The pause that will follow the next loss of the connection.
    next: Duration,
    waits: Duration,
}

impl JoinAttempts {
    /// Creates the state in which the first attempt is due immediately.
    fn new() -> Self {
        Self {
            due: Instant::now(),
            next: MIN_PAUSE,
            waits: Duration::ZERO,
        }
    }

    fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    /// Returns the pause between the last failure or loss and the next attempt.
    fn current_pause(&self) -> Duration {
        self.waits
    }

    /// Schedules the next attempt after a failed one. `is_absent` is `true` if there was no server,
    /// and `false` if the server cannot be joined.
    fn record_failure(&mut self, is_absent: bool) {
        self.delay_next_attempt(if is_absent {
            ABSENT_PAUSE
        } else {
            REFUSED_PAUSE
        });
    }

    /// Schedules the next attempt after the connection was lost. `was_steady` is `true` if the
    /// connection had lasted for at least `STEADY_DURATION`.
    fn record_loss(&mut self, was_steady: bool) {
        let wait = if was_steady { MIN_PAUSE } else { self.next };
        self.next = (wait * 2).min(MAX_PAUSE);
        self.delay_next_attempt(wait);
    }

    fn delay_next_attempt(&mut self, wait: Duration) {
        (self.waits, self.due) = (wait, Instant::now() + wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unstable_server_is_joined_less_often() {
        let mut attempts = JoinAttempts::new();
        assert!(attempts.is_due());
        let waits = [(); 7].map(|()| {
            attempts.record_loss(false);
            assert!(!attempts.is_due());
            attempts.current_pause().as_secs()
        });
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        attempts.record_loss(true);
        assert_eq!(attempts.current_pause(), MIN_PAUSE);
        attempts.record_failure(true);
        assert_eq!(attempts.current_pause(), ABSENT_PAUSE);
        attempts.record_failure(false);
        assert_eq!(attempts.current_pause(), REFUSED_PAUSE);
    }
}
