//! The audit log. It has one line, without secrets, for each change that a client makes and for
//! each change that is refused. Wrong credentials are also counted.

use std::{
    fmt, mem,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use gpumon_probe::owner::clean_line;
use tokio::time::Instant;

use crate::{
    auth::{Client, Rate, RatePerClient, format_peer},
    lock,
    peer::Peer,
};

/// The maximum number of characters in the description of an action.
const MAX_ACTION_CHARS: usize = 200;

/// The rate limit of log lines about wrong credentials: a burst of 20 lines, then one line every
/// six seconds.
const REFUSAL_LINE_RATE: Rate = Rate {
    burst: 20,
    spacing: Duration::from_secs(6),
};

/// Logs an action of a client, such as `started run 1-2: copy`.
pub(crate) async fn log_action(client: &Client, what: &str) {
    let what: String = clean_line(what).chars().take(MAX_ACTION_CHARS).collect();
    tracing::info!("audit: {} {what}", client.log_label().await);
}

/// The log of wrong tokens and passwords. The number of log lines is limited, but every refusal is
/// counted.
pub(crate) struct RefusalLog {
    logged: RatePerClient<()>,
    unlogged: Mutex<u64>,
    pub(crate) counts: Arc<RefusedCredentials>,
}

impl RefusalLog {
    pub(crate) fn new() -> Self {
        Self {
            logged: RatePerClient::new(),
            unlogged: Mutex::new(0),
            counts: Arc::default(),
        }
    }

    /// Counts and logs a refusal. `proxy` is the address of the proxy that reported the address of
    /// `client`.
    pub(crate) fn log_refusal(&self, credential: Credential, client: Peer, proxy: Option<IpAddr>) {
        self.counts.count_refusal(credential);
        let mut unlogged = lock::lock(&self.unlogged);
        if self
            .logged
            .admit((), REFUSAL_LINE_RATE, Instant::now())
            .is_err()
        {
            *unlogged += 1;
            return;
        }
        let through = proxy
            .map(|proxy| format!(" through the proxy at {proxy}"))
            .unwrap_or_default();
        let more = match mem::take(&mut *unlogged) {
            0 => String::new(),
            count => format!(" (and {count} more since the last such message)"),
        };
        tracing::info!(
            "audit: a wrong {credential} from {}{through} was rejected{more}",
            format_peer(client)
        );
    }
}

/// The kinds of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    Token,
    Password,
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token => "token",
            Self::Password => "password",
        })
    }
}

/// How many wrong tokens and how many wrong passwords were received since the server's start.
#[derive(Debug, Default)]
pub(crate) struct RefusedCredentials {
    tokens: AtomicU64,
    passwords: AtomicU64,
}

impl RefusedCredentials {
    pub(crate) fn count_refusal(&self, credential: Credential) {
        self.counter_for(credential).fetch_add(1, Relaxed);
    }

    /// Returns the number of refusals for each kind of credential.
    pub(crate) fn counts_by_kind(&self) -> [(Credential, u64); 2] {
        [Credential::Token, Credential::Password]
            .map(|kind| (kind, self.counter_for(kind).load(Relaxed)))
    }

    fn counter_for(&self, credential: Credential) -> &AtomicU64 {
        match credential {
            Credential::Token => &self.tokens,
            Credential::Password => &self.passwords,
        }
    }
}
