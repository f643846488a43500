//! The processes on a GPU, combined from the graphics driver's and the compute driver's data.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::Path,
    time::{Duration, Instant},
};

use super::{
    kfd::{self, KfdNode},
    partitions::Partitions,
};
use crate::{
    model::{Absence, MigInstance, Process, ProcessKind, Reading},
    vendor::drm::{Client, Names, Usage},
};

/// The names used in amdgpu's `fdinfo` files. An APU's buffers are in the machine's memory (GTT).
pub(super) static NAMES: Names = Names {
    memory: &["vram"],
    shared_memory: &["gtt"],
    graphics: &["gfx"],
    compute: &["compute"],
    encoders: &["enc", "enc_1"],
    decoders: &["dec"],
};

/// Returns the processes on one card, sorted by PID. A process that uses several partitions is
/// listed once for each partition.
pub(super) fn list_processes(
    usage: &Usage,
    clients: &[&Client],
    compute: &[ComputeProcess],
    partitions: &Partitions,
    units: Option<u32>,
    is_unified: bool,
) -> Vec<Process> {
    let mut parts: BTreeMap<Option<MigInstance>, Vec<&Client>> = BTreeMap::new();
    for client in clients {
        parts
            .entry(partitions.find_by_render_minor(client.minor))
            .or_default()
            .push(client);
    }
    let mut all = BTreeMap::new();
    for (mig, clients) in parts {
        for process in usage.list_processes(&clients, is_unified) {
            all.insert((process.pid, mig), Process { mig, ..process });
        }
    }
    for own in compute {
        let mig = partitions.find_by_gpu_id(own.gpu_id);
        let known = all.remove(&(own.pid, mig));
        // A compute process opens every GPU, even those that it never uses. A process that does not
        // use this GPU is therefore skipped.
        if known.is_none() && !own.uses_gpu() {
            continue;
        }
        all.insert(
            (own.pid, mig),
            Process {
                mig,
                ..add_compute_readings(known, own, units, is_unified)
            },
        );
    }
    all.into_values().collect()
}

/// Adds the compute driver's readings to a process. `ROCm` programs submit work directly to the
/// GPU, and the graphics driver does not count such work.
fn add_compute_readings(
    known: Option<Process>,
    own: &ComputeProcess,
    units: Option<u32>,
    is_unified: bool,
) -> Process {
    let occupancy = own.occupied_units.zip(units.filter(|units| *units > 0));
    let occupancy =
        occupancy.map(|(occupied, units)| (occupied / f64::from(units) * 100.0).min(100.0));
    // The compute driver does not count memory on an APU.
    let memory = if is_unified {
        Reading::Absent(Absence::NoPermission)
    } else {
        Reading::Now(own.vram_bytes)
    };
    let unnamed = || Process::new_unnamed(own.pid, ProcessKind::Compute, memory);
    let process = known.unwrap_or_else(unnamed);
    let submitted = process
        .sm_percent
        .value()
        .copied()
        .filter(|share| *share > 0.0);
    // If both shares are known, the greater one is reported.
    let share = occupancy.into_iter().chain(submitted).reduce(f64::max);
    let memory_bytes = match process.memory_bytes {
        Reading::Now(bytes) => Reading::Now(bytes.max(own.vram_bytes)),
        other => other,
    };
    Process {
        memory_bytes,
        sm_percent: share.ok_or(Absence::NotSupported).into(),
        kind: match process.kind {
            ProcessKind::Compute => ProcessKind::Compute,
            ProcessKind::Graphics | ProcessKind::ComputeAndGraphics => {
                ProcessKind::ComputeAndGraphics
            }
        },
        ..process
    }
}

/// The minimum interval between reads of a compute process. To count the occupied compute units,
/// the driver walks all hardware queues, so gpumon reads the count only about once a second.
const COMPUTE_READ_INTERVAL: Duration = Duration::from_millis(900);

/// The interval at which gpumon checks whether a process has started to use another node. The check
/// is needed because a compute process opens every GPU, even those that it never uses.
const UNUSED_NODE_INTERVAL: Duration = Duration::from_secs(5);

/// The number of readings over which the occupied compute units are averaged. A single reading can
/// be 0 if it is taken between two kernels.
const AVERAGED_READINGS: usize = 5;

