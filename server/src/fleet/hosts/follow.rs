//! Keeps the connection to a host, and connects again after each failure.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep},
};

use super::{
    HostsSettings,
    connection::{ConnectionEnd, SshConnection},
    node::{ConnectionStatus, HostNode},
};
use crate::frame::CollectorState;

/// The maximum number of connections that are established at the same time. Each costs milliseconds
/// of CPU time on both sides, and a jump host refuses connections if there are too many.
const MAX_CONNECTING: usize = 16;

/// The time after which a slow connection no longer delays the next one.
const MAX_TURN_DURATION: Duration = Duration::from_millis(200);

/// The pause before the second attempt to connect. Each further failure doubles the pause, up to
/// `MAX_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The duration after which a connection counts as steady, so that the next pause is the shortest
/// again.
const STEADY_DURATION: Duration = Duration::from_secs(30);

/// Returns the semaphore that limits the number of connections being established.
pub(super) fn new_connection_limit() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_CONNECTING))
}

/// Connects to a host again and again until the node's end is signaled.
pub(super) async fn keep_connected(
    node: Arc<HostNode>,
    settings: Arc<HostsSettings>,
    turns: Arc<Semaphore>,
) {
    let mut ended = node.end_signal();
    let mut pause = MIN_PAUSE;
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else {
            return;
        };
        let started = Instant::now();
        let end = connect_once(&node, &settings, turn, &mut ended).await;
        node.set_has_process(false);
        let Some(ConnectionEnd { reason, reached }) = end else {
            return;
        };
        if started.elapsed() >= STEADY_DURATION {
            pause = MIN_PAUSE;
        }
        if node.status()
            != (ConnectionStatus::Failed {
                reason: reason.clone(),
                reached,
            })
        {
            tracing::info!("{reason}");
        }
        node.hub
            .set_collector_state(CollectorState::Unavailable, Some(reason.clone()));
        node.set_status(ConnectionStatus::Failed { reason, reached });
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Connects to the host once, and returns the reason for the connection's end, or `None` if the
/// node was removed.
async fn connect_once(
    node: &HostNode,
    settings: &HostsSettings,
    turn: OwnedSemaphorePermit,
    ended: &mut tokio::sync::watch::Receiver<bool>,
) -> Option<ConnectionEnd> {
    let mut connection = match SshConnection::start(node, settings) {
        Ok(connection) => connection,
        Err(error) => {
            let program = settings.ssh.program.display();
            let reason = format!("cannot start {program}: {error}; install the OpenSSH client");
            return Some(ConnectionEnd {
                reason,
                reached: false,
            });
        }
    };
    node.set_has_process(true);
    let end = tokio::select! {
        biased;
        _ = ended.wait_for(|ended| *ended) => None,
        end = connection.monitor_output(node, turn, MAX_TURN_DURATION) => Some(end),
    };
    connection.end_processes().await;
    end
}
