//! A scanner that finds the processes that have a card open, and remembers their descriptors.
//!
//! Processes that have no card open are only checked from time to time.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{ClientInfo, Recorder, list_numbers};
use crate::{
    bounded,
    model::now_ms,
    process_stat::{ProcessStat, read_boot_time_ms},
    vendor::FilePart,
};

/// The maximum number of bytes that are read from an `fdinfo` file.
const MAX_FDINFO_BYTES: usize = 16 << 10;

/// The maximum number of descriptors that are copied.
const MAX_RECORDED_DESCRIPTORS: usize = 512;

/// A new process is examined in every scan for this time, because many programs load libraries
/// before they open a card.
const NEW_PROCESS_TIME: Duration = Duration::from_secs(30);

/// The interval between two turns of a process. At a turn, the process may be examined for open
/// cards.
const EXAMINATION_INTERVAL: Duration = Duration::from_secs(20);

/// If a process's number of open files has not changed, only every third turn examines the process.
const TURNS_PER_EXAMINATION: u32 = 3;

/// A client of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct Client {
    /// The PID of the client's process. If several processes share the client, this is the lowest
    /// PID.
    pub(in crate::vendor) pid: u32,
    /// The minor number of the device node in `/dev/dri` that the process has open.
    pub(in crate::vendor) minor: u32,
    /// The client's use of the card.
    pub(in crate::vendor) info: ClientInfo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct ScanResult {
    /// The start time of the scan.
    pub(in crate::vendor) at: Instant,
    pub(in crate::vendor) clients: Vec<Client>,
    /// Whether the descriptors of some processes could not be read. Only root can read other users'
    /// descriptors.
    pub(in crate::vendor) is_incomplete: bool,
}

/// The parameters of a scan.
pub(super) struct ScanOptions<'a> {
    pub(super) proc_root: &'a Path,
    /// Returns `true` if the clients of the device node with the given minor number may be read.
    pub(super) may_read: &'a dyn Fn(u32) -> bool,
    /// The PIDs of hanging processes, which the scan skips.
    pub(super) hanging: &'a HashSet<u32>,
    /// A callback that receives a PID before that client's usage is read, and `None` afterwards. If
    /// it returns `false`, the scan ends.
    pub(super) on_read: &'a dyn Fn(Option<u32>) -> bool,
}

/// A scanner of the processes that have a card open.
#[derive(Debug, Default)]
pub(super) struct Scanner {
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
    /// The number of turns since the process was last examined.
    turns: u32,
    is_unreadable: bool,
}

impl Scanner {
    /// Scans all processes. Returns `None` if `on_read` has ended the scan.
    pub(super) fn scan(&mut self, scan: &ScanOptions<'_>) -> Option<ScanResult> {
        let at = Instant::now();
        let mut pids = list_numbers(scan.proc_root);
        // If several processes share a client, the one with the lowest PID is usually the oldest
        // and has opened the card.
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
                process.take_turn(&folder());
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

/// The calculation of how old newly found processes are.
struct ProcessAges<'a> {
    proc_root: &'a Path,
    /// The boot time in milliseconds since 1970, needed to calculate ages. It is `None` after the
    /// first scan, because every process that appears later is new.
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

    /// Returns `true` if the process is due for its turn. Intervals depend on the PID so that not
    /// all processes are due at the same time.
    fn is_due(&self, now: Instant, pid: u32) -> bool {
        let spread = Duration::from_millis(u64::from(pid % 16) * 250);
        let age = now.saturating_duration_since(self.examined);
        !age.is_zero()
            && (now < self.new_until
                || !self.descriptors.is_empty() && age >= Duration::from_secs(2)
                || age >= EXAMINATION_INTERVAL + spread)
    }

    /// Examines the process again. If its number of open files has not changed, only every third
    /// call does so.
    fn take_turn(&mut self, folder: &Path) {
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
pub(in crate::vendor) fn record_clients(
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

/// Keeps only the lines about the card's usage. The client's name is dropped because programs
/// choose it freely.
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
    fn shared_client_counts_once() {
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
    fn unchanged_number_of_files_delays_rereading_descriptors() {
        let root = tempfile::tempdir().unwrap();
        add_process(root.path(), 11, &[]);
        let folder = root.path().join("11");
        let mut known = ExaminedProcess::read_new(&folder, Duration::ZERO);
        symlink("/dev/dri/renderD128", folder.join("fd/5")).unwrap();
        for _ in 1..TURNS_PER_EXAMINATION {
            known.take_turn(&folder);
            assert_eq!(known.descriptors, [], "the size of the folder is the same");
        }
        known.take_turn(&folder);
        assert_eq!(known.descriptors, [(5, 128)]);
    }
}
