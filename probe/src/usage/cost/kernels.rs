//! The GPU use of notebook kernels, kept for queries about past spans.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    MAX_UNREPORTED_GAP_MS, combine_gpu_costs,
    gpu::{GpuSteps, GpuUse, make_gpu_cost},
    readings::{Memory, sum_process_memory},
};
use crate::{
    model::{
        Cost, Gpu, GpuCost, GpuSample, JobKind, LimitSummary, LimitSums, Process, Reading, Record,
    },
    units::format_three_digits,
    usage::{OwnerKey, steps::Span},
};

/// The maximum number of kernels kept in memory. The kernel that has not used a GPU for the longest
/// time is removed first.
const MAX_KERNELS: usize = 64;

/// The maximum number of parts kept in memory for one kernel, over all GPUs. Each part is the use
/// in one period. All parts of a kernel take less than a mebibyte.
const MAX_PARTS: usize = 8192;

/// The maximum number of parts of limits, which are larger, kept in memory for one kernel and GPU.
const MAX_LIMIT_PARTS: usize = 512;

/// After this number of added parts, neighboring parts are joined again.
const JOIN_INTERVAL: usize = 64;

/// A meter for the GPU use of all notebook kernels.
#[derive(Debug, Default)]
pub struct KernelMeter {
    gpus: BTreeMap<u32, GpuSteps>,
    kernels: BTreeMap<OwnerKey, Kernel>,
    /// The time of the first sample, in milliseconds since 1970.
    first_ms: f64,
    newest_ms: f64,
}

#[derive(Debug, Default)]
struct Kernel {
    /// The time at which the kernel first used a GPU, in milliseconds since 1970.
    first_ms: f64,
    seen_ms: f64,
    /// The use of each GPU, by index.
    used: BTreeMap<u32, Parts<GpuUse>>,
    /// The memory on each GPU, by index. The entry `None` is the memory on all GPUs together.
    memory: BTreeMap<Option<u32>, Parts<GpuUse>>,
    /// The limits of the kernel's processes on each GPU, by index.
    limits: BTreeMap<u32, Parts<LimitSums>>,
}

impl Kernel {
    /// Returns what limited the kernel's processes on a GPU in a span. A window counts if at least
    /// half of it is in the span.
    fn limits_in_span(&self, gpu: u32, span: Span) -> Option<LimitSummary> {
        let mut sums = LimitSums::default();
        for (part, limits) in self.limits.get(&gpu).iter().flat_map(|parts| &parts.parts) {
            let inside = part.intersect(span).map_or(0.0, Span::seconds);
            if inside > 0.0 && inside >= part.seconds() / 2.0 {
                sums.merge(limits);
            }
        }
        sums.summary()
    }
}

/// The value for a period. It can be joined with the value for the next period.
trait Join {
    /// The maximum length of a joined part, as a fraction of the part's age. It limits the relative
    /// error of a cell's cost. If a cell started within a joined part, the error is at most the
    /// part's length, and the cell has run for at least the part's age.
    const MAX_PART_SHARE: f64;

    /// Adds the value of the next period.
    fn join(&mut self, next: &Self);
}

impl Join for GpuUse {
    const MAX_PART_SHARE: f64 = 0.01;

    fn join(&mut self, next: &Self) {
        self.add(next);
    }
}

impl Join for LimitSums {
    const MAX_PART_SHARE: f64 = 0.05;

    fn join(&mut self, next: &Self) {
        self.merge(next);
    }
}

/// The values of consecutive periods, the oldest first.
#[derive(Debug)]
struct Parts<T> {
    parts: VecDeque<(Span, T)>,
    /// The number of parts added since neighboring parts were last joined.
    added: usize,
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self {
            parts: VecDeque::new(),
            added: 0,
        }
    }
}

impl<T: Join> Parts<T> {
    fn push(&mut self, span: Span, used: T) {
        self.parts.push_back((span, used));
        self.added += 1;
        if self.added < JOIN_INTERVAL {
            return;
        }
        self.added = 0;
        let mut joined: VecDeque<(Span, T)> = VecDeque::new();
        for (part, used) in self.parts.drain(..) {
            let longest_ms = T::MAX_PART_SHARE * (span.to_ms - part.to_ms);
            match joined.back_mut() {
                Some((known, sum)) if part.to_ms - known.from_ms <= longest_ms => {
                    known.to_ms = part.to_ms;
                    sum.join(&used);
                }
                _ => joined.push_back((part, used)),
            }
        }
        self.parts = joined;
    }