/// A process's use of one compute node, which is a GPU or a partition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComputeProcess {
    pid: u32,
    /// The KFD ID of the compute node.
    gpu_id: u32,
    /// The GPU memory that the process has allocated, in bytes.
    vram_bytes: u64,
    /// The number of compute units that are executing the process's work, averaged over a few
    /// seconds. Only GFX9 GPUs report this value.
    occupied_units: Option<f64>,
    /// Whether the process has a queue for submitting work to the node.
    has_queue: bool,
}

impl ComputeProcess {
    fn uses_gpu(&self) -> bool {
        self.vram_bytes > 0
            || self.has_queue
            || self.occupied_units.is_some_and(|units| units > 0.0)
    }
}

/// The compute processes on a card's GPU and partitions.
#[derive(Debug, Default)]
pub(super) struct ComputeProcesses {
    read_at: Option<Instant>,
    known: HashMap<(u32, u32), NodeUsage>,
    latest: Vec<ComputeProcess>,
}

#[derive(Debug)]
struct NodeUsage {
    read_at: Instant,
    /// The process's use of the node, or `None` if the process has not opened the node.
    process: Option<ComputeProcess>,
    /// The most recent readings of the occupied compute units.
    occupied: VecDeque<u32>,
}

impl ComputeProcesses {
    /// Returns the compute processes. KFD's files are read again if the last reading is older than
    /// `age`, but at most about once a second. All users can read the files. Their PIDs are those
    /// of the host's PID namespace.
    pub(super) fn read_processes(
        &mut self,
        kfd_root: &Path,
        nodes: &[KfdNode],
        age: Duration,
    ) -> &[ComputeProcess] {
        if self
            .read_at
            .is_none_or(|at| at.elapsed() >= age.max(COMPUTE_READ_INTERVAL))
        {
            let now = Instant::now();
            self.read_at = Some(now);
            self.read_all_processes(kfd_root, nodes, now);
        }
        &self.latest
    }

    fn read_all_processes(&mut self, kfd_root: &Path, nodes: &[KfdNode], now: Instant) {
        let mut pids = kfd::list_processes(kfd_root);
        pids.sort_unstable();
        self.known
            .retain(|(pid, _), _| pids.binary_search(pid).is_ok());
        self.latest.clear();
        for pid in pids {
            for node in nodes {
                let known = self
                    .known
                    .entry((pid, node.gpu_id))
                    .and_modify(|known| known.read_again_if_due(kfd_root, pid, node, now))
                    .or_insert_with(|| NodeUsage::read(kfd_root, pid, node, now));
                self.latest.extend(known.process.clone());
            }
        }
    }
}

impl NodeUsage {
    fn read(kfd_root: &Path, pid: u32, node: &KfdNode, now: Instant) -> Self {
        let mut known = Self {
            read_at: now,
            process: None,
            occupied: VecDeque::new(),
        };
        known.read_again(kfd_root, pid, node);
        known
    }

    fn read_again_if_due(&mut self, kfd_root: &Path, pid: u32, node: &KfdNode, now: Instant) {
        let is_used = self.process.as_ref().is_some_and(ComputeProcess::uses_gpu);
        if is_used || now.saturating_duration_since(self.read_at) >= UNUSED_NODE_INTERVAL {
            self.read_at = now;
            self.read_again(kfd_root, pid, node);
        }
    }

