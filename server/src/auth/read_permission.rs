//! A client's permission to continue reading. The permission ends when the client signs out, or
//! when the client's credentials expire or are revoked.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{AccessPolicy, Client, Identity, Scope};
use crate::{live::LiveSettings, public_origin::PublicOrigin};

/// The interval at which streams check whether their session has expired. Nothing notifies them of
/// it.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The permission of one client for the duration of a stream.
pub(crate) struct ReadPermission {
    policy: Arc<AccessPolicy>,
    /// The client's identity, or `None` if no sign-in was required.
    identity: Option<Arc<Identity>>,
    is_on_port: bool,
    /// The public origins at the time when the client connected.
    public_origins: Arc<[PublicOrigin]>,
    live: watch::Receiver<LiveSettings>,
    changes: watch::Receiver<u64>,
    next_look: Instant,
}

impl ReadPermission {
    /// Creates the permission of a client that is connecting.
    pub(crate) fn new(
        client: &Client,
        policy: &Arc<AccessPolicy>,
        live: &watch::Receiver<LiveSettings>,
    ) -> Self {
        Self {
            policy: Arc::clone(policy),
            identity: client.identity.clone(),
            is_on_port: client.peer.uses_port(),
            public_origins: Arc::clone(&live.borrow().public_origins),
            live: live.clone(),
            changes: policy.subscribe_changes(),
            next_look: Instant::now() + CHECK_INTERVAL,
        }
    }

    /// Waits until the permission ends, and returns the reason.
    pub(crate) async fn wait_for_end(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.changes.changed() => {}
                // This branch never completes if the settings cannot change.
                Ok(()) = self.live.changed() => {}
                () = sleep_until(self.next_look) => self.next_look = Instant::now() + CHECK_INTERVAL,
            }
            if let Some(why) = self.end_reason() {
                return why;
            }
        }
    }

    /// Returns the reason if the permission has ended. After a change of the public origins,
    /// clients on a port must connect again: their address may no longer be allowed, or the
    /// connection may now count as a proxy's, so that its user is not the client.
    fn end_reason(&self) -> Option<&'static str> {
        let may_read = match &self.identity {
            Some(identity) => self.policy.current_scope(&identity.proof) >= Some(Scope::Read),
            None => !(self.is_on_port && self.policy.requires_sign_in()),
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
