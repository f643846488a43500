//! The use of GPUs by kernels of notebooks, kept for queries about past spans.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    LONGEST_UNREPORTED_GAP_MS,
    gpu::{GpuSteps, Used, gpu_cost},
    memory::{Memory, held},
    total_cost,
};
use crate::{
    model::{Cost, Gpu, GpuCost, GpuSample, JobKind, Process, Record},
    units::three_digits,
    usage::{accounts::OwnerKey, steps::Span},
};

/// The maximum number of remembered kernels. The kernel that has not used a GPU for the longest
/// time is removed first.
const MOST_KERNELS: usize = 64;

/// The maximum number of remembered parts of a kernel, over all GPUs: less than a mebibyte.
const MOST_PARTS: usize = 8192;

/// The maximum length of joined parts, relative to their age. A cell that started at that time has
/// run for that age, so that the error of its cost is at most this share.
const COARSE_SHARE: f64 = 0.01;

/// The number of added parts after which neighbors are joined again.
const JOINED_EVERY: usize = 64;

/// A meter for all kernels.
#[derive(Debug, Default)]
pub struct KernelMeter {
    gpus: BTreeMap<u32, GpuSteps>,
    kernels: BTreeMap<OwnerKey, Kernel>,
    /// The time of the first sample. The newest follows.
    first_ms: f64,
    newest_ms: f64,
}

#[derive(Debug, Default)]
struct Kernel {
    /// The time at which the kernel first used a GPU. The latest follows.
    first_ms: f64,
    seen_ms: f64,
    /// The use by GPU.
    used: BTreeMap<u32, Parts>,
    /// The memory by GPU; `None` is the sum of all GPUs.
    memory: BTreeMap<Option<u32>, Parts>,
}

/// The use in consecutive parts of the time, the oldest first.
#[derive(Debug, Default)]
struct Parts {
    parts: VecDeque<(Span, Used)>,
    /// The number of parts added since neighbors were joined.
    added: usize,
}

impl Parts {
    fn push(&mut self, span: Span, used: Used) {
        self.parts.push_back((span, used));
        self.added += 1;
        if self.added < JOINED_EVERY {
            return;
        }
        self.added = 0;
        let mut joined: VecDeque<(Span, Used)> = VecDeque::new();
        for (part, used) in self.parts.drain(..) {
            let longest_ms = COARSE_SHARE * (span.to_ms - part.to_ms);
            match joined.back_mut() {
                Some((known, sum)) if part.to_ms - known.from_ms <= longest_ms => {
                    known.to_ms = part.to_ms;
                    sum.add(&used);
                }
                _ => joined.push_back((part, used)),
            }
        }
        self.parts = joined;
    }

    fn limit(&mut self, most: usize) {
        let surplus = self.parts.len().saturating_sub(most);
        self.parts.drain(..surplus);
    }
}

impl KernelMeter {
    /// Applies the next record.
    pub fn push(&mut self, record: &Record) {
        match record {
            Record::Sample(sample) => {
                self.push_gpus(sample.at_ms as f64, sample.interval_ms, &sample.gpus);
            }
            Record::Trace(trace) => {
                let steps = self.gpus.entry(trace.index).or_default();
                steps.add_trace(trace);
                settle(steps, trace.index, &mut self.kernels);
            }
            _ => {}
        }
    }

