//! A background scan of procfs for the processes that have a card open.
//!
//! Reading a client's usage can block on that client's page table updates, and a machine can have
//! thousands of processes. The threads that read the cards therefore do not scan themselves, but
//! use the result of the latest background scan. If reading a process hangs, another thread
//! continues to scan and skips this process.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{ClientInfo, Recorder, list_numbers};
use crate::{
    bounded,
    model::now_ms,
    process_stat::{ProcessStat, read_boot_time_ms},
    vendor::{FilePart, lock},
};

/// Scans that are older than this are not used.
const MAX_SCAN_AGE: Duration = Duration::from_secs(10);

/// A process counts as hanging if reading its usage takes longer than this time.
const HANGING_AFTER: Duration = Duration::from_secs(2);

/// The maximum number of hanging processes for which a new scan thread is started. Each hanging
/// process blocks one scan thread.
const MAX_HANGING_THREADS: usize = 8;

/// A function that receives the minor number of a device node, and returns `true` if the node's
/// clients may be read. Reading them can wake a sleeping card.
type MayRead = dyn Fn(u32) -> bool + Send + Sync;

/// The clients of all cards, scanned in the background.
pub(crate) struct Clients {
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
    /// The number of the current scan thread, starting at 1. Earlier threads, which have lower
    /// numbers, are blocked by hanging processes.
    thread: u64,
    /// The PID of the process whose usage is being read, and when reading started.
    reading: Option<(u32, Instant)>,
    hanging: HashSet<u32>,
}

impl Clients {
    /// Creates a background scanner of the processes in `proc_root`, which is `/proc` except in
    /// tests.
    pub(crate) fn new(
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
    /// returns the latest scan. Returns `None` if there is no scan, or if the latest scan is older
    /// than both `age` and `MAX_SCAN_AGE`.
    pub(crate) fn get_recent_scan(
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

    /// Starts a new scan thread. If the thread cannot be started, the processes are missing from
    /// the readings, but all other readings work.
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
        lock(&self.state)
    }
}

/// The maximum number of bytes that are read from an `fdinfo` file.
const MAX_FDINFO_BYTES: usize = 16 << 10;

/// The maximum number of file descriptors whose files are copied for a bug report.
const MAX_RECORDED_DESCRIPTORS: usize = 512;

/// How long a new process is examined in every scan. Many programs load libraries before they open
/// a card.
const NEW_PROCESS_TIME: Duration = Duration::from_secs(30);

/// The interval after which a process without an open card is due for another examination.
const EXAMINATION_INTERVAL: Duration = Duration::from_secs(20);

/// If a process's number of open files has not changed, only every third due examination takes
/// place.
const TURNS_PER_EXAMINATION: u32 = 3;

/// A client of a card: a process that has the card open, or several processes that share a file
/// descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// The PID of the client's process. If several processes share the client, this is the lowest
    /// PID.
    pub(crate) pid: u32,
    /// The minor number of the device node in `/dev/dri` that the process has open.
    pub(crate) minor: u32,
    /// The client's use of the card.
    pub(crate) info: ClientInfo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanResult {
    /// The start time of the scan.
    pub(crate) at: Instant,
    pub(crate) clients: Vec<Client>,
    /// Whether the descriptors of some processes could not be read. Only root can read other users'
    /// descriptors.
    pub(crate) is_incomplete: bool,
}

/// The parameters of a scan.
struct ScanOptions<'a> {
    proc_root: &'a Path,
    /// Receives the minor number of a device node, and returns `true` if the node's clients may be
    /// read.
    may_read: &'a dyn Fn(u32) -> bool,
    /// The PIDs of hanging processes, which the scan skips.
    hanging: &'a HashSet<u32>,
    /// A callback that receives a process's PID before its usage is read, and `None` afterwards. If
    /// it returns `false`, the scan ends.
    on_read: &'a dyn Fn(Option<u32>) -> bool,
}

