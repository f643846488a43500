//! Who has changed something, and who was not let in: a line in the log for each, without any
//! secret.

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

/// Characters of what somebody did.
const LONGEST: usize = 200;

/// Tells that this client has done this, as `started run 1-2: copy`.
pub(crate) async fn note(client: &Client, what: &str) {
    let what: String = clean_line(what).chars().take(LONGEST).collect();
    tracing::info!("audit: {} {what}", client.label().await);
}

/// The log of wrong tokens and passwords. There may be many, so that the lines are limited, and all
/// are counted.
pub(crate) struct RefusalLog {
    told: RatePerClient<()>,
    untold: Mutex<u64>,
    counts: Arc<RefusedCredentials>,
}

/// Lines: twenty at once, and then one every six seconds.
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

    /// Counts a refusal, of a client whose address the proxy has reported, if there is one.
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