    fn push_gpus(&mut self, at_ms: f64, interval_ms: u32, gpus: &[GpuSample]) {
        if at_ms < self.newest_ms {
            // The clock was set back, so that the times of earlier parts are no longer comparable.
            *self = Self::default();
        }
        if self.newest_ms == 0.0 {
            (self.first_ms, self.newest_ms) = (at_ms, at_ms);
        }
        self.newest_ms = at_ms;
        let always = Span {
            from_ms: 0.0,
            to_ms: f64::INFINITY,
        };
        let mut all: BTreeMap<OwnerKey, (f64, Vec<&Process>)> = BTreeMap::new();
        for gpu in gpus {
            let mut owners = BTreeMap::new();
            let mut own: BTreeMap<OwnerKey, Vec<&Process>> = BTreeMap::new();
            for process in gpu.processes.value().into_iter().flatten() {
                let Some(key) = kernel_key(process) else {
                    continue;
                };
                let kernel = self.kernels.entry(key.clone()).or_insert_with(|| Kernel {
                    first_ms: at_ms,
                    ..Kernel::default()
                });
                kernel.seen_ms = at_ms;
                owners.insert(process.pid, key.clone());
                own.entry(key).or_default().push(process);
            }
            let steps = self.gpus.entry(gpu.index).or_default();
            let before: BTreeSet<OwnerKey> = steps.owners().cloned().collect();
            let Some(added) = steps.push(gpu, interval_ms, owners, always) else {
                continue;
            };
            settle(steps, gpu.index, &mut self.kernels);
            for key in before {
                own.entry(key).or_default();
            }
            let from_ms = added.held.map_or(at_ms, |span| span.from_ms);
            for (key, processes) in own {
                add_memory(
                    &mut self.kernels,
                    &key,
                    Some(gpu.index),
                    from_ms,
                    at_ms,
                    &processes,
                );
                let (first_ms, known) = all.entry(key).or_insert((from_ms, Vec::new()));
                *first_ms = first_ms.min(from_ms);
                known.extend(processes);
            }
        }
        for (key, (from_ms, processes)) in all {
            add_memory(&mut self.kernels, &key, None, from_ms, at_ms, &processes);
        }
        self.forget();
    }

    /// Removes the kernels that have not used a GPU for the longest time, and the oldest parts.
    fn forget(&mut self) {
        while self.kernels.len() > MOST_KERNELS {
            let oldest = self
                .kernels
                .iter()
                .min_by(|(_, one), (_, other)| one.seen_ms.total_cmp(&other.seen_ms));
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.kernels.remove(&key);
        }
        for kernel in self.kernels.values_mut() {
            let logs = kernel.used.len() + kernel.memory.len();
            let most = MOST_PARTS / logs.max(1);
            kernel.used.values_mut().for_each(|parts| parts.limit(most));
            kernel
                .memory
                .values_mut()
                .for_each(|parts| parts.limit(most));
        }
    }

    /// Returns `true` if everything until this time, in milliseconds since 1970, has been measured.
    pub fn is_final(&self, to_ms: f64) -> bool {
        self.newest_ms >= to_ms && self.gpus.values().all(|gpu| gpu.is_final(to_ms))
    }

    /// Returns the cost of a kernel and its descendants in a span, as far as it is known. Times are
    /// in milliseconds since 1970. `gpus` are those of the inventory, which provides names. A
    /// kernel of a user that `is_visible` refuses is treated like one without GPUs.
    pub fn cost(
        &self,
        kernel_id: &str,
        (from_ms, to_ms): (f64, f64),
        gpus: &[Gpu],
        is_visible: impl Fn(Option<&str>) -> bool,
    ) -> Cost {
        let span = Span { from_ms, to_ms };
        // A process of another user can use the ID of a kernel, but only after the kernel has it,
        // so that the first one is the right one.
        let known = self
            .kernels
            .iter()
            .filter(|(key, _)| key.job.as_ref().is_some_and(|(_, id)| id == kernel_id))
            .filter(|(key, _)| is_visible(key.user.as_deref()))
            .min_by(|(_, one), (_, other)| one.first_ms.total_cmp(&other.first_ms));
        let none = Kernel::default();
        let (key, kernel) = known.unzip();
        let kernel = kernel.unwrap_or(&none);
        let mut costs = Vec::new();
        for (index, steps) in &self.gpus {
            let mut total = Used::default();
            let mut add = |part: Span, used: &Used| {
                if let Some(used) = steps.cut_to_span(used, part, span) {
                    total.add(&used);
                }
            };
            for (part, used) in kernel.used.get(index).iter().flat_map(|parts| &parts.parts) {
                add(*part, used);
            }
            steps.each_pending(|owner, part, used| {
                if Some(owner) == key {
                    add(part, &used);
                }
            });
            let memory = self.memory(kernel, Some(*index), span);
            if total.held_s > 0.0 {
                costs.push(gpu_cost(*index, &total, &memory, GpuCost::default()));
            }
        }
        let mut cost = total_cost(span, &self.memory(kernel, None, span), costs, gpus);
        let missing_ms = self.first_ms.min(to_ms) - from_ms;
        if missing_ms > LONGEST_UNREPORTED_GAP_MS {
            let seconds = three_digits(missing_ms / 1000.0);
            cost.lost.push(format!(
                "no readings for {seconds} s; the numbers are of the rest of the time"
            ));
        }
        cost
    }