    fn remove_oldest_beyond(&mut self, most: usize) {
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
                settle_kernel_steps(steps, trace.index, &mut self.kernels);
            }
            _ => {}
        }
    }

    fn push_gpus(&mut self, at_ms: f64, interval_ms: u32, gpus: &[GpuSample]) {
        if at_ms < self.newest_ms {
            // The clock was set back, so the times of earlier parts can no longer be compared.
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
            for process in gpu.processes.items() {
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
            let Some(added) = steps.add_sample(gpu, interval_ms, owners, always) else {
                continue;
            };
            settle_kernel_steps(steps, gpu.index, &mut self.kernels);
            for key in before {
                own.entry(key).or_default();
            }
            let from_ms = added.held.map_or(at_ms, |span| span.from_ms);
            for (key, processes) in own {
                add_limits(&mut self.kernels, &key, gpu, &processes);
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
        self.remove_oldest_kernels();
    }

    /// Removes what exceeds the limits: the kernels that have not used a GPU for the longest time,
    /// and the oldest parts.
    fn remove_oldest_kernels(&mut self) {
        while self.kernels.len() > MAX_KERNELS {
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
            let most = MAX_PARTS / logs.max(1);
            kernel
                .used
                .values_mut()
                .for_each(|parts| parts.remove_oldest_beyond(most));
            kernel
                .memory
                .values_mut()
                .for_each(|parts| parts.remove_oldest_beyond(most));
            kernel
                .limits
                .values_mut()
                .for_each(|parts| parts.remove_oldest_beyond(MAX_LIMIT_PARTS));
        }
    }

    /// Returns `true` if the use until `to_ms`, in milliseconds since 1970, is final.
    pub fn is_final_until(&self, to_ms: f64) -> bool {
        self.newest_ms >= to_ms && self.gpus.values().all(|gpu| gpu.is_final_until(to_ms))
    }

    /// Returns the known cost of a kernel and its descendants in a span. Times are in milliseconds
    /// since 1970. `gpus` contains the inventory's GPUs, which provide the names. If `is_visible`
    /// returns `false` for the kernel's user, the kernel is treated as if it had used no GPU.
    pub fn cost_in_span(
        &self,
        kernel_id: &str,
        (from_ms, to_ms): (f64, f64),
        gpus: &[Gpu],
        is_visible: impl Fn(Option<&str>) -> bool,
    ) -> Cost {
        let span = Span { from_ms, to_ms };
        // A process of another user can claim a kernel's ID, but only after the kernel has been
        // created. The kernel that was seen first is therefore the real one.
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
            let mut total = GpuUse::default();
            let mut add = |part: Span, used: &GpuUse| {
                if let Some(used) = steps.clip_use_to_span(used, part, span) {
                    total.add(&used);
                }
            };
            for (part, used) in kernel.used.get(index).iter().flat_map(|parts| &parts.parts) {
                add(*part, used);
            }
            steps.for_each_pending(|owner, part, used| {
                if Some(owner) == key {
                    add(part, &used);
                }
            });
            let memory = self.memory_in_span(kernel, Some(*index), span);
            if total.held_s > 0.0 {
                let seen = GpuCost {
                    limits: kernel.limits_in_span(*index, span),
                    ..GpuCost::default()
                };
                costs.push(make_gpu_cost(*index, &total, &memory, seen));
            }
        }
        let mut cost =
            combine_gpu_costs(span, &self.memory_in_span(kernel, None, span), costs, gpus);
        let missing_ms = self.first_ms.min(to_ms) - from_ms;
        if missing_ms > MAX_UNREPORTED_GAP_MS {
            let seconds = format_three_digits(missing_ms / 1000.0);
            cost.lost.push(format!(
                "no readings for {seconds} s; the numbers cover only the rest of the time"
            ));
        }
        cost
    }

    /// Returns a kernel's memory before, during and after a span, on one GPU or in total.
    fn memory_in_span(&self, kernel: &Kernel, gpu: Option<u32>, span: Span) -> Memory {
        let mut memory = Memory::default();
        if self.first_ms <= span.from_ms {
            memory.add_reading(self.first_ms, Some(0), span);
        }
        for (part, held) in kernel
            .memory
            .get(&gpu)
            .iter()
            .flat_map(|parts| &parts.parts)
        {
            if part.to_ms < span.to_ms {
                memory.add_reading(part.to_ms, held.peak_bytes, span);
            }
            memory.add_reading(part.to_ms, held.bytes, span);
        }
        memory.add_reading(self.newest_ms, memory.newest_bytes(), span);
        memory
    }
}

/// Returns the key of the notebook kernel that a process belongs to.
fn kernel_key(process: &Process) -> Option<OwnerKey> {
    let notebook = process.owner.value()?.notebook.as_ref()?;
    Some(OwnerKey {
        user: process.user.value().cloned(),
        job: Some((JobKind::Notebook, notebook.kernel_id.clone())),
    })
}

/// Adds the complete steps of a GPU to the kernels that used it.
fn settle_kernel_steps(steps: &mut GpuSteps, index: u32, kernels: &mut BTreeMap<OwnerKey, Kernel>) {
    steps.settle_complete_steps(false, |owner, span, used| {
        if let Some(kernel) = kernels.get_mut(owner) {
            kernel.used.entry(index).or_default().push(span, used);
        }
    });
}

/// Adds what limited a kernel's processes on a GPU, if a window of limits ends with the sample.
fn add_limits(
    kernels: &mut BTreeMap<OwnerKey, Kernel>,
    key: &OwnerKey,
    gpu: &GpuSample,
    processes: &[&Process],
) {
    let (Some(kernel), Reading::Now(limits)) = (kernels.get_mut(key), &gpu.limits) else {
        return;
    };
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let mut sums = LimitSums::default();
    sums.add_owners(limits, &pids, limits.window_ms as f64);
    let span = Span {
        from_ms: gpu.at_ms.saturating_sub(limits.window_ms) as f64,
        to_ms: gpu.at_ms as f64,
    };
    kernel.limits.entry(gpu.index).or_default().push(span, sums);
}

/// Adds the memory of `processes` to their kernel's memory on one GPU. If `gpu` is `None`, adds it
/// to the kernel's memory on all GPUs together.
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
    // Before the kernel's first part, and in a gap between two parts, its memory counts as 0.
    let newest_ms = parts.parts.back().map_or(0.0, |(span, _)| span.to_ms);
    let is_first = newest_ms < from_ms && from_ms < to_ms;
    let mut push = |from_ms, to_ms, bytes| {
        let used = GpuUse {
            bytes,
            peak_bytes: bytes,
            ..GpuUse::default()
        };
        parts.push(Span { from_ms, to_ms }, used);
    };
    if is_first {
        push(from_ms, from_ms, Some(0));
    }
    push(
        from_ms,
        to_ms,
        sum_process_memory(processes.iter().copied()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples::{make_process, make_sample},
        model::{
            Confidence, LimitClass, LimitEvidence, Limits, Notebook, Owner, Trace, TraceMetric,
        },
        usage::cost::CostMeter,
    };

    const GIB: u64 = 1 << 30;

    fn is_kernel_process(process: &Process) -> bool {
        let notebook = process
            .owner
            .value()
            .and_then(|owner| owner.notebook.as_ref());
        notebook.is_some_and(|notebook| notebook.kernel_id == "k")
    }

    /// Returns a GPU with power draw `watts` that is busy half of the time. `own` contains the
    /// memory of a kernel's processes, and `others` is the number of other processes.
    fn make_gpu(at_ms: u64, watts: f64, own: &[u64], others: usize) -> GpuSample {
        let mut gpu = make_sample(at_ms);
        gpu.power.instant_watts = Reading::Now(watts);
        gpu.utilization.gpu_percent = Reading::Now(50.0);
        let notebook = Notebook {
            kernel_id: "k".to_owned(),
            kernel_pid: 10,
            path: Reading::Now("train.ipynb".to_owned()),
            kernel_name: None,
        };
        let own = own.iter().zip(10..).map(|(bytes, pid)| {
            let mut process = make_process(pid, *bytes);
            process.owner = Reading::Now(Owner {
                notebook: Some(notebook.clone()),
                ..Owner::default()
            });
            process.user = Reading::Now("ana".to_owned());
            process
        });
        let others = (0..others).map(|place| make_process(100 + place as u32, GIB));
        let mut processes: Vec<_> = own.chain(others).collect();
        let count = processes.len() as f64;
        for process in &mut processes {
            process.sm_percent = Reading::Now(50.0 / count);
        }
        gpu.processes = Reading::Now(processes);
        gpu
    }

    #[test]
    fn limits_of_cell_are_those_of_its_windows() {
        let mut meter = KernelMeter::default();
        for second in 1..=2000u64 {
            let at_ms = second * 1000;
            let mut gpu = make_gpu(at_ms, 100.0, &[GIB], 0);
            let is_cell = (1000..1010).contains(&second);
            let main = if is_cell {
                LimitClass::Host
            } else {
                LimitClass::Idle
            };
            let shares =
                LimitClass::ALL.map(|class| Reading::Now(if class == main { 100.0 } else { 0.0 }));
            let evidence = LimitEvidence::default();
            gpu.limits = Reading::Now(Limits::new(1000, shares, main, Confidence::High, evidence));
            meter.push_gpus(at_ms as f64, 1000, &[gpu]);
            if second == 1012 {
                let cost = compute_cost(&meter, (999_200.0, 1_009_000.0));
                let limits = cost.limits.unwrap();
                assert_eq!(
                    (limits.windows_ms, &*limits.shares_text()),
                    (10_000, "host-bound 100 %")
                );
            }
        }
        let parts = &meter.kernels.values().next().unwrap().limits[&0].parts;
        assert!(parts.len() < MAX_LIMIT_PARTS, "{}", parts.len());
        let total: f64 = parts.iter().map(|(span, _)| span.seconds()).sum();
        assert!((total - 2000.0).abs() < 1e-6, "{total}");
    }

    fn make_trace(start_ms: u64, watts: impl Iterator<Item = f64>) -> Record {
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

    fn compute_cost(meter: &KernelMeter, span: (f64, f64)) -> Cost {
        meter.cost_in_span("k", span, &[], |user| user == Some("ana"))
    }

    /// Asserts that the cost of a kernel equals the cost from a meter for the same span.
    fn assert_same_cost(kernel: &Cost, own: &Cost) {
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
    fn cost_of_recent_span_equals_meter_cost() {
        let samples: Vec<_> = (0..=100)
            .map(|tenth| {
                let at_ms = 1000 + tenth * 100;
                let (own, others) = match tenth {
                    0..20 => (vec![], 0),
                    20..50 => (vec![GIB, tenth * GIB], 0),
                    50..80 => (vec![GIB], 2),
                    _ => (vec![GIB], 0),
                };
                (
                    at_ms,
                    vec![make_gpu(at_ms, 100.0 + tenth as f64, &own, others)],
                )
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
                own.push_gpus(*at_ms as f64, 100, gpus, &mut is_kernel_process);
                if has_records && at_ms % 1000 == 0 {
                    let watts = (0..=50).map(|at| 300.0 + f64::from(at % 7) * 20.0);
                    let trace = make_trace(at_ms - 1000, watts);
                    kernels.push(&trace);
                    own.push(&trace, &mut is_kernel_process);
                }
            }
            assert_same_cost(
                &compute_cost(&kernels, (from_ms, to_ms)),
                &own.current_cost(to_ms, &[]),
            );
        }
    }

    #[test]
    fn cost_of_long_span_approximates_meter_cost() {
        let (mut kernels, mut own) = (KernelMeter::default(), CostMeter::new(None, 1_800_000.5));
        for second in (10..=24 * 3600_u64).step_by(10) {
            let at_ms = second * 1000;
            let watts = if (1800..80_000).contains(&second) {
                600.0
            } else {
                100.0
            };
            let peak = if second == 50_000 { 9 * GIB } else { GIB };
            let gpus = [make_gpu(at_ms, watts, &[peak], 0)];
            kernels.push_gpus(at_ms as f64, 10_000, &gpus);
            own.push_gpus(at_ms as f64, 10_000, &gpus, &mut is_kernel_process);
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
            compute_cost(&kernels, (1_800_000.5, to_ms)),
            own.current_cost(to_ms, &[]),
        );
        let joules = |cost: &Cost| cost.energy_joules.unwrap().estimate;
        assert!((joules(&kernel) / joules(&own) - 1.0).abs() < GpuUse::MAX_PART_SHARE);
        assert_eq!(kernel.peak_memory_bytes, Some(9 * GIB));
        // A span within the last minute is exact.
        let (from_ms, mut own) = (to_ms - 60_000.0, CostMeter::new(None, to_ms - 60_000.0));
        own.end(to_ms);
        for second in (24 * 3600 - 70..=24 * 3600_u64).step_by(10) {
            let gpus = [make_gpu(second * 1000, 100.0, &[GIB], 0)];
            own.push_gpus(
                (second * 1000) as f64,
                10_000,
                &gpus,
                &mut is_kernel_process,
            );
        }
        assert_same_cost(
            &compute_cost(&kernels, (from_ms, to_ms)),
            &own.current_cost(to_ms, &[]),
        );
    }

    #[test]
    fn kernels_of_other_users_are_hidden() {
        let mut meter = KernelMeter::default();
        for at_ms in [1000, 1100, 1200] {
            meter.push_gpus(at_ms as f64, 100, &[make_gpu(at_ms, 300.0, &[GIB], 0)]);
        }
        let seen = |kernel_id: &str, user: &str| {
            let is_visible = |owner: Option<&str>| owner == Some(user);
            let cost = meter.cost_in_span(kernel_id, (1000.0, 1200.0), &[], is_visible);
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
    fn equal_kernel_ids_of_two_users_are_separate() {
        let mut meter = KernelMeter::default();
        for at_ms in [1000, 1100, 1200, 1300] {
            let mut gpu = make_gpu(at_ms, 300.0, &[GIB, 7 * GIB], 0);
            if let Reading::Now(processes) = &mut gpu.processes {
                processes[1].user = Reading::Now("eve".to_owned());
                if at_ms == 1000 {
                    processes.pop();
                }
            }
            meter.push_gpus(at_ms as f64, 100, &[gpu]);
        }
        let peak = |is_visible: &dyn Fn(Option<&str>) -> bool| {
            let cost = meter.cost_in_span("k", (1000.0, 1300.0), &[], is_visible);
            cost.peak_memory_bytes
        };
        assert_eq!(peak(&|user| user == Some("ana")), Some(GIB));
        assert_eq!(peak(&|user| user == Some("eve")), Some(7 * GIB));
        assert_eq!(peak(&|_| true), Some(GIB), "the kernel that came first");
    }

    #[test]
    fn number_of_kernels_is_limited() {
        let mut meter = KernelMeter::default();
        for second in 1..=100_u64 {
            let mut gpu = make_gpu(second * 1000, 100.0, &[GIB], 0);
            if let Reading::Now(processes) = &mut gpu.processes
                && let Reading::Now(owner) = &mut processes[0].owner
                && let Some(notebook) = &mut owner.notebook
            {
                notebook.kernel_id = format!("k{second}");
            }
            meter.push_gpus((second * 1000) as f64, 1000, &[gpu]);
        }
        assert_eq!(meter.kernels.len(), MAX_KERNELS);
        let oldest = meter.kernels.values().map(|kernel| kernel.seen_ms);
        assert_eq!(oldest.reduce(f64::min), Some(37_000.0));
        meter.push_gpus(500.0, 1000, &[make_gpu(500, 100.0, &[GIB], 0)]);
        assert_eq!(meter.kernels.len(), 1);
    }

    #[test]
    fn kernel_cost_is_final_once_records_cover_span() {
        let mut meter = KernelMeter::default();
        for tenth in 0..=50_u64 {
            let at_ms = 1000 + tenth * 100;
            meter.push_gpus(at_ms as f64, 100, &[make_gpu(at_ms, 100.0, &[GIB], 0)]);
            if tenth == 20 {
                meter.push(&make_trace(1000, (0..100).map(|_| 100.0)));
            }
        }
        assert!(meter.is_final_until(1900.0), "records of power have come");
        assert!(
            !meter.is_final_until(5900.0),
            "records of power are to come"
        );
        assert!(!meter.is_final_until(7000.0), "a sample is to come");
        let running = compute_cost(&meter, (1000.0, 6000.0));
        let joules = running.energy_joules.unwrap().estimate;
        assert!((joules - 500.0).abs() < 1e-6, "{running:?}");
        assert!(compute_cost(&meter, (0.0, 6000.0)).lost[0].starts_with("no readings for 1.00 s"));
    }
}
