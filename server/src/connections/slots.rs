//! Slots that limit the number of connections, in total and per user, and the choice of the
//! connection that is closed if there are too many.
//!
//! An idle connection costs its client nothing, so it must not take a slot from others: if a limit
//! is reached, the connection that has been idle for the longest time is closed for the new one.
//!
//! Connections in use are not closed, and a user of rootless containers has thousands of user IDs,
//! and each counts as a user. So some slots are reserved for the server's own user and root.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use rustix::process::{Resource, getrlimit};
use tokio::{sync::Notify, time::Instant};
use tokio_util::task::TaskTracker;

use crate::{
    lock,
    peer::{Who, is_own_user},
};

/// The number of file descriptors reserved for other uses: restarts of the collector, runs, and
/// files.
const RESERVED_DESCRIPTORS: u64 = 64;

/// The assumed limit of file descriptors on a system without one.
const DEFAULT_DESCRIPTORS: u64 = 65_536;

pub(crate) struct ConnectionTable {
    max: usize,
    /// The limit per user, or per address if the user is unknown.
    max_per_user: usize,
    /// The limit for all users together, except the server's own user and root.
    max_of_others: usize,
    open: Mutex<OpenConnections>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, Connection>,
    by_peer: HashMap<Who, usize>,
    of_others: usize,
}

struct Connection {
    who: Who,
    /// Whether the user is neither the server's own user nor root.
    is_of_others: bool,
    /// The number of requests being processed, including streams.
    busy: usize,
    has_sent_request: bool,
    idle_since: Instant,
    evicted: Arc<Notify>,
}

impl ConnectionTable {
    /// Creates a table for as many connections as the limit of file descriptors allows. One user
    /// gets at most three quarters, and all users except the server's own and root seven eighths.
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

    /// Returns a slot for a connection, or `None` if all slots are taken by connections in use.
    pub(crate) fn admit(self: &Arc<Self>, who: Who) -> Option<Arc<ConnectionSlot>> {
        let mut open = self.lock();
        if open
            .by_peer
            .get(&who)
            .is_some_and(|count| *count >= self.max_per_user)
            && !open.evict(|one| one.who == who)
        {
            return None;
        }
        let is_of_others = !matches!(who, Who::User(uid) if is_own_user(uid));
        if is_of_others
            && open.of_others >= self.max_of_others
            && !open.evict(|one| one.is_of_others)
        {
            return None;
        }
        if open.connections.len() >= self.max && !open.evict(|_| true) {
            return None;
        }
        let evicted = Arc::new(Notify::new());
        let id = open.next;
        open.next += 1;
        *open.by_peer.entry(who).or_default() += 1;
        open.of_others += usize::from(is_of_others);
        let idle_since = Instant::now();
        let connection = Connection {
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
    /// Closes the connection that has been idle for the longest time among those allowed by `may`;
    /// connections without any request come first. Returns `false` if none is idle.
    fn evict(&mut self, may: impl Fn(&Connection) -> bool) -> bool {
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

    fn remove(&mut self, id: u64) -> Option<Connection> {
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

/// The slot of one connection, which is released when dropped.
pub(crate) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    id: u64,
    evicted: Arc<Notify>,
}

impl ConnectionSlot {
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Runs a task for the connection in the background. The server waits for it before it ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.table.tasks.spawn(task);
    }

    /// Marks the connection as in use, so that it is not closed, until the result is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        if let Some(connection) = self.table.lock().connections.get_mut(&self.id) {
            connection.busy += 1;
            connection.has_sent_request = true;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.table.lock().remove(self.id);
    }
}

/// A request being processed, or a stream.
pub(crate) struct Busy(Arc<ConnectionSlot>);

impl Drop for Busy {
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
        slot.evicted().now_or_never().is_some()
    }

    #[test]
    fn who_waits_longest_makes_room_and_who_is_in_use_does_not() {
        let table = ConnectionTable::with_limits(3, 3, 3);
        let [first, second, third] = [1, 2, 3].map(|uid| table.admit(Who::User(uid)).unwrap());
        let streaming = first.busy();
        let asked = second.busy();
        drop(asked);
        let fourth = table.admit(Who::User(4)).unwrap();
        assert!(is_evicted(&third), "it never asked for anything");
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let busy = [second.busy(), fourth.busy()];
        assert!(table.admit(Who::User(5)).is_none(), "all are in use");
        drop((streaming, first));
        assert!(table.admit(Who::User(5)).is_some());
        drop(busy);
    }

    #[test]
    fn one_user_leaves_places_to_others() {
        let table = ConnectionTable::with_limits(4, 2, 4);
        let (greedy, other) = (Who::User(1), Who::User(2));
        let first = table.admit(greedy).unwrap();
        let second = table.admit(greedy).unwrap();
        let third = table.admit(greedy).unwrap();
        assert!(is_evicted(&first) && !is_evicted(&second));
        let _in_use = (second.busy(), third.busy());
        assert!(table.admit(greedy).is_none());
        assert!(table.admit(other).is_some());
    }

    #[test]
    fn many_users_together_leave_places_to_the_own_one_and_root() {
        let table = ConnectionTable::with_limits(4, 4, 2);
        let streams = [100_001, 100_002].map(|uid| table.admit(Who::User(uid)).unwrap());
        let mut busy: Vec<_> = streams.iter().map(ConnectionSlot::busy).collect();
        assert!(table.admit(Who::User(100_003)).is_none() && table.admit(Who::Unknown).is_none());
        let own = [geteuid().as_raw(), 0].map(|uid| table.admit(Who::User(uid)).unwrap());
        busy.pop();
        assert!(
            table.admit(Who::User(100_003)).is_some(),
            "one of the others makes room"
        );
        assert!(is_evicted(&streams[1]) && !own.iter().any(|slot| is_evicted(slot)));
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let table = ConnectionTable::with_limits(2, 2, 2);
        for _ in 0..10 {
            let slot = table.admit(Who::Unknown).unwrap();
            let _busy = slot.busy();
        }
        let open = table.lock();
        assert!(open.connections.is_empty() && open.by_peer.is_empty() && open.of_others == 0);
    }
}
