//! The processes that have a card open, found in procfs by a thread of its own.
//!
//! Reading the use of a client can wait for the client's own work on its page tables, and a machine
//! can have thousands of processes, so the threads that read the cards only look at the newest
//! result. Processes that are known to have no card open are examined again in turns.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{ClientInfo, list_numbers};
use crate::bounded;

/// The largest description of a client that is read.
const INFO: usize = 16 << 10;

/// A new process is examined in every scan for this long: many load their libraries first.
const NEW_FOR: Duration = Duration::from_secs(30);

/// Every process is examined once in this time.
const EXAMINED_EVERY: Duration = Duration::from_secs(20);

/// An older scan is not shown: the thread may wait for a process that hangs.
const OLDEST: Duration = Duration::from_secs(10);

/// A client of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct Client {
    /// The process; of several that share the client, the one with the lowest PID.
    pub(in crate::vendor) pid: u32,
    /// The minor number of the node in `/dev/dri` that the process has opened.
    pub(in crate::vendor) minor: u32,
    /// The use of the card.
    pub(in crate::vendor) info: ClientInfo,
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct Snapshot {
    /// The time of the scan.
    pub(in crate::vendor) at: Instant,
    /// The clients of all cards.
    pub(in crate::vendor) clients: Vec<Client>,
    /// Whether the descriptors of some processes could not be read. Those of other users are
    /// readable for root alone.
    pub(in crate::vendor) is_incomplete: bool,
}

/// Returns whether the client behind a node may be read now: reading can wake a sleeping card.
type MayRead = dyn Fn(u32) -> bool + Send + Sync;

/// The clients of all cards.
pub(in crate::vendor) struct Clients {
    proc_root: PathBuf,
    may_read: Box<MayRead>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    latest: Option<(Instant, Arc<Snapshot>)>,
    is_wanted: bool,
    is_started: bool,
}

