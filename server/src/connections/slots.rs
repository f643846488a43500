//! Slots that limit the number of connections, in total and per user, and the choice of the
//! connection that is closed if there are too many.
//!
//! An idle connection costs its client nothing, so it must not take a slot from others. When a
//! limit is reached, a new connection replaces the one that has been idle for the longest time.
//!
//! Connections in use are never closed. A user of rootless containers has thousands of user IDs,
//! each with its own limit, and could therefore occupy all slots. For this reason, some slots are
//! reserved for the server's own user and root.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use rustix::process::{Resource, getrlimit};
use tokio::{sync::Notify, time::Instant};
use tokio_util::task::TaskTracker;

use crate::{
    lock,
    peer::{PeerKey, is_server_user_or_root},
};

/// The number of file descriptors reserved for other uses: restarts of the collector, runs, and
/// files.
const RESERVED_DESCRIPTORS: u64 = 64;

/// The assumed limit of file descriptors if the system has none.
const DEFAULT_DESCRIPTORS: u64 = 65_536;

pub(crate) struct ConnectionTable {
    max: usize,
    /// The limit per user, or per address if the user is unknown.
    max_per_user: usize,
    /// The limit for all users together. Connections of the server's own user and root do not
    /// count.
    max_of_others: usize,
    open: Mutex<OpenConnections>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, OpenConnection>,
    by_peer: HashMap<PeerKey, usize>,
    of_others: usize,
}

struct OpenConnection {
    who: PeerKey,
    /// Whether the user is neither the server's own user nor root.
    is_of_others: bool,
    /// The number of requests being processed, including streams.
    busy: usize,
    has_sent_request: bool,
    idle_since: Instant,
    evicted: Arc<Notify>,
}

impl ConnectionTable {
    /// Creates a table for as many connections as the limit of file descriptors allows. A single
    /// user gets at most three quarters of the slots. All users together, except the server's own
    /// user and root, get at most seven eighths.
    pub(crate) fn new() -> Arc<Self> {
        let limit = getrlimit(Resource::Nofile)
            .current
            .unwrap_or(DEFAULT_DESCRIPTORS);
        let max = limit.saturating_sub(RESERVED_DESCRIPTORS).max(1) as usize;
        Self::with_limits(max, (max * 3 / 4).max(1), max - max / 8)
    }

    pub(super) fn with_limits(max: usize, max_per_user: usize, max_of_others: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_per_user,
            max_of_others,
            open: Mutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// Returns a slot for a connection, or `None` if connections in use occupy all slots.
    pub(crate) fn admit(self: &Arc<Self>, who: PeerKey) -> Option<Arc<ConnectionSlot>> {
        let mut open = self.lock();
        if open
            .by_peer
            .get(&who)
            .is_some_and(|count| *count >= self.max_per_user)
            && !open.evict_idle_connection(|one| one.who == who)
        {
            return None;
        }
        let is_of_others = !matches!(who, PeerKey::User(uid) if is_server_user_or_root(uid));
        if is_of_others
            && open.of_others >= self.max_of_others
            && !open.evict_idle_connection(|one| one.is_of_others)
        {
            return None;
        }
        if open.connections.len() >= self.max && !open.evict_idle_connection(|_| true) {
            return None;
        }
        let evicted = Arc::new(Notify::new());
        let id = open.next;
        open.next += 1;
        *open.by_peer.entry(who).or_default() += 1;
        open.of_others += usize::from(is_of_others);
        let idle_since = Instant::now();
        let connection = OpenConnection {
            who,
            is_of_others,
            busy: 0,
            has_sent_request: false,
            idle_since,
            evicted: Arc::clone(&evicted),
        };
        open.connections.insert(id, connection);
        Some(Arc::new(ConnectionSlot {
            table: Arc::clone(self),
            id,
            evicted,
        }))
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().connections.len()
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        lock::lock(&self.open)
    }
}

impl OpenConnections {
    /// Closes one idle connection for which `may` returns `true`, or returns `false` if there is
    /// none. A connection that has not sent a request is closed first. Otherwise, the one that has
    /// been idle for the longest time is closed.
    fn evict_idle_connection(&mut self, may: impl Fn(&OpenConnection) -> bool) -> bool {
        let waiting = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.busy == 0 && may(connection));
        let longest = waiting
            .min_by_key(|(_, connection)| (connection.has_sent_request, connection.idle_since));
        let Some(id) = longest.map(|(id, _)| *id) else {
            return false;
        };
        if let Some(connection) = self.remove(id) {
            connection.evicted.notify_one();
        }
        true
    }

