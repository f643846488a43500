//! The processes on a GPU, combined from the kernel's graphics driver and its compute driver.

use std::collections::BTreeMap;

use super::{compute::ComputeProcess, partitions::Partitions};
use crate::{
    model::{Absence, MigInstance, Process, ProcessKind, Reading},
    vendor::drm::{Client, Names, Usage},
};

/// The names in amdgpu's `fdinfo` files. Buffers of an APU are in the machine's memory (GTT).
pub(super) static NAMES: Names = Names {
    memory: &["vram"],
    shared_memory: &["gtt"],
    graphics: &["gfx"],
    compute: &["compute"],
    encoders: &["enc", "enc_1"],
    decoders: &["dec"],
};

/// Returns the processes on one card, sorted by PID. A process that uses several partitions is
/// listed for each of them.
pub(super) fn list(
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
            .entry(partitions.of_minor(client.minor))
            .or_default()
            .push(client);
    }
    let mut all = BTreeMap::new();
    for (mig, clients) in parts {
        for process in usage.processes(&clients, is_unified) {
            all.insert((process.pid, mig), Process { mig, ..process });
        }
    }
    for own in compute {
        let mig = partitions.of_gpu_id(own.gpu_id);
        let known = all.remove(&(own.pid, mig));
        // A process opens all GPUs, even those that it does not use.
        if known.is_none() && !own.is_used() {
            continue;
        }
        all.insert(
            (own.pid, mig),
            Process {
                mig,
                ..with_compute(known, own, units, is_unified)
            },
        );
    }
    all.into_values().collect()
}

/// Adds the compute driver's readings to a process. The graphics driver does not see work that a
/// program submits to the GPU directly, as `ROCm` does.
fn with_compute(
    known: Option<Process>,
    own: &ComputeProcess,
    units: Option<u32>,
    is_unified: bool,
) -> Process {
    let occupancy = own.occupied_units.zip(units.filter(|units| *units > 0));
    let occupancy =
        occupancy.map(|(occupied, units)| (occupied / f64::from(units) * 100.0).min(100.0));
    // The compute driver does not count an APU's memory.
    let memory = if is_unified {
        Reading::Absent(Absence::NoPermission)
    } else {
        Reading::Now(own.vram_bytes)
    };
    let unnamed = || Process::without_name(own.pid, ProcessKind::Compute, memory);
    let process = known.unwrap_or_else(unnamed);
    let submitted = process
        .sm_percent
        .value()
        .copied()
        .filter(|share| *share > 0.0);
    let share = match (occupancy, submitted) {
        (Some(occupancy), submitted) => Reading::Now(occupancy.max(submitted.unwrap_or(0.0))),
        (None, Some(submitted)) => Reading::Now(submitted),
        (None, None) => Reading::Absent(Absence::NotSupported),
    };
    let memory_bytes = match process.memory_bytes {
        Reading::Now(bytes) => Reading::Now(bytes.max(own.vram_bytes)),
        other => other,
    };
    Process {
        memory_bytes,
        sm_percent: share,
        kind: match process.kind {
            ProcessKind::Compute => ProcessKind::Compute,
            ProcessKind::Graphics | ProcessKind::ComputeAndGraphics => {
                ProcessKind::ComputeAndGraphics
            }
        },
        ..process
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(pid: u32, vram_bytes: u64, occupied_units: Option<f64>) -> ComputeProcess {
        ComputeProcess {
            pid,
            gpu_id: 1,
            vram_bytes,
            occupied_units,
            has_queue: false,
        }
    }

    fn list_compute(compute: &[ComputeProcess], is_unified: bool) -> Vec<Process> {
        list(
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
            &[compute(7, 5 << 30, Some(152.0)), compute(8, 0, None)],
            false,
        );
        let [process] = &processes[..] else {
            panic!("{processes:?}")
        };
        assert_eq!(process.memory_bytes, Reading::Now(5 << 30));
        assert_eq!(process.sm_percent, Reading::Now(50.0));
    }

    #[test]
    fn missing_occupancy_leaves_share_absent() {
        let processes = list_compute(&[compute(7, 1, None)], false);
        assert_eq!(
            processes[0].sm_percent,
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn memory_of_others_on_apu_is_unknown() {
        let queue = ComputeProcess {
            has_queue: true,
            ..compute(7, 0, None)
        };
        let processes = list_compute(&[queue], true);
        assert_eq!(
            processes[0].memory_bytes,
            Reading::Absent(Absence::NoPermission)
        );
    }
}