    /// Returns the memory of a kernel around a span, on one GPU or on all.
    fn memory(&self, kernel: &Kernel, gpu: Option<u32>, span: Span) -> Memory {
        let mut memory = Memory::default();
        if self.first_ms <= span.from_ms {
            memory.add(self.first_ms, Some(0), span);
        }
        for (part, held) in kernel
            .memory
            .get(&gpu)
            .iter()
            .flat_map(|parts| &parts.parts)
        {
            if part.to_ms < span.to_ms {
                memory.add(part.to_ms, held.peak_bytes, span);
            }
            memory.add(part.to_ms, held.bytes, span);
        }
        memory.add(self.newest_ms, memory.newest(), span);
        memory
    }
}

/// Returns the key of the kernel that a process belongs to.
fn kernel_key(process: &Process) -> Option<OwnerKey> {
    let notebook = process.owner.value()?.notebook.as_ref()?;
    Some(OwnerKey {
        user: process.user.value().cloned(),
        job: Some((JobKind::Notebook, notebook.kernel_id.clone())),
    })
}

/// Adds the complete steps of a GPU to the kernels that used it.
fn settle(steps: &mut GpuSteps, index: u32, kernels: &mut BTreeMap<OwnerKey, Kernel>) {
    steps.settle(false, |owner, span, used| {
        if let Some(kernel) = kernels.get_mut(owner) {
            kernel.used.entry(index).or_default().push(span, used);
        }
    });
}