    fn read_again(&mut self, kfd_root: &Path, pid: u32, node: &KfdNode) {
        let files = kfd::process_files(kfd_root, pid);
        let gpu_id = node.gpu_id;
        let Ok(vram_bytes) = files.read_number(&format!("vram_{gpu_id}")) else {
            self.process = None;
            return;
        };
        let occupied = files.read_number(&format!("stats_{gpu_id}/cu_occupancy"));
        match occupied {
            Ok(units) => self.occupied.push_back(units),
            Err(_) => self.occupied.clear(),
        }
        if self.occupied.len() > AVERAGED_READINGS {
            self.occupied.pop_front();
        }
        let sum: f64 = self.occupied.iter().copied().map(f64::from).sum();
        let is_counted = !self.occupied.is_empty();
        self.process = Some(ComputeProcess {
            pid,
            gpu_id,
            vram_bytes,
            occupied_units: is_counted.then(|| sum / self.occupied.len() as f64),
            // A process with allocated memory is listed in any case, so its queues need not be
            // checked.
            has_queue: vram_bytes == 0 && kfd::has_queue(&files, gpu_id),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_compute(pid: u32, vram_bytes: u64, occupied_units: Option<f64>) -> ComputeProcess {
        ComputeProcess {
            pid,
            gpu_id: 1,
            vram_bytes,
            occupied_units,
            has_queue: false,
        }
    }

    fn list_compute(compute: &[ComputeProcess], is_unified: bool) -> Vec<Process> {
        list_processes(
            &Usage::new(&NAMES),
            &[],
            compute,
            &Partitions::default(),
            Some(304),
            is_unified,
        )
    }

    #[test]
    fn processes_of_other_users_come_from_compute_driver() {
        let processes = list_compute(
            &[
                make_compute(7, 5 << 30, Some(152.0)),
                make_compute(8, 0, None),
            ],
            false,
        );
        let [process] = &processes[..] else {
            panic!("{processes:?}")
        };
        assert_eq!(process.memory_bytes, Reading::Now(5 << 30));
        assert_eq!(process.sm_percent, Reading::Now(50.0));
    }

    #[test]
    fn missing_occupancy_leaves_process_share_absent() {
        let processes = list_compute(&[make_compute(7, 1, None)], false);
        assert_eq!(
            processes[0].sm_percent,
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn memory_of_other_users_on_apu_is_unknown() {
        let queue = ComputeProcess {
            has_queue: true,
            ..make_compute(7, 0, None)
        };
        let processes = list_compute(&[queue], true);
        assert_eq!(
            processes[0].memory_bytes,
            Reading::Absent(Absence::NoPermission)
        );
    }
}

#[cfg(test)]
mod compute_tests {
    use fake_drm::{Tree, kfd::Package};

    use super::*;

    const UNITS: u32 = 304;

    fn read(processes: &mut ComputeProcesses, tree: &Tree) -> Vec<ComputeProcess> {
        processes.read_at = None;
        processes
            .read_processes(
                &tree.kfd(),
                &kfd::find_nodes(&tree.kfd()),
                COMPUTE_READ_INTERVAL,
            )
            .to_vec()
    }

    #[test]
    fn occupied_compute_units_are_averaged() {
        let tree = Tree::new();
        let package = Package::make_mi300x("0000:05:00.0", 1, 128);
        tree.add_packages(std::slice::from_ref(&package));
        let mut processes = ComputeProcesses::default();
        for (occupied, mean) in [(UNITS, 304.0), (0, 152.0), (0, 304.0 / 3.0)] {
            tree.add_compute_usage(7, package.gpu_id(0), 1 << 30, Some(occupied));
            assert_eq!(read(&mut processes, &tree)[0].occupied_units, Some(mean));
        }
        for _ in 0..AVERAGED_READINGS {
            read(&mut processes, &tree);
        }
        assert_eq!(read(&mut processes, &tree)[0].occupied_units, Some(0.0));
    }

    #[test]
    fn unused_kfd_node_is_read_less_often() {
        let tree = Tree::new();
        let package = Package::make_mi300x("0000:05:00.0", 1, 128);
        tree.add_packages(std::slice::from_ref(&package));
        let mut processes = ComputeProcesses::default();
        let gpu_id = package.gpu_id(0);
        tree.add_compute_usage(7, gpu_id, 0, Some(0));
        std::fs::remove_dir_all(tree.kfd().join("proc/7/queues")).unwrap();
        assert!(!read(&mut processes, &tree)[0].uses_gpu());
        tree.add_compute_usage(7, gpu_id, 1 << 30, Some(0));
        assert!(
            !read(&mut processes, &tree)[0].uses_gpu(),
            "it is not its turn"
        );
        for known in processes.known.values_mut() {
            known.read_at -= UNUSED_NODE_INTERVAL;
        }
        assert!(read(&mut processes, &tree)[0].uses_gpu());
    }

    #[test]
    fn process_with_queue_counts_as_using_gpu() {
        let tree = Tree::new();
        let package = Package::make_mi300x("0000:05:00.0", 1, 128);
        tree.add_packages(std::slice::from_ref(&package));
        tree.add_compute_usage(7, package.gpu_id(0), 0, None);
        let process = read(&mut ComputeProcesses::default(), &tree).remove(0);
        assert!(process.has_queue && process.uses_gpu());
        assert_eq!(process.occupied_units, None);
    }
}
