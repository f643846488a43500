//! The processes on a GPU: the driver's lists of who holds memory, joined with its samples of who ran.

use std::collections::{BTreeMap, HashMap, btree_map::Entry};

use nvml_wrapper::{
    Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError, struct_wrappers::device::ProcessInfo,
};

use nvml_wrapper_sys::bindings::nvmlProcessUtilizationSample_t;

use super::{ask::Asker, raw};
use crate::model::{Absence, Process, ProcessKind, Reading, now_ms};

/// The driver keeps the samples of many seconds. Only those of the last one say what a process does now; asked for all
/// of them, an idle process looks busy.
const FIRST_LOOK_BACK_US: u64 = 1_000_000;

/// The driver makes a sample up to once a second, so a value stands for this long. After that, no sample means that
/// nothing ran.
const SAMPLE_LIFE_MS: u64 = 2_000;

/// A sample from further ahead than this is no sample but a clock that was set back, or a driver's odd answer. It must
/// neither stay for ever nor hide those that come.
const FUTURE_US: u64 = 2_000_000;

/// Joins lists and samples, remembering the samples between two reads.
#[derive(Debug)]
pub(super) struct ProcessReader {
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
        Self { last_seen_us: (now_ms() * 1000).saturating_sub(FIRST_LOOK_BACK_US), latest: HashMap::new() }
    }

    /// Every process on the device, by PID. Absent where either list is, but for a board without graphics.
    pub(super) fn read(&mut self, nvml: &Nvml, device: &Device<'_>, asker: &mut Asker) -> Reading<Vec<Process>> {
        let compute = asker.ask("compute processes", || list(device, Device::running_compute_processes));
        let graphics = asker.ask("graphics processes", || list(device, Device::running_graphics_processes));
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
        let sampled = asker.ask("process utilization", || raw::process_utilization(nvml, device, self.last_seen_us));
        let sampled = sampled.map(|samples| self.take_in(&samples, now));
        self.latest.retain(|pid, _| found.contains_key(pid));
        Reading::Now(found.iter().map(|(pid, held)| self.process(*pid, held, &sampled, now)).collect())
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

    fn process(&self, pid: u32, held: &Held, sampled: &Reading<()>, now_ms: u64) -> Process {
        let shares = self.latest.get(&pid);
        let share = |pick: fn(&Shares) -> u32| match (sampled, shares) {
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
            mig: None,
            mps: false,
            owner: Reading::Absent(Absence::NoAnswer),
        }
    }
}

/// What a process holds.
struct Held {
    kind: ProcessKind,
    memory_bytes: Option<u64>,
}

/// A process in both lists is one process with its memory told twice; one that stands twice in the same list (on two
/// MIG instances) holds both.
fn merge(found: &mut BTreeMap<u32, Held>, list: &[ProcessInfo], kind: ProcessKind) {
    for info in list {
        let memory_bytes = match info.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        match found.entry(info.pid) {
            Entry::Vacant(free) => drop(free.insert(Held { kind, memory_bytes })),
            Entry::Occupied(mut known) if known.get().kind == kind => {
                let sum = known.get().memory_bytes.zip(memory_bytes).map(|(one, other)| one + other);
                known.get_mut().memory_bytes = sum;
            }
            Entry::Occupied(mut known) => known.get_mut().kind = ProcessKind::ComputeAndGraphics,
        }
    }
}

/// Reads a list; it grew between the driver's two calls now and then, so a second try is worth it.
fn list<'a>(
    device: &Device<'a>,
    call: fn(&Device<'a>) -> Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    match call(device) {
        Err(NvmlError::InsufficientSize(_)) => call(device),
        result => result,
    }
}