    fn remove(&mut self, id: u64) -> Option<OpenConnection> {
        let connection = self.connections.remove(&id)?;
        self.of_others -= usize::from(connection.is_of_others);
        if let Some(count) = self.by_peer.get_mut(&connection.who) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&connection.who);
            }
        }
        Some(connection)
    }
}

/// A connection's slot, which is released when dropped.
pub(crate) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    id: u64,
    evicted: Arc<Notify>,
}

impl ConnectionSlot {
    pub(crate) async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }

    /// Runs a task for the connection in the background. Before the server ends, it waits for the
    /// task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.table.tasks.spawn(task);
    }

    /// Marks the connection as in use, so that it is not closed, until the returned guard is
    /// dropped.
    pub(crate) fn mark_busy(self: &Arc<Self>) -> BusyGuard {
        if let Some(connection) = self.table.lock().connections.get_mut(&self.id) {
            connection.busy += 1;
            connection.has_sent_request = true;
        }
        BusyGuard(Arc::clone(self))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().remove(self.id);
    }
}

/// A guard that marks a connection as in use while a request is processed or a stream is open.
pub(crate) struct BusyGuard(Arc<ConnectionSlot>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        if let Some(connection) = self.0.table.lock().connections.get_mut(&self.0.id) {
            connection.busy -= 1;
            connection.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use rustix::process::geteuid;

    use super::*;

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.wait_for_eviction().now_or_never().is_some()
    }

    #[test]
    fn longest_idle_connection_is_evicted_first() {
        let table = ConnectionTable::with_limits(3, 3, 3);
        let [first, second, third] = [1, 2, 3].map(|uid| table.admit(PeerKey::User(uid)).unwrap());
        let streaming = first.mark_busy();
        let asked = second.mark_busy();
        drop(asked);
        let fourth = table.admit(PeerKey::User(4)).unwrap();
        assert!(is_evicted(&third), "it never asked for anything");
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let busy = [second.mark_busy(), fourth.mark_busy()];
        assert!(table.admit(PeerKey::User(5)).is_none(), "all are in use");
        drop((streaming, first));
        assert!(table.admit(PeerKey::User(5)).is_some());
        drop(busy);
    }

    #[test]
    fn one_user_cannot_occupy_all_slots() {
        let table = ConnectionTable::with_limits(4, 2, 4);
        let (greedy, other) = (PeerKey::User(1), PeerKey::User(2));
        let first = table.admit(greedy).unwrap();
        let second = table.admit(greedy).unwrap();
        let third = table.admit(greedy).unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second));
        let _in_use = (second.mark_busy(), third.mark_busy());
        assert!(table.admit(greedy).is_none());
        assert!(table.admit(other).is_some());
    }

    #[test]
    fn many_users_cannot_occupy_slots_of_server_user() {
        let table = ConnectionTable::with_limits(4, 4, 2);
        let streams = [100_001, 100_002].map(|uid| table.admit(PeerKey::User(uid)).unwrap());
        let mut busy: Vec<_> = streams.iter().map(ConnectionSlot::mark_busy).collect();
        assert!(
            table.admit(PeerKey::User(100_003)).is_none()
                && table.admit(PeerKey::Unknown).is_none()
        );
        let own = [geteuid().as_raw(), 0].map(|uid| table.admit(PeerKey::User(uid)).unwrap());
        busy.pop();
        assert!(
            table.admit(PeerKey::User(100_003)).is_some(),
            "one of the others makes room"
        );
        assert!(is_evicted(&streams[1]) && !own.iter().any(|slot| is_evicted(slot)));
    }

    #[test]
    fn ended_connection_frees_slot() {
        let table = ConnectionTable::with_limits(2, 2, 2);
        for _ in 0..10 {
            let slot = table.admit(PeerKey::Unknown).unwrap();
            let _busy = slot.mark_busy();
        }
        let open = table.lock();
        assert!(open.connections.is_empty() && open.by_peer.is_empty() && open.of_others == 0);
    }
}
