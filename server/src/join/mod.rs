//! Joining the system's server. While it is available, this server shows its readings, so that only
//! one process per machine reads the GPUs.
//!
//! - [`attempts`] decides when to try to join, so that a server that restarts frequently is not
//!   joined each time.
//! - [`client`] is the connection, [`relay`] processes its frames, and [`ask`] requests more
//!   history.
//!
//! No private data of other users is passed on, because the system's server only sends data that
//! any user may see. This server adds the details of its own user's processes itself, as its own
//! collector would.

pub(crate) mod ask;
mod attempts;
mod client;
mod relay;

use std::{path::PathBuf, sync::Arc, time::Duration};

use gpumon_probe::own_processes::OwnProcessReader;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use self::{
    attempts::Attempts,
    client::{JoinRefusal, ServerConnection},
};
use crate::{frame::CollectorState, hub::Hub};

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
    /// The number of clients that are watching.
    watchers: watch::Receiver<usize>,
    attempts: Attempts,
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
            attempts: Attempts::new(),
            refusal: None,
            own: None,
        }
    }

    /// Shows the other server's readings as long as it is available. Returns when this server
    /// should start its own collector. If there is no other server or the next attempt is not due,
    /// it returns immediately.
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
                    // The time limit also covers a server that accepts connections but closes them
                    // immediately.
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
            sleep_until(self.attempts.due_time()).await;
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