/// Adds the memory of a kernel's processes to one of its logs.
fn add_memory(
    kernels: &mut BTreeMap<OwnerKey, Kernel>,
    key: &OwnerKey,
    gpu: Option<u32>,
    from_ms: f64,
    to_ms: f64,
    processes: &[&Process],
) {
    let Some(kernel) = kernels.get_mut(key) else {
        return;
    };
    let parts = kernel.memory.entry(gpu).or_default();
    // The memory was 0 until the first part.
    let newest_ms = parts.parts.back().map_or(0.0, |(span, _)| span.to_ms);
    let is_first = newest_ms < from_ms && from_ms < to_ms;
    let mut push = |from_ms, to_ms, bytes| {
        let used = Used {
            bytes,
            peak_bytes: bytes,
            ..Used::default()
        };
        parts.push(Span { from_ms, to_ms }, used);
    };
    if is_first {
        push(from_ms, from_ms, Some(0));
    }
    push(from_ms, to_ms, held(processes.iter().copied()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples::{process, sample},
        model::{Notebook, Owner, Reading, Trace, TraceMetric},
        usage::cost::CostMeter,
    };

    const GIB: u64 = 1 << 30;

    fn is_own(process: &Process) -> bool {
        let notebook = process
            .owner
            .value()
            .and_then(|owner| owner.notebook.as_ref());
        notebook.is_some_and(|notebook| notebook.kernel_id == "k")
    }

    /// Returns a GPU with this power draw that is busy for half of the time, with processes of a
    /// kernel and of others.
    fn gpu(at_ms: u64, watts: f64, own: &[u64], others: usize) -> GpuSample {
        let mut gpu = sample(at_ms);
        gpu.power.instant_watts = Reading::Now(watts);
        gpu.utilization.gpu_percent = Reading::Now(50.0);
        let notebook = Notebook {
            kernel_id: "k".to_owned(),
            kernel_pid: 10,
            path: Reading::Now("train.ipynb".to_owned()),
            kernel_name: None,
        };
        let own = own.iter().zip(10..).map(|(bytes, pid)| {
            let mut process = process(pid, *bytes);
            process.owner = Reading::Now(Owner {
                notebook: Some(notebook.clone()),
                ..Owner::default()
            });
            process.user = Reading::Now("ana".to_owned());
            process
        });
        let others = (0..others).map(|place| process(100 + place as u32, GIB));
        let mut processes: Vec<_> = own.chain(others).collect();
        let count = processes.len() as f64;
        for process in &mut processes {
            process.sm_percent = Reading::Now(50.0 / count);
        }
        gpu.processes = Reading::Now(processes);
        gpu
    }

    fn trace(start_ms: u64, watts: impl Iterator<Item = f64>) -> Record {
        let values: Vec<f64> = watts.collect();
        Record::Trace(Trace {
            index: 0,
            uuid: None,
            metric: TraceMetric::PowerWatts,
            start_us: start_ms * 1000,
            offsets_us: (0..values.len() as u32).map(|at| at * 20_000).collect(),
            values,
            gap: false,
        })
    }

    fn cost_of(meter: &KernelMeter, span: (f64, f64)) -> Cost {
        meter.cost("k", span, &[], |user| user == Some("ana"))
    }

    /// Asserts that the cost of a kernel equals that of a meter for the same span.
    fn assert_same(kernel: &Cost, own: &Cost) {
        let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() < 1e-6 * other.abs().max(1.0),
            (one, other) => one == other,
        };
        let joules = |cost: &Cost| cost.energy_joules.map(|joules| joules.estimate);
        let most = |cost: &Cost| cost.energy_joules.map(|joules| joules.most);
        let memory = |cost: &Cost| (cost.peak_memory_bytes, cost.memory_change_bytes);
        let is_same = near(kernel.gpu_s, own.gpu_s)
            && near(joules(kernel), joules(own))
            && near(most(kernel), most(own))
            && memory(kernel) == memory(own)
            && kernel.shared == own.shared
            && kernel.gpus.len() == own.gpus.len();
        assert!(is_same, "{kernel:?}\n{own:?}");
    }

    #[test]
    fn recent_spans_cost_what_a_meter_finds() {
        let samples: Vec<_> = (0..=100)
            .map(|tenth| {
                let at_ms = 1000 + tenth * 100;
                let (own, others) = match tenth {
                    0..20 => (vec![], 0),
                    20..50 => (vec![GIB, tenth * GIB], 0),
                    50..80 => (vec![GIB], 2),
                    _ => (vec![GIB], 0),
                };
                (at_ms, vec![gpu(at_ms, 100.0 + tenth as f64, &own, others)])
            })
            .collect();
        for (has_records, from_ms, to_ms) in [
            (false, 1500.0, 2900.0),
            (false, 3050.0, 4150.0),
            (false, 5000.0, 8000.0),
            (true, 3033.0, 3066.0),
            (true, 1234.0, 9999.0),
        ] {
            let (mut kernels, mut own) = (KernelMeter::default(), CostMeter::new(None, from_ms));
            own.end(to_ms);
            for (at_ms, gpus) in &samples {
                kernels.push_gpus(*at_ms as f64, 100, gpus);
                own.push_gpus(*at_ms as f64, 100, gpus, &mut is_own);
                if has_records && at_ms % 1000 == 0 {
                    let watts = (0..=50).map(|at| 300.0 + f64::from(at % 7) * 20.0);
                    let trace = trace(at_ms - 1000, watts);
                    kernels.push(&trace);
                    own.push(&trace, &mut is_own);
                }
            }
            assert_same(&cost_of(&kernels, (from_ms, to_ms)), &own.cost(to_ms, &[]));
        }
    }

    #[test]
    fn long_spans_cost_nearly_what_a_meter_finds() {
        let (mut kernels, mut own) = (KernelMeter::default(), CostMeter::new(None, 1_800_000.5));
        for second in (10..=24 * 3600_u64).step_by(10) {
            let at_ms = second * 1000;
            let watts = if (1800..80_000).contains(&second) {
                600.0
            } else {
                100.0
            };
            let peak = if second == 50_000 { 9 * GIB } else { GIB };
            let gpus = [gpu(at_ms, watts, &[peak], 0)];
            kernels.push_gpus(at_ms as f64, 10_000, &gpus);
            own.push_gpus(at_ms as f64, 10_000, &gpus, &mut is_own);
        }
        let all = kernels.kernels.values();
        let parts: usize = all
            .flat_map(|kernel| kernel.used.values())
            .map(|parts| parts.parts.len())
            .sum();
        assert!(parts < 1200, "{parts}");
        let to_ms = 24.0 * 3_600_000.0;
        own.end(to_ms);
        let (kernel, own) = (
            cost_of(&kernels, (1_800_000.5, to_ms)),
            own.cost(to_ms, &[]),
        );
        let joules = |cost: &Cost| cost.energy_joules.unwrap().estimate;
        assert!((joules(&kernel) / joules(&own) - 1.0).abs() < COARSE_SHARE);
        assert_eq!(kernel.peak_memory_bytes, Some(9 * GIB));
        // A span of the last minute is exact.
        let (from_ms, mut own) = (to_ms - 60_000.0, CostMeter::new(None, to_ms - 60_000.0));
        own.end(to_ms);
        for second in (24 * 3600 - 70..=24 * 3600_u64).step_by(10) {
            let gpus = [gpu(second * 1000, 100.0, &[GIB], 0)];
            own.push_gpus((second * 1000) as f64, 10_000, &gpus, &mut is_own);
        }
        assert_same(&cost_of(&kernels, (from_ms, to_ms)), &own.cost(to_ms, &[]));
    }

    #[test]
    fn kernels_of_other_users_are_hidden() {
        let mut meter = KernelMeter::default();
        for at_ms in [1000, 1100, 1200] {
            meter.push_gpus(at_ms as f64, 100, &[gpu(at_ms, 300.0, &[GIB], 0)]);
        }
        let seen = |kernel_id: &str, user: &str| {
            let is_visible = |owner: Option<&str>| owner == Some(user);
            let cost = meter.cost(kernel_id, (1000.0, 1200.0), &[], is_visible);
            (
                cost.gpus.len(),
                cost.energy_joules.is_some(),
                cost.peak_memory_bytes,
            )
        };
        assert_eq!(seen("k", "ana"), (1, true, Some(GIB)));
        assert_eq!(seen("k", "bob"), (0, false, None));
        assert_eq!(seen("other", "ana"), (0, false, None));
    }

    #[test]
    fn kernel_id_of_another_user_changes_nothing() {
        let mut meter = KernelMeter::default();
        for at_ms in [1000, 1100, 1200, 1300] {
            let mut gpu = gpu(at_ms, 300.0, &[GIB, 7 * GIB], 0);
            if let Reading::Now(processes) = &mut gpu.processes {
                processes[1].user = Reading::Now("eve".to_owned());
                if at_ms == 1000 {
                    processes.pop();
                }
            }
            meter.push_gpus(at_ms as f64, 100, &[gpu]);
        }
        let peak = |is_visible: &dyn Fn(Option<&str>) -> bool| {
            let cost = meter.cost("k", (1000.0, 1300.0), &[], is_visible);
            cost.peak_memory_bytes
        };
        assert_eq!(peak(&|user| user == Some("ana")), Some(GIB));
        assert_eq!(peak(&|user| user == Some("eve")), Some(7 * GIB));
        assert_eq!(peak(&|_| true), Some(GIB), "the kernel that came first");
    }

    #[test]
    fn kernels_are_limited_and_forgotten_when_clock_changes() {
        let mut meter = KernelMeter::default();
        for second in 1..=100_u64 {
            let mut gpu = gpu(second * 1000, 100.0, &[GIB], 0);
            if let Reading::Now(processes) = &mut gpu.processes
                && let Reading::Now(owner) = &mut processes[0].owner
                && let Some(notebook) = &mut owner.notebook
            {
                notebook.kernel_id = format!("k{second}");
            }
            meter.push_gpus((second * 1000) as f64, 1000, &[gpu]);
        }
        assert_eq!(meter.kernels.len(), MOST_KERNELS);
        let oldest = meter.kernels.values().map(|kernel| kernel.seen_ms);
        assert_eq!(oldest.reduce(f64::min), Some(37_000.0));
        meter.push_gpus(500.0, 1000, &[gpu(500, 100.0, &[GIB], 0)]);
        assert_eq!(meter.kernels.len(), 1);
    }

    #[test]
    fn answer_is_final_after_records_of_its_end() {
        let mut meter = KernelMeter::default();
        for tenth in 0..=50_u64 {
            let at_ms = 1000 + tenth * 100;
            meter.push_gpus(at_ms as f64, 100, &[gpu(at_ms, 100.0, &[GIB], 0)]);
            if tenth == 20 {
                meter.push(&trace(1000, (0..100).map(|_| 100.0)));
            }
        }
        assert!(meter.is_final(1900.0), "records of power have come");
        assert!(!meter.is_final(5900.0), "records of power are to come");
        assert!(!meter.is_final(7000.0), "a sample is to come");
        let running = cost_of(&meter, (1000.0, 6000.0));
        let joules = running.energy_joules.unwrap().estimate;
        assert!((joules - 500.0).abs() < 1e-6, "{running:?}");
        assert!(cost_of(&meter, (0.0, 6000.0)).lost[0].starts_with("no readings for 1.00 s"));
    }
}