/// A scanner that finds the processes that have a card open, and remembers their descriptors.
/// Processes without an open card are examined only from time to time.
#[derive(Debug, Default)]
struct Scanner {
    known: HashMap<u32, ExaminedProcess>,
    has_scanned: bool,
}

#[derive(Debug)]
struct ExaminedProcess {
    new_until: Instant,
    examined: Instant,
    /// The process's descriptors for card nodes, each with the node's minor number.
    descriptors: Vec<(u32, u32)>,
    /// The size of the process's `fd` folder. Since Linux 6.2, this size is the number of open
    /// descriptors.
    files: u64,
    /// How many times the process has been due for an examination since it was last examined.
    turns: u32,
    is_unreadable: bool,
}

impl Scanner {
    /// Scans all processes. Returns `None` if `on_read` has ended the scan.
    fn scan(&mut self, scan: &ScanOptions<'_>) -> Option<ScanResult> {
        let at = Instant::now();
        let mut pids = list_numbers(scan.proc_root);
        // If several processes share a client, the one with the lowest PID is used: it is usually
        // the oldest, and has opened the card.
        pids.sort_unstable();
        self.known.retain(|pid, _| pids.binary_search(pid).is_ok());
        let ages = ProcessAges::new(scan.proc_root, self.has_scanned);
        self.has_scanned = true;
        let mut allowed = HashMap::new();
        let (mut clients, mut seen) = (Vec::new(), HashSet::new());
        for pid in pids {
            let folder = || scan.proc_root.join(pid.to_string());
            let process = self
                .known
                .entry(pid)
                .or_insert_with(|| ExaminedProcess::read_new(&folder(), ages.find_age(pid)));
            if process.is_due(at, pid) {
                process.examine_if_changed(&folder());
            }
            if process.descriptors.is_empty() || scan.hanging.contains(&pid) {
                continue;
            }
            let mut is_gone = false;
            for (descriptor, minor) in &process.descriptors {
                let may_read = allowed
                    .entry(*minor)
                    .or_insert_with(|| (scan.may_read)(*minor));
                if !*may_read {
                    continue;
                }
                let file = folder().join("fdinfo").join(descriptor.to_string());
                if !(scan.on_read)(Some(pid)) {
                    return None;
                }
                let text = bounded::read_text(file, MAX_FDINFO_BYTES).ok();
                if !(scan.on_read)(None) {
                    return None;
                }
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
                process.examine_again(&folder());
            }
        }
        let is_incomplete =
            !scan.hanging.is_empty() || self.known.values().any(|process| process.is_unreadable);
        Some(ScanResult {
            at,
            clients,
            is_incomplete,
        })
    }
}

/// Calculates the ages of processes that a scan has found for the first time.
struct ProcessAges<'a> {
    proc_root: &'a Path,
    /// The boot time in milliseconds since 1970, from which ages are calculated. After the first
    /// scan, it is `None`, because every process that appears later is new.
    booted_ms: Option<u64>,
}

impl<'a> ProcessAges<'a> {
    fn new(proc_root: &'a Path, has_scanned: bool) -> Self {
        let is_first = !has_scanned;
        let booted_ms = is_first.then(|| read_boot_time_ms(proc_root)).flatten();
        Self {
            proc_root,
            booted_ms,
        }
    }

    fn find_age(&self, pid: u32) -> Duration {
        let started = || {
            let booted = Some(self.booted_ms?);
            let stat = ProcessStat::read_with_boot_time(self.proc_root, pid, booted);
            stat.ok()?.birth.started_ms
        };
        let age_ms = started().map_or(0, |started| now_ms().saturating_sub(started));
        Duration::from_millis(age_ms)
    }
}

impl ExaminedProcess {
    fn read_new(folder: &Path, age: Duration) -> Self {
        let now = Instant::now();
        let mut process = Self {
            new_until: now
                .checked_add(NEW_PROCESS_TIME.saturating_sub(age))
                .unwrap_or(now),
            examined: now,
            descriptors: Vec::new(),
            files: 0,
            turns: 0,
            is_unreadable: false,
        };
        process.examine_again(folder);
        process
    }

