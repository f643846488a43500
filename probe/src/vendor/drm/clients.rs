//! A background scan of procfs for the processes that have a card open.
//!
//! Reading a client's usage can block on that client's page table updates, and a machine can have
//! thousands of processes. Therefore, the threads that read the cards only use the latest scan. If
//! a process hangs the scan, the scan continues on another thread without that process.

use std::{
    cell::Cell,
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::scanner::{ScanOptions, ScanResult, Scanner};

/// Older scans are not used.
const MAX_SCAN_AGE: Duration = Duration::from_secs(10);

/// A process counts as hanging if reading its usage takes longer than this time.
const HANGING_AFTER: Duration = Duration::from_secs(2);

/// The maximum number of threads that are blocked by hanging processes.
const MAX_HANGING_THREADS: usize = 8;

/// A function that returns `true` if the clients of the device node with the given minor number may
/// be read. Reading them can wake a sleeping card.
type MayRead = dyn Fn(u32) -> bool + Send + Sync;

/// The clients of all cards, scanned in the background.
pub(in crate::vendor) struct Clients {
    proc_root: PathBuf,
    may_read: Box<MayRead>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    latest: Option<(Instant, Arc<ScanResult>)>,
    /// Whether a caller is waiting for a scan. The scan may already be running.
    is_wanted: bool,
    /// The number of the current scan thread, starting at 1. Threads with lower numbers are blocked
    /// by hanging processes.
    thread: u64,
    /// The PID of the process whose usage is being read, and when reading started.
    reading: Option<(u32, Instant)>,
    hanging: HashSet<u32>,
}

impl Clients {
    /// Creates a background scanner of the processes in `proc_root`, which is `/proc` except in
    /// tests.
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

    /// Returns a scan that is at most `age` old. If no such scan is available within `patience`,
    /// returns the latest scan, or `None` if the latest scan is too old.
    pub(in crate::vendor) fn get_recent_scan(
        self: &Arc<Self>,
        age: Duration,
        patience: Duration,
    ) -> Option<Arc<ScanResult>> {
        let is_fresh = |state: &State| {
            state
                .latest
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() <= age)
        };
        let mut state = self.lock();
        if !is_fresh(&state) {
            state.is_wanted = true;
            let hanging = state
                .reading
                .filter(|(_, since)| since.elapsed() >= HANGING_AFTER);
            if let Some((pid, _)) = hanging.filter(|_| state.hanging.len() < MAX_HANGING_THREADS) {
                state.hanging.insert(pid);
                self.start_thread(&mut state);
            } else if state.thread == 0 {
                self.start_thread(&mut state);
            }
            self.changed.notify_all();
            let waited = self
                .changed
                .wait_timeout_while(state, patience, |state| !is_fresh(state));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let latest = state.latest.as_ref().map(|(_, snapshot)| snapshot);
        let usable = latest.filter(|snapshot| snapshot.at.elapsed() <= MAX_SCAN_AGE.max(age));
        usable.map(Arc::clone)
    }

    /// Starts a new scan thread. If the thread cannot be started, processes are missing, but all
    /// other readings work.
    fn start_thread(self: &Arc<Self>, state: &mut State) {
        state.thread = state.thread.saturating_add(1);
        state.reading = None;
        let (own, number) = (Arc::clone(self), state.thread);
        let builder = thread::Builder::new().name("drm-clients".to_owned());
        let _ = builder.spawn(move || own.run(number));
    }

    /// Scans whenever a scan is wanted, until another thread takes over this task.
    fn run(&self, number: u64) {
        let mut scanner = Scanner::default();
        let last_read = Cell::new(0);
        let on_read = |pid: Option<u32>| {
            let mut state = self.lock();
            last_read.set(pid.unwrap_or(last_read.get()));
            if state.thread == number {
                state.reading = pid.map(|pid| (pid, Instant::now()));
            }
            state.thread == number
        };
        loop {
            let is_idle = |state: &mut State| !state.is_wanted && state.thread == number;
            let state = self.changed.wait_while(self.lock(), is_idle);
            let hanging = state
                .unwrap_or_else(PoisonError::into_inner)
                .hanging
                .clone();
            let begun = Instant::now();
            let snapshot = scanner.scan(&ScanOptions {
                proc_root: &self.proc_root,
                may_read: &*self.may_read,
                hanging: &hanging,
                on_read: &on_read,
            });
            let mut state = self.lock();
            if state.thread != number {
                // The process that blocked this thread responds again, so scans can include it
                // again.
                state.hanging.remove(&last_read.get());
                return;
            }
            state.latest = snapshot.map(|snapshot| (begun, Arc::new(snapshot)));
            state.is_wanted = false;
            drop(state);
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use fake_drm::{Client, Process, Tree};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn add_process(tree: &Tree, pid: u32) {
        let client = Client::new("amdgpu", "0000:03:00.0", u64::from(pid));
        tree.add_process(&Process::new(pid, "a").open_card(128, &client));
    }

    #[test]
    fn threads_share_one_scan() {
        let tree = Tree::new();
        add_process(&tree, 11);
        let clients = Clients::new(tree.proc(), |_| true);
        let first = clients.get_recent_scan(MINUTE, MINUTE).unwrap();
        let second = clients.get_recent_scan(MINUTE, MINUTE).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let third = clients
            .get_recent_scan(Duration::ZERO, Duration::ZERO)
            .unwrap();
        assert_eq!(third.clients, first.clients);
    }

    #[test]
    fn hanging_process_is_skipped_until_it_responds() {
        let tree = Tree::new();
        (11..=13).for_each(|pid| add_process(&tree, pid));
        let file = tree.proc().join("12/fdinfo/3");
        let content = std::fs::read(&file).unwrap();
        tree.block_reads(&file);
        let clients = Clients::new(tree.proc(), |_| true);
        let pids_of = |snapshot: &ScanResult| -> Vec<_> {
            snapshot.clients.iter().map(|client| client.pid).collect()
        };
        assert_eq!(
            clients.get_recent_scan(Duration::ZERO, Duration::from_millis(100)),
            None
        );
        thread::sleep(HANGING_AFTER);
        let others = clients
            .get_recent_scan(Duration::from_secs(1), MINUTE)
            .unwrap();
        assert_eq!(
            (pids_of(&others), others.is_incomplete),
            (vec![11, 13], true)
        );
        tree.release_reads(&file, content);
        let begun = Instant::now();
        while clients
            .get_recent_scan(Duration::ZERO, Duration::from_millis(100))
            .is_none_or(|scan| pids_of(&scan) != [11, 12, 13])
        {
            assert!(begun.elapsed() < MINUTE, "the process is left out for ever");
        }
    }
}
