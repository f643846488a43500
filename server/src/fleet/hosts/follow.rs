//! Connecting to a host, again and again.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep},
};

use super::{
    HostsSettings,
    connection::{Connection, End},
    node::{HostNode, Status},
};
use crate::frame::CollectorState;

/// The maximum number of connections that are established at the same time. Each costs milliseconds
/// of CPU time on both sides, and a jump host refuses too many.
const AT_A_TIME: usize = 16;

/// The time after which a slow connection no longer delays the next one.
const TURN: Duration = Duration::from_millis(200);

/// The pauses before a new attempt, which double from the shortest to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The duration of a connection after which the pauses start again from the shortest.
const STEADY: Duration = Duration::from_secs(30);

/// Returns the semaphore that limits how many connections are established at the same time.
pub(super) fn turns() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(AT_A_TIME))
}

/// Connects to a host again and again until the node is ended.
pub(super) async fn follow(
    node: Arc<HostNode>,
    settings: Arc<HostsSettings>,
    turns: Arc<Semaphore>,
) {
    let mut ended = node.ended();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else {
            return;
        };
        let started = Instant::now();
        let end = run_once(&node, &settings, turn, &mut ended).await;
        node.set_has_process(false);
        let Some(End { reason, reached }) = end else {
            return;
        };
        if started.elapsed() >= STEADY {
            pause = SHORTEST_PAUSE;
        }
        if node.status()
            != (Status::Failed {
                reason: reason.clone(),
                reached,
            })
        {
            tracing::info!("{reason}");
        }
        node.hub
            .set_collector_state(CollectorState::Unavailable, Some(reason.clone()));
        node.set_status(Status::Failed { reason, reached });
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Connects once, and returns the reason for the end of the connection. Returns `None` if the node
/// was ended.
async fn run_once(
    node: &HostNode,
    settings: &HostsSettings,
    turn: OwnedSemaphorePermit,
    ended: &mut tokio::sync::watch::Receiver<bool>,
) -> Option<End> {
    let mut connection = match Connection::start(node, settings) {
        Ok(connection) => connection,
        Err(error) => {
            let program = settings.ssh.program.display();
            let reason = format!("cannot start {program}: {error}; install the client of OpenSSH");
            return Some(End {
                reason,
                reached: false,
            });
        }
    };
    node.set_has_process(true);
    let end = tokio::select! {
        biased;
        _ = ended.wait_for(|ended| *ended) => None,
        end = connection.monitor(node, turn, TURN) => Some(end),
    };
    connection.end().await;
    end
}
