//! Keeps a connection to a host.

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

/// So many connections are made at a time: each takes milliseconds of cryptography here and there,
/// and a host through which all of them go refuses too many.
const AT_A_TIME: usize = 16;

/// One that is slow keeps the next from its turn for no longer.
const TURN: Duration = Duration::from_millis(200);

/// The pause before the next try doubles from the shortest to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that lasted so long starts the pauses anew.
const STEADY: Duration = Duration::from_secs(30);

/// Who may connect now.
pub(super) fn turns() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(AT_A_TIME))
}

/// Connects, again and again, until the node is to be read no more.
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

/// How a connection ended; `None` where it was to.
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
