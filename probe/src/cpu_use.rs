//! The CPU use of the processes that use a GPU, and of their child processes.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{bounded, process_stat::ProcessStat};

/// The minimum time between two readings, as for the windows of limits.
const INTERVAL_MS: u64 = 950;

/// At most this many processes of a GPU are read, so that a machine with many processes costs no
/// more time.
const MAX_PROCESSES: usize = 16;

/// At most this many child processes are read for each process.
const MAX_CHILDREN: usize = 64;

/// If a process has at most this many children, their children are read, too: the workers of a
/// fork server are grandchildren of the process.
const MAX_FORK_SERVERS: usize = 4;

/// A child process with a lower CPU use does no work.
const MIN_WORKER_CORES: f64 = 0.1;

/// The CPU use of the processes of one GPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuUse {
    /// The time of the sample with which the processes were read last, in milliseconds since the
    /// Unix epoch.
    pub at_ms: u64,
    /// The processes that could be read.
    pub processes: Vec<ProcessUse>,
}

/// The use of the host by a process that uses the GPU, between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessUse {
    /// The process.
    pub pid: u32,
    /// Its CPU use, in cores.
    pub cores: f64,
    /// The number of its child processes that compute.
    pub workers: u32,
    /// The CPU use of these child processes together, in cores.
    pub worker_cores: f64,
    /// Whether the process or a child process was waiting for a disk at the time of the reading.
    pub blocked: bool,
    /// The data that the process and its child processes read from disks, without data in the page
    /// cache, in bytes per second. `None` if another user's process may not be read.
    pub read_bytes_per_second: Option<f64>,
}

/// Reads the CPU use of the processes of one GPU.
pub(crate) struct CpuUseReader {
    proc_root: PathBuf,
    /// The totals of each process at the latest reading.
    known: HashMap<u32, Totals>,
    read_at: Option<Instant>,
    /// Whether disk reads are read, which need one more file for each process.
    needs_reads: bool,
    latest: CpuUse,
}

/// The totals of a process since its start.
#[derive(Debug, Clone, Copy)]
struct Totals {
    /// The start time, in clock ticks since boot.
    birth_ticks: u64,
    cpu_ms: u64,
    read_bytes: Option<u64>,
}

impl CpuUseReader {
    /// Creates a reader for the processes below `proc_root`, which is usually `/proc`.
    pub(crate) fn new(proc_root: PathBuf) -> Self {
        Self {
            proc_root,
            known: HashMap::new(),
            read_at: None,
            needs_reads: false,
            latest: CpuUse::default(),
        }
    }

    /// Returns what each process used between the latest two readings. Reads again if `is_due`, but
    /// not more than once a second by the times of the samples. These times also end the windows of
    /// [`LimitTracker`](crate::derive::LimitTracker), so a window and its CPU use cover the same
    /// time. Disk reads are only read if `needs_reads`. Processes that cannot be read are missing,
    /// for example those in another PID namespace.
    pub(crate) fn read(
        &mut self,
        pids: impl Iterator<Item = u32>,
        sample_ms: u64,
        is_due: bool,
        needs_reads: bool,
    ) -> CpuUse {
        let is_recent = sample_ms.abs_diff(self.latest.at_ms) < INTERVAL_MS;
        if self.read_at.is_some() && (is_recent || !is_due) {
            return self.latest.clone();
        }
        let last = self.read_at.replace(Instant::now());
        let seconds = last.map_or(0.0, |at| at.elapsed().as_secs_f64());
        self.needs_reads = needs_reads;
        let mut now = HashMap::new();
        let mut pids: Vec<u32> = pids.take(MAX_PROCESSES).collect();
        // A process can use several MIG devices.
        pids.dedup();
        let processes = pids
            .iter()
            .filter_map(|pid| self.read_process(*pid, &pids, seconds, &mut now))
            .collect();
        self.known = now;
        self.latest = CpuUse {
            at_ms: sample_ms,
            processes,
        };
        self.latest.clone()
    }

    /// Reads a process and its child processes, and adds their totals to `now`. Returns `None` if
    /// the process was not known at the last reading, `seconds` ago.
    fn read_process(
        &self,
        pid: u32,
        pids: &[u32],
        seconds: f64,
        now: &mut HashMap<u32, Totals>,
    ) -> Option<ProcessUse> {
        let (blocked, own) = self.read_totals(pid, now)?;
        let mut found = ProcessUse {
            pid,
            blocked,
            ..ProcessUse::default()
        };
        let mut reads = own.map(|own| own.read_bytes);
        // Children that use the GPU themselves are in `pids`.
        let mut children = read_children(&self.proc_root, pid);
        if children.len() <= MAX_FORK_SERVERS {
            let below = children.clone().into_iter();
            children.extend(below.flat_map(|child| read_children(&self.proc_root, child)));
            children.truncate(MAX_CHILDREN);
        }
        for child in children.into_iter().filter(|child| !pids.contains(child)) {
            let Some((blocked, used)) = self.read_totals(child, now) else {
                continue;
            };
            found.blocked |= blocked;
            let Some(used) = used else { continue };
            if let (Some(Some(sum)), Some(bytes)) = (&mut reads, used.read_bytes) {
                *sum += bytes;
            }
            let cores = used.cpu_ms as f64 / 1000.0 / seconds;
            if cores >= MIN_WORKER_CORES {
                found.workers += 1;
                found.worker_cores += cores;
            }
        }
        found.cores = own?.cpu_ms as f64 / 1000.0 / seconds;
        found.read_bytes_per_second = reads?.map(|bytes| bytes as f64 / seconds);
        Some(found)
    }

