//! Who has changed something, and who was not let in: a line in the log for each, without any secret.

use std::{
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use gpumon_probe::owner::clean_line;
use tokio::time::Instant;

use crate::{
    auth::{Client, Rate, RatePerClient, place},
    peer::Peer,
};

/// Characters of what somebody did.
const LONGEST: usize = 200;

/// Tells that this client has done this, as `started run 1-2: copy`.
pub(crate) async fn note(client: &Client, what: &str) {
    let what: String = clean_line(what).chars().take(LONGEST).collect();
    tracing::info!("audit: {} {what}", client.label().await);
}

/// What somebody has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    Token,
    Password,
}

/// How many were refused since the server's start.
#[derive(Debug, Default)]
pub(crate) struct RefusedCredentials {
    tokens: AtomicU64,
    passwords: AtomicU64,
}

impl RefusedCredentials {
    /// Returns the counts by what was shown, `token` or `password`.
    pub(crate) fn by_kind(&self) -> [(&'static str, u64); 2] {
        [("token", self.tokens.load(Relaxed)), ("password", self.passwords.load(Relaxed))]
    }
}

/// The log of wrong tokens and passwords. There may be many, so that the lines are limited, and all are counted.
pub(crate) struct RefusalLog {
    told: RatePerClient<()>,
    untold: Mutex<u64>,
    counts: Arc<RefusedCredentials>,
}

/// Lines: twenty at once, and then one every six seconds.
const LINES: Rate = Rate { burst: 20, spacing: Duration::from_secs(6) };

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self { told: RatePerClient::new(), untold: Mutex::new(0), counts: Arc::default() }
    }

    pub(crate) fn counts(&self) -> Arc<RefusedCredentials> {
        Arc::clone(&self.counts)
    }

    pub(crate) fn note(&self, credential: Credential, peer: Peer) {
        let (count, name) = match credential {
            Credential::Token => (&self.counts.tokens, "token"),
            Credential::Password => (&self.counts.passwords, "password"),
        };
        count.fetch_add(1, Relaxed);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        if self.told.admit((), LINES, Instant::now()).is_err() {
            *untold += 1;
            return;
        }
        let more = match mem::take(&mut *untold) {
            0 => String::new(),
            count => format!(" (and {count} more since the last such line)"),
        };
        tracing::info!("audit: a wrong {name} from {} was refused{more}", place(peer));
    }
}