impl Clients {
    /// Returns the clients of the processes in `proc_root`, which is `/proc` except in tests.
    pub(in crate::vendor) fn new(
        proc_root: PathBuf,
        may_read: impl Fn(u32) -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            proc_root,
            may_read: Box::new(may_read),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Returns a scan that is at most `age` old, or else the newest after waiting for `patience`.
    /// `None` if there is none.
    pub(in crate::vendor) fn get(
        self: &Arc<Self>,
        age: Duration,
        patience: Duration,
    ) -> Option<Arc<Snapshot>> {
        let is_fresh = |state: &State| {
            state
                .latest
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() <= age)
        };
        let mut state = self.lock();
        if !is_fresh(&state) {
            state.is_wanted = true;
            if !std::mem::replace(&mut state.is_started, true) {
                let own = Arc::clone(self);
                // Without a thread, processes are not listed; all other readings are.
                let builder = thread::Builder::new().name("drm-clients".to_owned());
                let _ = builder.spawn(move || own.run());
            }
            self.changed.notify_all();
            let waited = self
                .changed
                .wait_timeout_while(state, patience, |state| !is_fresh(state));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let latest = state.latest.as_ref().map(|(_, snapshot)| snapshot);
        let usable = latest.filter(|snapshot| snapshot.at.elapsed() <= OLDEST.max(age));
        usable.map(Arc::clone)
    }

    /// Scans whenever somebody wants it.
    fn run(&self) {
        let mut scanner = Scanner::default();
        loop {
            {
                let state = self.lock();
                let waited = self.changed.wait_while(state, |state| !state.is_wanted);
                waited.unwrap_or_else(PoisonError::into_inner).is_wanted = false;
            }
            let begun = Instant::now();
            let snapshot = scanner.scan(&self.proc_root, &*self.may_read);
            self.lock().latest = Some((begun, Arc::new(snapshot)));
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds clients, and remembers where they were.
#[derive(Debug, Default)]
struct Scanner {
    known: HashMap<u32, KnownProcess>,
}

#[derive(Debug)]
struct KnownProcess {
    first_seen: Instant,
    examined: Instant,
    /// The descriptors of cards, and the minor number of each card's node.
    descriptors: Vec<(u32, u32)>,
    is_unreadable: bool,
}

impl Scanner {
    fn scan(&mut self, proc_root: &Path, may_read: &MayRead) -> Snapshot {
        let at = Instant::now();
        let pids: HashSet<u32> = list_numbers(proc_root).into_iter().collect();
        self.known.retain(|pid, _| pids.contains(pid));
        let now = Instant::now();
        let mut clients = Vec::new();
        let mut seen = HashSet::new();
        let mut ordered: Vec<_> = pids.into_iter().collect();
        ordered.sort_unstable();
        // The oldest process usually has the lowest PID, and is the one that opened the card.
        for pid in ordered {
            let folder = proc_root.join(pid.to_string());
            let process = self
                .known
                .entry(pid)
                .or_insert_with(|| KnownProcess::read_first(&folder));
            if process.is_due(now, pid) {
                process.examine_again(&folder);
            }
            let mut is_gone = false;
            for (descriptor, minor) in &process.descriptors {
                if !may_read(*minor) {
                    continue;
                }
                let file = folder.join("fdinfo").join(descriptor.to_string());
                let text = bounded::text(file, INFO).ok();
                let Some(info) = text.and_then(|text| ClientInfo::parse(&text)) else {
                    is_gone = true;
                    continue;
                };
                if seen.insert((info.bus_id.clone(), info.client)) {
                    clients.push(Client {
                        pid,
                        minor: *minor,
                        info,
                    });
                }
            }
            if is_gone {
                process.examine_again(&folder);
            }
        }
        let is_incomplete = self.known.values().any(|process| process.is_unreadable);
        Snapshot {
            at,
            clients,
            is_incomplete,
        }
    }
}

impl KnownProcess {
    fn read_first(folder: &Path) -> Self {
        let now = Instant::now();
        let mut process = Self {
            first_seen: now,
            examined: now,
            descriptors: Vec::new(),
            is_unreadable: false,
        };
        process.examine_again(folder);
        process
    }

    /// Returns `true` if it is this process's turn. PIDs spread the turns over the period.
    fn is_due(&self, now: Instant, pid: u32) -> bool {
        let spread = Duration::from_millis(u64::from(pid % 16) * 250);
        let age = now.saturating_duration_since(self.examined);
        !age.is_zero()
            && (now.saturating_duration_since(self.first_seen) < NEW_FOR
                || !self.descriptors.is_empty() && age >= Duration::from_secs(2)
                || age >= EXAMINED_EVERY + spread)
    }

    /// Finds the descriptors of cards anew.
    fn examine_again(&mut self, folder: &Path) {
        self.examined = Instant::now();
        self.descriptors.clear();
        let Ok(entries) = fs::read_dir(folder.join("fd")) else {
            self.is_unreadable = folder.exists();
            return;
        };
        self.is_unreadable = false;
        for entry in entries.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            if let Some(minor) = minor_of(&target)
                && let Some(number) = entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse().ok())
            {
                self.descriptors.push((number, minor));
            }
        }
    }
}

/// Returns the minor number of a node in `/dev/dri`.
fn minor_of(target: &Path) -> Option<u32> {
    let name = target.to_str()?.strip_prefix("/dev/dri/")?;
    let number = name
        .strip_prefix("renderD")
        .or_else(|| name.strip_prefix("card"))?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes a process that has these descriptors open.
    fn process(root: &Path, pid: u32, descriptors: &[(u32, &str, u64)]) {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::create_dir_all(folder.join("fdinfo")).unwrap();
        for (number, target, client) in descriptors {
            symlink(target, folder.join(format!("fd/{number}"))).unwrap();
            let info = format!(
                "drm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\n\
                 drm-memory-vram:\t{client} KiB\n"
            );
            fs::write(folder.join(format!("fdinfo/{number}")), info).unwrap();
        }
    }

    #[test]
    fn shared_client_counts_once() {
        let root = tempfile::tempdir().unwrap();
        process(
            root.path(),
            12,
            &[(0, "/dev/null", 0), (5, "/dev/dri/renderD128", 7)],
        );
        process(
            root.path(),
            11,
            &[(5, "/dev/dri/renderD128", 7), (6, "/dev/dri/card1", 8)],
        );
        process(root.path(), 13, &[]);
        fs::create_dir(root.path().join("self")).unwrap();
        let snapshot = Scanner::default().scan(root.path(), &|_| true);
        let found: Vec<_> = snapshot
            .clients
            .iter()
            .map(|client| (client.pid, client.minor, client.info.client))
            .collect();
        assert_eq!(found, [(11, 128, 7), (11, 1, 8)]);
        assert!(!snapshot.is_incomplete);
    }

    #[test]
    fn clients_of_sleeping_cards_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        process(
            root.path(),
            11,
            &[(5, "/dev/dri/renderD128", 7), (6, "/dev/dri/renderD129", 8)],
        );
        let snapshot = Scanner::default().scan(root.path(), &|minor| minor == 129);
        let [client] = &snapshot.clients[..] else {
            panic!("{snapshot:?}")
        };
        assert_eq!(client.info.client, 8);
    }

    #[test]
    fn closed_descriptor_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 11, &[(5, "/dev/dri/renderD128", 7)]);
        let mut scanner = Scanner::default();
        assert_eq!(scanner.scan(root.path(), &|_| true).clients.len(), 1);
        fs::remove_file(root.path().join("11/fd/5")).unwrap();
        fs::remove_file(root.path().join("11/fdinfo/5")).unwrap();
        assert_eq!(scanner.scan(root.path(), &|_| true).clients.len(), 0);
        assert!(scanner.known[&11].descriptors.is_empty());
        fs::remove_dir_all(root.path().join("11")).unwrap();
        scanner.scan(root.path(), &|_| true);
        assert!(scanner.known.is_empty());
    }

    #[test]
    fn unreadable_process_makes_scan_incomplete() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("14")).unwrap();
        assert!(
            Scanner::default()
                .scan(root.path(), &|_| true)
                .is_incomplete
        );
    }

    #[test]
    fn threads_share_one_scan() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 11, &[(5, "/dev/dri/renderD128", 7)]);
        let clients = Clients::new(root.path().to_owned(), |_| true);
        let (age, patience) = (Duration::from_mins(1), Duration::from_mins(1));
        let first = clients.get(age, patience).unwrap();
        let second = clients.get(age, patience).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let third = clients.get(Duration::ZERO, Duration::ZERO).unwrap();
        assert_eq!(third.clients, first.clients);
    }
}
