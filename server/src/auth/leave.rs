//! The permission of a client to continue reading. It ends when the client signs out, or when its
//! credentials expire or are revoked.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{Client, Doors, Identity, Scope};
use crate::{live::Live, public_origin::PublicOrigin};

/// The interval of checks for expired sessions, for which there is no notification.
const LOOK: Duration = Duration::from_secs(5);

/// The permission of one client for the duration of a stream.
pub(crate) struct Leave {
    doors: Arc<Doors>,
    /// The identity, if a sign-in was required.
    identity: Option<Arc<Identity>>,
    is_on_port: bool,
    /// The public origins at the time when the client connected.
    public_origins: Arc<[PublicOrigin]>,
    live: watch::Receiver<Live>,
    changes: watch::Receiver<u64>,
    next_look: Instant,
}

impl Leave {
    /// Returns the permission of a client that connects.
    pub(crate) fn new(client: &Client, doors: &Arc<Doors>, live: &watch::Receiver<Live>) -> Self {
        Self {
            doors: Arc::clone(doors),
            identity: client.identity.clone(),
            is_on_port: client.peer.is_port(),
            public_origins: Arc::clone(&live.borrow().public_origins),
            live: live.clone(),
            changes: doors.changes(),
            next_look: Instant::now() + LOOK,
        }
    }

    /// Waits until the permission ends, and returns the reason.
    pub(crate) async fn taken(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                // This branch never completes if the settings cannot change.
                Ok(()) = self.live.changed() => {}
                () = sleep_until(self.next_look) => self.next_look = Instant::now() + LOOK,
            }
            if let Some(why) = self.why() {
                return why;
            }
        }
    }

    /// Returns the reason if the permission has ended. After a change of the public origins,
    /// clients on a port must connect again: their address may no longer be allowed, or their
    /// connection may be that of a proxy, whose user is not the client.
    fn why(&self) -> Option<&'static str> {
        let may_read = match &self.identity {
            Some(identity) => self.doors.scope_of(&identity.proof) >= Some(Scope::Read),
            None => !(self.is_on_port && self.doors.asks()),
        };
        let is_reached_as_before =
            !self.is_on_port || self.live.borrow().public_origins == self.public_origins;
        match (may_read, is_reached_as_before) {
            (true, true) => None,
            (true, false) => Some("connect again"),
            (false, _) => Some("sign in again"),
        }
    }
}
