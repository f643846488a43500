//! The processes on a GPU, combined from the driver's process lists (memory) and samples
//! (activity).

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::TimedAnswers;
use crate::{
    model::{Absence, MigInstance, Process, ProcessKind, Reading},
    vendor::nvml::{
        processes::{ProcessShare, ProcessShares, SharePercents},
        query::Query as Q,
    },
};

/// A process's PID and MIG instance, if any. A process on two instances is listed twice.
type ProcessKey = (u32, Option<MigInstance>);

pub(crate) struct ListedMemory {
    kind: ProcessKind,
    memory_bytes: Option<u64>,
    mps: bool,
}

/// Returns all processes in the driver's lists. If a list is absent, the result is absent as well.
/// The exception is a list of graphics processes that is not supported: boards without graphics do
/// not need it.
pub(crate) fn list_processes(
    answers: TimedAnswers<'_>,
) -> Reading<BTreeMap<ProcessKey, ListedMemory>> {
    let mut found = BTreeMap::new();
    for (list, kind) in [
        (Q::ComputeProcesses, ProcessKind::Compute),
        (Q::GraphicsProcesses, ProcessKind::Graphics),
    ] {
        match answers.get(list) {
            Reading::Now(list) | Reading::Earlier { value: list, .. } => {
                add_listed_processes(&mut found, list.numbers(), kind);
            }
            Reading::Absent(Absence::NotSupported) if kind == ProcessKind::Graphics => {}
            Reading::Absent(reason) => return Reading::Absent(reason),
        }
    }
    // MPS processes also appear in the list of compute processes, so they are only marked here.
    let mps = answers.get(Q::MpsProcesses);
    let mps: BTreeSet<_> = mps
        .value()
        .into_iter()
        .flat_map(|list| parse_entries(list.numbers()))
        .map(|own| own.pid)
        .collect();
    for ((pid, _), held) in &mut found {
        held.mps = mps.contains(pid);
    }
    Reading::Now(found)
}

/// Returns the processes, sorted by PID, with their activity at `asked_ms`. `sampled` is the result
/// of the request for samples. Values that are older than `begun_ms` are marked with their own
/// time.
pub(crate) fn make_processes(
    listed: &BTreeMap<ProcessKey, ListedMemory>,
    shares: &ProcessShares,
    sampled: &Reading<()>,
    asked_ms: u64,
    begun_ms: u64,
) -> Vec<Process> {
    let dated = |value, at_ms| match Reading::Now(value) {
        share if at_ms < begun_ms => share.with_time(at_ms),
        share => share,
    };
    let one = |(place, held): (&ProcessKey, &ListedMemory)| {
        let latest = shares.find_recent(place.0, asked_ms);
        make_process(*place, held, |pick| match (sampled, latest) {
            (Reading::Absent(reason), _) => Reading::Absent(reason.clone()),
            (_, None) => dated(0.0, asked_ms),
            (_, Some(ProcessShare { percent: None, .. })) => Reading::Absent(Absence::Unknown),
            (
                _,
                Some(ProcessShare {
                    percent: Some(percent),
                    at_ms,
                }),
            ) => dated(pick(&percent).into(), at_ms),
        })
    };
    listed.iter().map(one).collect()
}

fn make_process(
    (pid, mig): ProcessKey,
    held: &ListedMemory,
    share: impl Fn(fn(&SharePercents) -> u32) -> Reading<f64>,
) -> Process {
    let memory_bytes = held.memory_bytes.ok_or(Absence::Unknown).into();
    Process {
        sm_percent: share(|percent| percent.sm),
        memory_percent: share(|percent| percent.memory),
        encoder_percent: share(|percent| percent.encoder),
        decoder_percent: share(|percent| percent.decoder),
        mig,
        mps: held.mps,
        ..Process::new_unnamed(pid, held.kind, memory_bytes)
    }
}

struct ListEntry {
    pid: u32,
    memory_bytes: Option<u64>,
    mig: Option<MigInstance>,
}

/// Parses a process list. Each entry consists of PID, memory, GPU instance and compute instance; -1
/// means that a value is missing.
fn parse_entries(numbers: &[i128]) -> impl Iterator<Item = ListEntry> + '_ {
    numbers
        .as_chunks()
        .0
        .iter()
        .filter_map(|[pid, memory, gpu, compute]| {
            Some(ListEntry {
                pid: u32::try_from(*pid).ok()?,
                memory_bytes: u64::try_from(*memory).ok(),
                mig: match (u32::try_from(*gpu), u32::try_from(*compute)) {
                    (Ok(gpu_instance), Ok(compute_instance)) => Some(MigInstance {
                        gpu_instance,
                        compute_instance,
                    }),
                    _ => None,
                },
            })
        })
}

/// Adds the processes in `list`. A process that is in both the compute list and the graphics list
/// has the same memory in each, so its memory is counted once. If a process occurs twice in one
/// list, the two amounts are added up.
fn add_listed_processes(
    found: &mut BTreeMap<ProcessKey, ListedMemory>,
    list: &[i128],
    kind: ProcessKind,
) {
    for ListEntry {
        pid,
        memory_bytes,
        mig,
    } in parse_entries(list)
    {
        match found.entry((pid, mig)) {
            Entry::Vacant(free) => drop(free.insert(ListedMemory {
                kind,
                memory_bytes,
                mps: false,
            })),
            Entry::Occupied(mut known) if known.get().kind == kind => {
                let sum = known
                    .get()
                    .memory_bytes
                    .zip(memory_bytes)
                    .and_then(|(one, other)| one.checked_add(other));
                known.get_mut().memory_bytes = sum;
            }
            Entry::Occupied(mut known) => known.get_mut().kind = ProcessKind::ComputeAndGraphics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_in_compute_and_graphics_lists_is_merged() {
        let mut found = BTreeMap::new();
        add_listed_processes(
            &mut found,
            &[7, 10, -1, -1, 8, 1, 1, 0, 8, 2, 2, 0],
            ProcessKind::Compute,
        );
        add_listed_processes(&mut found, &[7, 10, -1, -1], ProcessKind::Graphics);
        let held: Vec<_> = found
            .values()
            .map(|held| (held.kind, held.memory_bytes))
            .collect();
        assert_eq!(
            held,
            [
                (ProcessKind::ComputeAndGraphics, Some(10)),
                (ProcessKind::Compute, Some(1)),
                (ProcessKind::Compute, Some(2))
            ]
        );
    }

    #[test]
    fn absurd_sum_of_memory_is_unknown() {
        let mut found = BTreeMap::new();
        let most = i128::from(u64::MAX);
        add_listed_processes(
            &mut found,
            &[7, most, -1, -1, 7, most, -1, -1, -8, 1, -1, -1],
            ProcessKind::Compute,
        );
        assert_eq!(found.len(), 1, "no process has a negative PID");
        assert_eq!(found[&(7, None)].memory_bytes, None);
    }

    #[test]
    fn memory_unknown_to_driver_is_absent() {
        let mut found = BTreeMap::new();
        add_listed_processes(&mut found, &[7, -1, -1, -1], ProcessKind::Compute);
        assert_eq!(found[&(7, None)].memory_bytes, None);
    }
}
