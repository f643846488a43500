//! Joining the server of the system. This server shows its readings while it is available, so that
//! only one process per machine reads the GPUs.
//!
//! - [`attempts`] decides when to try, so that a server with frequent restarts is not joined each
//!   time.
//! - [`client`] is the connection, [`relay`] processes its frames, [`ask`] requests more history.
//!
//! Private data of other users is not passed on, because the system's server sends this one only
//! data that any user may see. Data about its own user's processes is read by this server itself,
//! as by a collector of its own.

pub(crate) mod ask;
mod attempts;
mod client;
mod relay;

use std::{path::PathBuf, sync::Arc, time::Duration};

use gpumon_probe::own_processes::OwnProcesses;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use self::{
    attempts::Attempts,
    client::{Connection, Refused},
};
use crate::{frame::CollectorState, hub::Hub};

/// The time for which a lost connection is retried. A restarted service is available again by then.
const GRACE: Duration = Duration::from_secs(5);

/// The time between these attempts.
const AGAIN: Duration = Duration::from_millis(250);

/// The duration after which a connection counts as steady.
const STEADY: Duration = Duration::from_mins(1);

/// The settings for joining a server.
#[derive(Debug, Clone)]
pub struct JoinSettings {
    /// The socket that the other server shares with all users.
    pub socket: PathBuf,
    /// The directory for reading the user's own processes: `/proc`, or the mount of the host's in a
    /// container.
    pub proc_root: PathBuf,
}

/// The connection to the system's server, and its attempts.
pub(crate) struct Join {
    settings: JoinSettings,
    /// The sampling interval that the clients request.
    interval: watch::Receiver<Duration>,
    /// The number of clients that watch.
    watchers: watch::Receiver<usize>,
    attempts: Attempts,
    /// The reason why the last attempt was refused.
    refusal: Option<String>,
    own: Option<OwnProcesses>,
}

/// The reason why a joined server is left.
enum Left {
    /// The connection was lost, and may be available again soon.
    Lost(String),
    /// The server's readings cannot be used.
    Unfit(String),
}

impl Join {
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

    /// Shows the other server's readings as long as it is available. Returns when this server's own
    /// collector should be started: at once if there is no other server, or if the next attempt is
    /// not due.
    pub(crate) async fn follow(&mut self, hub: &Arc<Hub>) {
        if !self.attempts.is_due() {
            return;
        }
        let Some(mut connection) = self.connect().await else {
            return;
        };
        let socket = self.settings.socket.display().to_string();
        tracing::info!("joined the server at {socket}: it reads the GPUs for this one, too");
        let joined = hub.join(self.settings.socket.clone());
        let begun = Instant::now();
        let mut give_up = None;
        let why = loop {
            let connected = Instant::now();
            match self.relay(connection, hub).await {
                Left::Unfit(why) => break why,
                Left::Lost(why) => {
                    // The time limit also applies to a server that accepts connections but closes
                    // them at once.
                    let until = give_up.filter(|_| connected.elapsed() < GRACE);
                    let until = *give_up.insert(until.unwrap_or_else(|| Instant::now() + GRACE));
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
        self.attempts.lost(begun.elapsed() >= STEADY);
        let seconds = self.attempts.wait().as_secs();
        tracing::warn!(
            "left the server at {socket} ({why}): reading the GPUs here; joining it again in {seconds} s or later"
        );
    }

    /// Waits until the other server can be joined.
    pub(crate) async fn available(&mut self) {
        loop {
            sleep_until(self.attempts.due()).await;
            if self.connect().await.is_some() {
                return;
            }
        }
    }

    /// Connects to the server. A server that exists but cannot be joined is logged once; a missing
    /// one is not.
    async fn connect(&mut self) -> Option<Connection> {
        let refusal = match Connection::open(&self.settings.socket).await {
            Ok(connection) => {
                self.refusal = None;
                return Some(connection);
            }
            Err(Refused::Absent) => None,
            Err(Refused::Unfit(why)) => Some(why),
        };
        self.attempts.failed(refusal.is_none());
        if let Some(why) = refusal
            .as_ref()
            .filter(|why| self.refusal.as_ref() != Some(why))
        {
            let socket = self.settings.socket.display();
            tracing::warn!("not joining the server at {socket}: {why}; reading the GPUs here");
        }
        self.refusal = refusal;
        None
    }

    async fn connect_until(&self, give_up: Instant) -> Option<Connection> {
        loop {
            if Instant::now() >= give_up {
                return None;
            }
            sleep(AGAIN).await;
            match Connection::open(&self.settings.socket).await {
                Ok(connection) => return Some(connection),
                Err(Refused::Unfit(_) | Refused::Absent) => {}
            }
        }
    }
}
