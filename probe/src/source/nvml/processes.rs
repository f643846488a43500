//! The processes on a GPU: the driver's lists of who holds memory, joined with its samples of who ran.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    time::Duration,
};

use nvml_wrapper::Device;

use super::{
    ask::Asker,
    paced::Every,
    raw,
    shares::{Percent, Share, Shares},
};
use crate::model::{Absence, MigInstance, Process, ProcessKind, Reading, now_ms};

/// A call for the samples costs 2 ms, and there is a new one once a second at most.
const SAMPLES_EVERY: Duration = Duration::from_secs(1);

/// Joins lists and samples, remembering the samples between two reads.
#[derive(Debug)]
pub(super) struct ProcessReader {
    every: Every,
    /// What came of asking for samples last.
    sampled: Reading<()>,
    shares: Shares,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self { every: Every::new(SAMPLES_EVERY), sampled: Reading::Now(()), shares: Shares::default() }
    }

    /// Every process on the device, by PID. Absent where either list is, but for a board without graphics.
    pub(super) fn read(&mut self, device: &Device<'_>, asker: &mut Asker) -> Reading<Vec<Process>> {
        let compute = asker.ask("compute processes", || raw::compute_processes(device));
        let graphics = asker.ask("graphics processes", || raw::graphics_processes(device));
        // They are in the list of those that compute, too.
        let mps: BTreeSet<_> = asker
            .ask("MPS processes", || raw::mps_processes(device))
            .value()
            .into_iter()
            .flatten()
            .map(|held| held.pid)
            .collect();
        let mut found = BTreeMap::new();
        for (list, kind) in [(compute, ProcessKind::Compute), (graphics, ProcessKind::Graphics)] {
            match list {
                Reading::Now(list) | Reading::Earlier { value: list, .. } => merge(&mut found, &list, kind),
                Reading::Absent(Absence::NotSupported) if kind == ProcessKind::Graphics => {}
                Reading::Absent(reason) => return Reading::Absent(reason),
            }
        }
        if found.is_empty() {
            self.shares.retain(|_| false);
            return Reading::Now(Vec::new());
        }
        let now = now_ms();
        if self.every.is_due() {
            let samples =
                asker.ask("process utilization", || raw::process_utilization(device, self.shares.newest_us()));
            self.sampled = samples.map(|samples| self.shares.take_in(&samples, now));
        }
        self.shares.retain(|pid| found.keys().any(|(listed, _)| *listed == pid));
        let process = |(of, held): (&Place, &Held)| self.process(*of, held, mps.contains(&of.0), now);
        Reading::Now(found.iter().map(process).collect())
    }

    fn process(&self, (pid, mig): Place, held: &Held, mps: bool, now_ms: u64) -> Process {
        let latest = self.shares.of(pid, now_ms);
        let share = |pick: fn(&Percent) -> u32| match (&self.sampled, latest) {
            (Reading::Absent(reason), _) => Reading::Absent(reason.clone()),
            (_, None) => Reading::Now(0.0),
            (_, Some(Share { percent: None, .. })) => Reading::Absent(Absence::Unknown),
            (_, Some(Share { at_ms, percent: Some(percent) })) => {
                Reading::Earlier { value: f64::from(pick(&percent)), at_ms }
            }
        };
        Process {
            pid,
            kind: held.kind,
            memory_bytes: held.memory_bytes.map_or(Reading::Absent(Absence::Unknown), Reading::Now),
            sm_percent: share(|percent| percent.sm),
            memory_percent: share(|percent| percent.memory),
            encoder_percent: share(|percent| percent.encoder),
            decoder_percent: share(|percent| percent.decoder),
            name: Reading::Absent(Absence::NoAnswer),
            command: Reading::Absent(Absence::NoAnswer),
            user: Reading::Absent(Absence::NoAnswer),
            started_ms: Reading::Absent(Absence::NoAnswer),
            mig,
            mps,
            owner: Reading::Absent(Absence::NoAnswer),
        }
    }
}

/// A process, and the MIG instance where it runs on one: on two of them it is listed twice.
type Place = (u32, Option<MigInstance>);

/// What a process holds.
struct Held {
    kind: ProcessKind,
    memory_bytes: Option<u64>,
}

/// A process in both lists is one process with its memory told twice; one that stands twice in the same list holds
/// both.
fn merge(found: &mut BTreeMap<Place, Held>, list: &[raw::Held], kind: ProcessKind) {
    for entry in list {
        let mig = entry.instance.map(|(gpu_instance, compute_instance)| MigInstance { gpu_instance, compute_instance });
        match found.entry((entry.pid, mig)) {
            Entry::Vacant(free) => drop(free.insert(Held { kind, memory_bytes: entry.memory_bytes })),
            Entry::Occupied(mut known) if known.get().kind == kind => {
                let sum = known.get().memory_bytes.zip(entry.memory_bytes).map(|(one, other)| one + other);
                known.get_mut().memory_bytes = sum;
            }
            Entry::Occupied(mut known) => known.get_mut().kind = ProcessKind::ComputeAndGraphics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: u32, memory_bytes: u64, instance: Option<(u32, u32)>) -> raw::Held {
        raw::Held { pid, memory_bytes: Some(memory_bytes), instance }
    }

    #[test]
    fn a_process_in_both_lists_is_one_and_on_two_instances_two() {
        let mut found = BTreeMap::new();
        merge(
            &mut found,
            &[entry(7, 10, None), entry(8, 1, Some((1, 0))), entry(8, 2, Some((2, 0)))],
            ProcessKind::Compute,
        );
        merge(&mut found, &[entry(7, 10, None)], ProcessKind::Graphics);
        let held: Vec<_> = found.values().map(|held| (held.kind, held.memory_bytes)).collect();
        assert_eq!(
            held,
            [
                (ProcessKind::ComputeAndGraphics, Some(10)),
                (ProcessKind::Compute, Some(1)),
                (ProcessKind::Compute, Some(2))
            ]
        );
    }
}
