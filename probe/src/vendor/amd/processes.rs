//! The processes on a GPU, combined from the graphics driver's and the compute driver's data.

use std::collections::BTreeMap;

use super::{compute::ComputeProcess, partitions::Partitions};
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
            .entry(partitions.find_by_minor(client.minor))
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
        // A process opens every GPU, even those it never uses.
        if known.is_none() && !own.is_used() {
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

/// Adds the compute driver's readings to a process. The graphics driver does not count work that is
/// submitted directly to the GPU, as `ROCm` programs do.
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
    fn missing_occupancy_leaves_share_absent() {
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
