//! The settings that can change while the server runs.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    auth::AccessPolicy, hub::Hub, public_origin::PublicOrigin, sampling::SamplingInterval,
};

/// Settings that take effect as soon as they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSettings {
    /// The sampling interval if no client requests a shorter one.
    pub interval: Duration,
    /// Whether `/metrics` includes metrics of processes.
    pub process_metrics: bool,
    /// Whether all clients on the port may start and stop runs, instead of only the server's own
    /// user.
    pub runs_for_all: bool,
    /// The addresses of reverse proxies through which browsers reach the server. If there are any,
    /// no client on the port counts as the server's own user.
    pub public_origins: Arc<[PublicOrigin]>,
    /// The size limit of the history on disk, in bytes.
    pub history_bytes: u64,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            process_metrics: false,
            runs_for_all: false,
            public_origins: Arc::default(),
            history_bytes: u64::MAX,
        }
    }
}

impl LiveSettings {
    pub(crate) fn is_behind_proxy(&self) -> bool {
        !self.public_origins.is_empty()
    }

    /// Returns settings that never change.
    pub fn into_constant_receiver(self) -> watch::Receiver<Self> {
        watch::channel(self).1
    }
}

/// Passes changed settings on to the components that keep their own copies. This function never
/// returns.
pub(crate) async fn apply_changes(
    mut live: watch::Receiver<LiveSettings>,
    interval: Arc<SamplingInterval>,
    hub: Arc<Hub>,
    policy: Arc<AccessPolicy>,
) {
    while live.changed().await.is_ok() {
        let now = live.borrow_and_update().clone();
        interval.set_base_interval(now.interval);
        hub.set_history_size_limit(now.history_bytes);
        policy.set_user_run_permission(now.runs_for_all);
    }
    pending::<()>().await;
}