    /// Reads the totals of one process. Returns whether it waits for a disk, and what it has used
    /// since the last reading, or `None` if it was not known then.
    fn read_totals(
        &self,
        pid: u32,
        now: &mut HashMap<u32, Totals>,
    ) -> Option<(bool, Option<Totals>)> {
        let stat = ProcessStat::read_with_boot_time(&self.proc_root, pid, None).ok()?;
        let totals = Totals {
            birth_ticks: stat.birth.ticks,
            cpu_ms: stat.cpu_ms,
            read_bytes: self
                .needs_reads
                .then(|| read_disk_bytes(&self.proc_root, pid))
                .flatten(),
        };
        now.insert(pid, totals);
        let known = self.known.get(&pid);
        let used = known
            .filter(|known| known.birth_ticks == totals.birth_ticks)
            .map(|known| Totals {
                cpu_ms: totals.cpu_ms.saturating_sub(known.cpu_ms),
                read_bytes: totals
                    .read_bytes
                    .zip(known.read_bytes)
                    .map(|(now, then)| now.saturating_sub(then)),
                ..totals
            });
        Some((stat.state == 'D', used))
    }
}

/// Returns what a process has read from disks: `read_bytes` of `/proc/PID/io`, which only the
/// process's user and root can read.
fn read_disk_bytes(proc_root: &Path, pid: u32) -> Option<u64> {
    let path = proc_root.join(format!("{pid}/io"));
    let text = bounded::read_text(path, bounded::STAT_LIMIT).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "))?;
    line.trim().parse().ok()
}

/// Returns the child processes that the main thread of a process has started. Kernels without
/// `CONFIG_PROC_CHILDREN` do not list them.
fn read_children(proc_root: &Path, pid: u32) -> Vec<u32> {
    let path = proc_root.join(format!("{pid}/task/{pid}/children"));
    bounded::read_text(path, bounded::STAT_LIMIT)
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok())
        .take(MAX_CHILDREN)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command, thread, time::Duration};

    use super::*;
    use crate::model::now_ms;

    #[test]
    fn busy_process_and_child_are_measured() {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let (own, pid) = (std::process::id(), child.id());
        let mut reader = CpuUseReader::new("/proc".into());
        let mut read = || {
            reader
                .read([pid].into_iter(), now_ms(), true, true)
                .processes
        };
        assert_eq!(read(), []);
        // On a busy machine, the process may get little CPU time in one interval.
        let intervals = (0..1000).map(|_| {
            thread::sleep(Duration::from_millis(50));
            read()
        });
        let mut measured = intervals.filter(|processes| !processes.is_empty());
        let busy = measured.find(|processes| processes[0].cores > 0.1);
        // The child process must not keep running after a failed assertion.
        child.kill().unwrap();
        child.wait().unwrap();
        let busy = busy.expect("the process uses the CPU");
        assert_eq!(busy[0].pid, pid);
        assert!(busy[0].read_bytes_per_second.is_some(), "{busy:?}");
        // The child was started by a thread of the test, so it is listed only if that is the main
        // thread. The file itself must be readable.
        let listed = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        assert!(listed.is_ok_and(|text| {
            text.split(' ')
                .all(|pid| pid.trim().parse::<u32>().is_ok() || pid.trim().is_empty())
        }));
    }

    /// Writes the files of a process below a folder that is used as `/proc`.
    fn write_process(root: &Path, pid: u32, cpu_ticks: u64, read_bytes: u64, children: &str) {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(folder.join(format!("task/{pid}"))).unwrap();
        let zeros = "0 ".repeat(7);
        let stat = format!("{pid} (python) S 1 1 1 {zeros}{cpu_ticks} 0 0 0 0 0 1 0 100 0");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(
            folder.join("io"),
            format!("rchar: 1\nread_bytes: {read_bytes}\n"),
        )
        .unwrap();
        fs::write(folder.join(format!("task/{pid}/children")), children).unwrap();
    }

    #[test]
    fn workers_of_fork_server_belong_to_process() {
        let root = tempfile::tempdir().unwrap();
        let write = |ticks, bytes| {
            write_process(root.path(), 10, ticks, bytes, "11");
            write_process(root.path(), 11, 0, 0, "12");
            write_process(root.path(), 12, 1000 * ticks, bytes, "");
        };
        let mut reader = CpuUseReader::new(root.path().into());
        write(0, 0);
        assert_eq!(
            reader.read([10].into_iter(), 1_000, true, true).processes,
            []
        );
        write(10, 1 << 30);
        thread::sleep(Duration::from_millis(20));
        let read = reader.read([10].into_iter(), 2_000, true, true).processes;
        assert_eq!((read[0].pid, read[0].workers), (10, 1));
        assert!(
            read[0].worker_cores > read[0].cores && read[0].cores > 0.0,
            "{read:?}"
        );
        assert!(read[0].read_bytes_per_second.unwrap() > 1e9, "{read:?}");
        thread::sleep(Duration::from_millis(20));
        let without_reads = reader.read([10].into_iter(), 3_000, true, false).processes;
        assert_eq!(without_reads[0].read_bytes_per_second, None);
    }

    #[test]
    fn unreadable_processes_have_no_cpu_use() {
        let mut reader = CpuUseReader::new("/nowhere".into());
        for at_ms in [1_000, 2_000] {
            let read = reader.read([1].into_iter(), at_ms, true, true);
            assert_eq!((read.at_ms, read.processes.len()), (at_ms, 0));
        }
    }
}
