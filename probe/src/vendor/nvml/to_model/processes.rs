//! The processes on a GPU, from the driver's lists of memory and its samples of activity.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::super::{
    cached::Answers,
    shares::{Percent, Share, Shares},
};
use crate::{
    model::{Absence, MigInstance, Process, ProcessKind, Reading},
    vendor::nvml::query::Query as Q,
};

/// A process and its MIG instance, if it runs on one. A process on two instances is listed twice.
type Place = (u32, Option<MigInstance>);

pub(in super::super) struct Held {
    kind: ProcessKind,
    memory_bytes: Option<u64>,
    mps: bool,
}

/// Returns all processes in the driver's lists. They are absent if a list is, but boards without
/// graphics need no list of graphics processes.
pub(in super::super) fn listed(answers: Answers<'_>) -> Reading<BTreeMap<Place, Held>> {
    let mut found = BTreeMap::new();
    for (list, kind) in [
        (Q::ComputeProcesses, ProcessKind::Compute),
        (Q::GraphicsProcesses, ProcessKind::Graphics),
    ] {
        match answers.value(list) {
            Reading::Now(list) | Reading::Earlier { value: list, .. } => {
                merge(&mut found, list.numbers(), kind);
            }
            Reading::Absent(Absence::NotSupported) if kind == ProcessKind::Graphics => {}
            Reading::Absent(reason) => return Reading::Absent(reason),
        }
    }
    // MPS processes are also in the list of compute processes.
    let mps = answers.value(Q::MpsProcesses);
    let mps: BTreeSet<_> = mps
        .value()
        .into_iter()
        .flat_map(|list| entries(list.numbers()))
        .map(|own| own.pid)
        .collect();
    for ((pid, _), held) in &mut found {
        held.mps = mps.contains(pid);
    }
    Reading::Now(found)
}

/// Returns the processes by PID, with their activity as of `asked_ms`. `sampled` is the result of
/// the request for samples. Values from before `begun_ms` keep their own time.
pub(in super::super) fn processes(
    listed: &BTreeMap<Place, Held>,
    shares: &Shares,
    sampled: &Reading<()>,
    asked_ms: u64,
    begun_ms: u64,
) -> Vec<Process> {
    let dated = |value, at_ms| match Reading::Now(value) {
        share if at_ms < begun_ms => share.dated(at_ms),
        share => share,
    };
    let one = |(place, held): (&Place, &Held)| {
        let latest = shares.of(place.0, asked_ms);
        process(*place, held, |pick| match (sampled, latest) {
            (Reading::Absent(reason), _) => Reading::Absent(reason.clone()),
            (_, None) => dated(0.0, asked_ms),
            (_, Some(Share { percent: None, .. })) => Reading::Absent(Absence::Unknown),
            (
                _,
                Some(Share {
                    percent: Some(percent),
                    at_ms,
                }),
            ) => dated(pick(&percent).into(), at_ms),
        })
    };
    listed.iter().map(one).collect()
}

fn process(
    (pid, mig): Place,
    held: &Held,
    share: impl Fn(fn(&Percent) -> u32) -> Reading<f64>,
) -> Process {
    let memory_bytes = held
        .memory_bytes
        .map_or(Reading::Absent(Absence::Unknown), Reading::Now);
    Process {
        sm_percent: share(|percent| percent.sm),
        memory_percent: share(|percent| percent.memory),
        encoder_percent: share(|percent| percent.encoder),
        decoder_percent: share(|percent| percent.decoder),
        mig,
        mps: held.mps,
        ..Process::without_name(pid, held.kind, memory_bytes)
    }
}

struct Listed {
    pid: u32,
    memory_bytes: Option<u64>,
    mig: Option<MigInstance>,
}

/// Parses a list with PID, memory, GPU instance and compute instance of each process. -1 means that
/// a value is missing.
fn entries(numbers: &[i128]) -> impl Iterator<Item = Listed> + '_ {
    numbers
        .as_chunks()
        .0
        .iter()
        .filter_map(|[pid, memory, gpu, compute]| {
            Some(Listed {
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

/// Adds a list to the processes. A process in both lists is one process, whose memory is listed
/// twice. If it occurs twice in the same list, the two amounts are added.
fn merge(found: &mut BTreeMap<Place, Held>, list: &[i128], kind: ProcessKind) {
    for Listed {
        pid,
        memory_bytes,
        mig,
    } in entries(list)
    {
        match found.entry((pid, mig)) {
            Entry::Vacant(free) => drop(free.insert(Held {
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
    fn a_process_in_both_lists_is_one_and_on_two_instances_two() {
        let mut found = BTreeMap::new();
        merge(
            &mut found,
            &[7, 10, -1, -1, 8, 1, 1, 0, 8, 2, 2, 0],
            ProcessKind::Compute,
        );
        merge(&mut found, &[7, 10, -1, -1], ProcessKind::Graphics);
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
        merge(
            &mut found,
            &[7, most, -1, -1, 7, most, -1, -1, -8, 1, -1, -1],
            ProcessKind::Compute,
        );
        assert_eq!(found.len(), 1, "no process has a negative PID");
        assert_eq!(found[&(7, None)].memory_bytes, None);
    }

    #[test]
    fn what_the_driver_does_not_know_is_unknown() {
        let mut found = BTreeMap::new();
        merge(&mut found, &[7, -1, -1, -1], ProcessKind::Compute);
        assert_eq!(found[&(7, None)].memory_bytes, None);
    }
}
