//! The audit log: a line without secrets for each change by a client, and for each refused one.

use std::{
    mem,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpumon_probe::owner::clean_line;
use tokio::time::Instant;

use crate::{
    auth::{Client, Rate, RatePerClient, place},
    lock,
    peer::Peer,
    refused_credentials::{Credential, RefusedCredentials},
};

/// The maximum number of characters in the description of an action.
const LONGEST: usize = 200;

/// Logs an action of a client, such as `started run 1-2: copy`.
pub(crate) async fn note(client: &Client, what: &str) {
    let what: String = clean_line(what).chars().take(LONGEST).collect();
    tracing::info!("audit: {} {what}", client.label().await);
}

/// The log of wrong tokens and passwords. The number of lines is limited, but all refusals are
/// counted.
pub(crate) struct RefusalLog {
    told: RatePerClient<()>,
    untold: Mutex<u64>,
    counts: Arc<RefusedCredentials>,
}

/// The rate limit of the log: 20 lines at once, and then one every six seconds.
const LINES: Rate = Rate {
    burst: 20,
    spacing: Duration::from_secs(6),
};

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self {
            told: RatePerClient::new(),
            untold: Mutex::new(0),
            counts: Arc::default(),
        }
    }

    pub(crate) fn counts(&self) -> Arc<RefusedCredentials> {
        Arc::clone(&self.counts)
    }

    /// Counts and logs a refusal. `proxy` is the address of the proxy that reported the client's
    /// address.
    pub(crate) fn note(&self, credential: Credential, client: Peer, proxy: Option<IpAddr>) {
        self.counts.count(credential);
        let mut untold = lock::lock(&self.untold);
        if self.told.admit((), LINES, Instant::now()).is_err() {
            *untold += 1;
            return;
        }
        let through = proxy
            .map(|proxy| format!(" through the proxy at {proxy}"))
            .unwrap_or_default();
        let more = match mem::take(&mut *untold) {
            0 => String::new(),
            count => format!(" (and {count} more since the last such line)"),
        };
        tracing::info!(
            "audit: a wrong {credential} from {}{through} was refused{more}",
            place(client)
        );
    }
}
