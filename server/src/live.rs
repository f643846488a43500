//! What can change while the server runs.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    auth::Doors, hub::Hub, public_origin::PublicOrigin, sampling_interval::SamplingInterval,
};

/// Settings that hold from the moment on at which they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Between samples, where no client asks for more of them.
    pub interval: Duration,
    /// Whether `/metrics` tells of processes, too.
    pub process_metrics: bool,
    /// Whether everybody who reaches the port may start and stop runs, and not only the server's
    /// own user.
    pub runs_for_all: bool,
    /// Where browsers reach it through a reverse proxy. With any, nobody at the port counts as the
    /// server's own user.
    pub public_origins: Arc<[PublicOrigin]>,
    /// How large the history on disk may become.
    pub history_bytes: u64,
}

impl Default for Live {
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

impl Live {
    pub(crate) fn is_behind_proxy(&self) -> bool {
        !self.public_origins.is_empty()
    }

    /// Such as never change.
    pub fn fixed(self) -> watch::Receiver<Self> {
        watch::channel(self).1
    }
}

/// Hands on what nobody looks up when it is needed. Never ends.
pub(crate) async fn follow(
    mut live: watch::Receiver<Live>,
    interval: Arc<SamplingInterval>,
    hub: Arc<Hub>,
    doors: Arc<Doors>,
) {
    while live.changed().await.is_ok() {
        let now = live.borrow_and_update().clone();
        interval.set_base(now.interval);
        hub.limit_history(now.history_bytes);
        doors.let_users_run(now.runs_for_all);
    }
    pending::<()>().await;
}
