//! One probe per machine: the server of the system, whose readings this one shows while it is
//! there.
//!
//! - [`attempts`] says when it is tried to join it, so that a server that comes and goes is not
//!   followed each time.
//! - [`client`] is the connection, [`relay`] what becomes of each frame; [`ask`] asks for more of
//!   the past.
//!
//! What is another user's stays there: this server gets what that one tells any user. Of its own
//! user's processes it tells what it finds out itself, as its own collector would.

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

/// A service that is restarted is back by then.
const GRACE: Duration = Duration::from_secs(5);

/// Between two attempts meanwhile.
const AGAIN: Duration = Duration::from_millis(250);

/// A connection that lasted for so long has been a good one.
const STEADY: Duration = Duration::from_mins(1);

/// Which server to join.
#[derive(Debug, Clone)]
pub struct JoinSettings {
    /// The socket that it serves every user at.
    pub socket: PathBuf,
    /// Where this user's own processes are looked up: `/proc`, or the host's where that is mounted
    /// in a container.
    pub proc_root: PathBuf,
}

/// The way to the server of the system.
pub(crate) struct Join {
    settings: JoinSettings,
    /// What the clients want.
    interval: watch::Receiver<Duration>,
    /// How many of them watch.
    watchers: watch::Receiver<usize>,
    attempts: Attempts,
    /// Why it could not be joined last.
    refusal: Option<String>,
    own: Option<OwnProcesses>,
}

/// Why it is followed no longer.
enum Left {
    /// It may be back in a moment.
    Lost(String),
    /// It has nothing to show.
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

    /// Shows what that server tells, for as long as it does. It returns when it is time for a
    /// collector of this server's own: at once where there is no such server, or where it was tried
    /// lately.
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
                    // One that lets nobody stay is given up all the same.
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

    /// Completes when that server can be joined.
    pub(crate) async fn available(&mut self) {
        loop {
            sleep_until(self.attempts.due()).await;
            if self.connect().await.is_some() {
                return;
            }
        }
    }

    /// A server that is not there is none to speak of; one that is there and cannot be joined is,
    /// once.
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
