//! The processes on a GPU: the driver's lists of who holds memory, joined with its samples of who ran.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    time::Duration,
};

use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings::nvmlProcessUtilizationSample_t;

use super::{ask::Asker, paced::Every, raw};
use crate::model::{Absence, MigInstance, Process, ProcessKind, Reading, now_ms};

/// The driver keeps the samples of many seconds. Only those of the last one say what a process does now; asked for all
/// of them, an idle process looks busy.
const FIRST_LOOK_BACK_US: u64 = 1_000_000;

/// The driver makes a sample up to once a second, so a value stands for this long. After that, no sample means that
/// nothing ran.
const SAMPLE_LIFE_MS: u64 = 2_000;

/// A sample from further ahead than this is no sample but a clock that was set back, or a driver's odd answer. It must
/// neither stay for ever nor hide those that come.
const FUTURE_US: u64 = 2_000_000;

/// A call for the samples costs 2 ms, and there is a new one once a second at most.
const SAMPLES_EVERY: Duration = Duration::from_secs(1);

/// Joins lists and samples, remembering the samples between two reads.
#[derive(Debug)]
pub(super) struct ProcessReader {
    every: Every,
    /// What came of asking for samples last.
    sampled: Reading<()>,
    last_seen_us: u64,
    latest: HashMap<u32, Shares>,
}

/// The newest sample of one process, in percent.
#[derive(Debug, Clone, Copy)]
struct Shares {
    at_us: u64,
    sm: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self {
            every: Every::new(SAMPLES_EVERY),
            sampled: Reading::Now(()),
            last_seen_us: (now_ms() * 1000).saturating_sub(FIRST_LOOK_BACK_US),
            latest: HashMap::new(),
        }
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
            self.latest.clear();
            return Reading::Now(Vec::new());
        }
        let now = now_ms();
        if self.last_seen_us > now * 1000 + FUTURE_US {
            *self = Self::new();
        }
        if self.every.is_due() {
            let samples = asker.ask("process utilization", || raw::process_utilization(device, self.last_seen_us));
            self.sampled = samples.map(|samples| self.take_in(&samples, now));
        }
        self.latest.retain(|pid, _| found.keys().any(|(listed, _)| listed == pid));
        let process = |(of, held): (&Place, &Held)| self.process(*of, held, mps.contains(&of.0), now);
        Reading::Now(found.iter().map(process).collect())
    }

    /// Keeps the newest sample of each process. Values above 100 occur and mean nothing.
    fn take_in(&mut self, samples: &[nvmlProcessUtilizationSample_t], now_ms: u64) {
        for sample in samples.iter().filter(|sample| sample.timeStamp <= now_ms * 1000 + FUTURE_US) {
            self.last_seen_us = self.last_seen_us.max(sample.timeStamp);
            let shares = [sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil];
            let is_newer = self.latest.get(&sample.pid).is_none_or(|known| known.at_us < sample.timeStamp);
            if is_newer && shares.iter().all(|share| *share <= 100) {
                let [sm, memory, encoder, decoder] = shares;
                self.latest.insert(sample.pid, Shares { at_us: sample.timeStamp, sm, memory, encoder, decoder });
            }
        }
    }

    fn process(&self, (pid, mig): Place, held: &Held, mps: bool, now_ms: u64) -> Process {
        let shares = self.latest.get(&pid);
        let share = |pick: fn(&Shares) -> u32| match (&self.sampled, shares) {
            (Reading::Absent(reason), _) => Reading::Absent(reason.clone()),
            (_, Some(shares)) if now_ms.saturating_sub(shares.at_us / 1000) < SAMPLE_LIFE_MS => {
                Reading::Earlier { value: f64::from(pick(shares)), at_ms: shares.at_us / 1000 }
            }
            (_, _) => Reading::Now(0.0),
        };
        Process {
            pid,
            kind: held.kind,
            memory_bytes: held.memory_bytes.map_or(Reading::Absent(Absence::Unknown), Reading::Now),
            sm_percent: share(|shares| shares.sm),
            memory_percent: share(|shares| shares.memory),
            encoder_percent: share(|shares| shares.encoder),
            decoder_percent: share(|shares| shares.decoder),
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
