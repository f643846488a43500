//! For how long a client may read: somebody may sign out, or their token, password or certificate
//! count no more.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{Client, Doors, Identity, Scope};
use crate::{live::Live, public_origin::PublicOrigin};

/// Sessions end by themselves, which nobody is told of.
const LOOK: Duration = Duration::from_secs(5);

/// The leave of one client, for as long as a stream lasts.
pub(crate) struct Leave {
    doors: Arc<Doors>,
    /// Who it is, where that was asked for.
    identity: Option<Arc<Identity>>,
    is_on_port: bool,
    /// By which it may have come.
    public_origins: Arc<[PublicOrigin]>,
    live: watch::Receiver<Live>,
    changes: watch::Receiver<u64>,
    next_look: Instant,
}

impl Leave {
    /// As it is when the client comes.
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

    /// Why it has been taken; waits until it has.
    pub(crate) async fn taken(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                // Where settings cannot change, it never does.
                Ok(()) = self.live.changed() => {}
                () = sleep_until(self.next_look) => self.next_look = Instant::now() + LOOK,
            }
            if let Some(why) = self.why() {
                return why;
            }
        }
    }

    /// One on the port has to come again where it is reached by other addresses now: by its own it
    /// may not be let in any more, and who is a proxy's connection has no user.
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