    /// Returns `true` if the process is due for another examination. Intervals depend on the PID,
    /// so that not all processes are due at the same time.
    fn is_due(&self, now: Instant, pid: u32) -> bool {
        let spread = Duration::from_millis(u64::from(pid % 16) * 250);
        let age = now.saturating_duration_since(self.examined);
        !age.is_zero()
            && (now < self.new_until
                || !self.descriptors.is_empty() && age >= Duration::from_secs(2)
                || age >= EXAMINATION_INTERVAL + spread)
    }

    /// Handles a process that is due for an examination. If its number of open files has not
    /// changed, the examination is skipped, but at most twice in a row.
    fn examine_if_changed(&mut self, folder: &Path) {
        self.turns = self.turns.saturating_add(1);
        let files = fs::metadata(folder.join("fd")).map_or(0, |fd| fd.len());
        let is_same = files > 0 && files == self.files;
        if is_same && self.turns < TURNS_PER_EXAMINATION {
            self.examined = Instant::now();
        } else {
            self.examine_again(folder);
        }
    }

    /// Searches the process's descriptors for open cards.
    fn examine_again(&mut self, folder: &Path) {
        (self.examined, self.turns) = (Instant::now(), 0);
        self.descriptors.clear();
        let files = folder.join("fd");
        self.files = fs::metadata(&files).map_or(0, |fd| fd.len());
        let Ok(entries) = fs::read_dir(files) else {
            self.is_unreadable = folder.exists();
            return;
        };
        self.is_unreadable = false;
        for entry in entries.flatten() {
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            if let Some(minor) = parse_minor(&target)
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

/// Copies the `fdinfo` files and the `fd` links of all descriptors that refer to a card.
pub(crate) fn copy_client_files(
    recorder: &Recorder<'_>,
    proc_root: &Path,
    may_read: &dyn Fn(u32) -> bool,
) {
    let mut pids = list_numbers(proc_root);
    pids.sort_unstable();
    let mut left = MAX_RECORDED_DESCRIPTORS;
    for pid in pids {
        let process = PathBuf::from(pid.to_string());
        let known = ExaminedProcess::read_new(&proc_root.join(&process), Duration::ZERO);
        let readable = known
            .descriptors
            .iter()
            .filter(|(_, minor)| may_read(*minor));
        for (descriptor, _) in readable.take(left) {
            let place = process.join("fd").join(descriptor.to_string());
            if let Ok(target) = fs::read_link(proc_root.join(&place)) {
                recorder.add_link(&place, target);
                left -= 1;
            }
            let name = descriptor.to_string();
            recorder.copy_file_parts(&process.join("fdinfo"), &[&name], keep_usage_lines);
        }
    }
}

/// Keeps only the lines about the card's usage. The client's name is dropped, because programs can
/// put any text into it.
fn keep_usage_lines(info: &[u8]) -> Vec<FilePart> {
    let text = String::from_utf8_lossy(info);
    let is_use = |line: &&str| line.starts_with("drm-") && !line.starts_with("drm-client-name");
    let lines = text.lines().filter(is_use);
    let kept: String = lines.flat_map(|line| [line, "\n"]).collect();
    vec![FilePart::Plain(kept.into_bytes())]
}

/// Returns the minor number of a device node in `/dev/dri`.
fn parse_minor(target: &Path) -> Option<u32> {
    let name = target.to_str()?.strip_prefix("/dev/dri/")?;
    let number = name
        .strip_prefix("renderD")
        .or_else(|| name.strip_prefix("card"))?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use fake_drm::{Client, Process, Tree};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn add_process(tree: &Tree, pid: u32) {
        let client = Client::new("amdgpu", "0000:03:00.0", u64::from(pid));
        tree.add_process(&Process::new(pid, "a").with_open_card(128, &client));
    }

    #[test]
    fn threads_share_recent_scan_of_clients() {
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

#[cfg(test)]
mod scanner_tests {
    use std::{collections::HashSet, os::unix::fs::symlink};

    use super::*;

    fn scan(scanner: &mut Scanner, root: &Path, may_read: &dyn Fn(u32) -> bool) -> ScanResult {
        let scan = ScanOptions {
            proc_root: root,
            may_read,
            hanging: &HashSet::new(),
            on_read: &|_| true,
        };
        scanner.scan(&scan).unwrap()
    }

    /// Creates a simulated process that has the given descriptors open.
    fn add_process(root: &Path, pid: u32, descriptors: &[(u32, &str, u64)]) {
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
    fn client_shared_by_processes_counts_once() {
        let root = tempfile::tempdir().unwrap();
        add_process(
            root.path(),
            12,
            &[(0, "/dev/null", 0), (5, "/dev/dri/renderD128", 7)],
        );
        add_process(
            root.path(),
            11,
            &[(5, "/dev/dri/renderD128", 7), (6, "/dev/dri/card1", 8)],
        );
        add_process(root.path(), 13, &[]);
        fs::create_dir(root.path().join("self")).unwrap();
        let snapshot = scan(&mut Scanner::default(), root.path(), &|_| true);
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
        add_process(
            root.path(),
            11,
            &[(5, "/dev/dri/renderD128", 7), (6, "/dev/dri/renderD129", 8)],
        );
        let snapshot = scan(&mut Scanner::default(), root.path(), &|minor| minor == 129);
        let [client] = &snapshot.clients[..] else {
            panic!("{snapshot:?}")
        };
        assert_eq!(client.info.client, 8);
    }

    #[test]
    fn closed_descriptor_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        add_process(root.path(), 11, &[(5, "/dev/dri/renderD128", 7)]);
        let mut scanner = Scanner::default();
        assert_eq!(scan(&mut scanner, root.path(), &|_| true).clients.len(), 1);
        fs::remove_file(root.path().join("11/fd/5")).unwrap();
        fs::remove_file(root.path().join("11/fdinfo/5")).unwrap();
        assert_eq!(scan(&mut scanner, root.path(), &|_| true).clients.len(), 0);
        assert!(scanner.known[&11].descriptors.is_empty());
        fs::remove_dir_all(root.path().join("11")).unwrap();
        scan(&mut scanner, root.path(), &|_| true);
        assert!(scanner.known.is_empty());
    }

    #[test]
    fn unreadable_process_makes_scan_incomplete() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("14")).unwrap();
        assert!(scan(&mut Scanner::default(), root.path(), &|_| true).is_incomplete);
    }

    #[test]
    fn old_process_is_recognized_in_first_scan() {
        let tree = fake_drm::Tree::new();
        let process = fake_drm::Process::new(11, "a");
        tree.add_process(&process);
        let mut scanner = Scanner::default();
        scan(&mut scanner, &tree.proc(), &|_| true);
        assert!(
            scanner.known[&11].new_until <= Instant::now(),
            "it is an hour old"
        );
        tree.add_process(&fake_drm::Process::new(12, "b"));
        scan(&mut scanner, &tree.proc(), &|_| true);
        assert!(scanner.known[&12].new_until > Instant::now());
    }

    #[test]
    fn unchanged_descriptor_count_delays_rereading() {
        let root = tempfile::tempdir().unwrap();
        add_process(root.path(), 11, &[]);
        let folder = root.path().join("11");
        let mut known = ExaminedProcess::read_new(&folder, Duration::ZERO);
        symlink("/dev/dri/renderD128", folder.join("fd/5")).unwrap();
        for _ in 1..TURNS_PER_EXAMINATION {
            known.examine_if_changed(&folder);
            assert_eq!(known.descriptors, [], "the size of the folder is the same");
        }
        known.examine_if_changed(&folder);
        assert_eq!(known.descriptors, [(5, 128)]);
    }
}
