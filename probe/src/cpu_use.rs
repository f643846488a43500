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

/// A child process with a lower CPU use does no work.
const MIN_WORKER_CORES: f64 = 0.1;

/// The CPU use of the processes of one GPU between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuUse {
    /// The CPU use of the busiest process, in cores.
    pub process_cores: f64,
    /// The number of child processes that compute.
    pub workers: u32,
    /// The CPU use of these child processes together, in cores.
    pub worker_cores: f64,
    /// Whether a process or child process was waiting for a disk at the time of the reading.
    pub blocked: bool,
}

/// Reads the CPU use of the processes of one GPU.
pub(crate) struct CpuUseReader {
    proc_root: PathBuf,
    /// The start time and the CPU time of each process at the latest reading.
    known: HashMap<u32, (u64, u64)>,
    /// The time of the latest reading, and the time of the sample that it belongs to.
    read_at: Option<(Instant, u64)>,
    latest: Option<CpuUse>,
}

impl CpuUseReader {
    /// Creates a reader for the processes below `proc_root`, which is usually `/proc`.
    pub(crate) fn new(proc_root: PathBuf) -> Self {
        Self {
            proc_root,
            known: HashMap::new(),
            read_at: None,
            latest: None,
        }
    }

    /// Returns the CPU use between the latest two readings. Reads again if `is_due`, but not more
    /// than once a second by the times of the samples. These times also end the windows of
    /// [`LimitTracker`](crate::derive::LimitTracker), so a window and its CPU use cover the same
    /// time. Returns `None` if no process can be read, for example because they are in another PID
    /// namespace.
    pub(crate) fn read(
        &mut self,
        pids: impl Iterator<Item = u32>,
        sample_ms: u64,
        is_due: bool,
    ) -> Option<CpuUse> {
        let is_recent = |(_, last_ms): (_, u64)| sample_ms.abs_diff(last_ms) < INTERVAL_MS;
        if self.read_at.is_some_and(|at| is_recent(at) || !is_due) {
            return self.latest;
        }
        let last = self.read_at.replace((Instant::now(), sample_ms));
        let ms = last.map_or(0.0, |(at, _)| at.elapsed().as_secs_f64() * 1000.0);
        let mut now = HashMap::new();
        let mut found = CpuUse::default();
        let cores = |known: &HashMap<u32, (u64, u64)>, pid, stat: &ProcessStat| {
            let (birth, cpu_ms) = *known.get(&pid)?;
            (birth == stat.birth.ticks && ms > 0.0)
                .then(|| stat.cpu_ms.saturating_sub(cpu_ms) as f64 / ms)
        };
        let mut is_known = false;
        let pids: Vec<u32> = pids.take(MAX_PROCESSES).collect();
        for pid in pids.iter().copied() {
            let Ok(stat) = ProcessStat::read_with_boot_time(&self.proc_root, pid, None) else {
                continue;
            };
            found.blocked |= stat.state == 'D';
            if let Some(cores) = cores(&self.known, pid, &stat) {
                found.process_cores = found.process_cores.max(cores);
                is_known = true;
            }
            now.insert(pid, (stat.birth.ticks, stat.cpu_ms));
            // Children that use the GPU themselves are in `pids`.
            let children = read_children(&self.proc_root, pid).into_iter();
            for child in children.filter(|child| !pids.contains(child)) {
                let Ok(stat) = ProcessStat::read_with_boot_time(&self.proc_root, child, None)
                else {
                    continue;
                };
                found.blocked |= stat.state == 'D';
                let used = cores(&self.known, child, &stat);
                if let Some(cores) = used.filter(|cores| *cores >= MIN_WORKER_CORES) {
                    found.workers += 1;
                    found.worker_cores += cores;
                }
                now.insert(child, (stat.birth.ticks, stat.cpu_ms));
            }
        }
        self.known = now;
        self.latest = is_known.then_some(found);
        self.latest
    }
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
        let own = std::process::id();
        let mut reader = CpuUseReader::new("/proc".into());
        assert_eq!(reader.read([child.id()].into_iter(), now_ms(), true), None);
        let mut busy = None;
        while busy.is_none() {
            thread::sleep(Duration::from_millis(50));
            busy = reader.read([child.id()].into_iter(), now_ms(), true);
        }
        assert!(busy.unwrap().process_cores > 0.1, "{busy:?}");
        // The child was started by a thread of the test, so it is listed only if that is the main
        // thread. The file itself must be readable.
        let listed = fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
        assert!(listed.is_ok_and(|text| {
            text.split(' ')
                .all(|pid| pid.trim().parse::<u32>().is_ok() || pid.trim().is_empty())
        }));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn unreadable_processes_have_no_cpu_use() {
        let mut reader = CpuUseReader::new("/nowhere".into());
        assert_eq!(reader.read([1].into_iter(), 1, true), None);
        assert_eq!(reader.read([1].into_iter(), 1, true), None);
    }
}
