//! The causes that limit the work of a GPU, derived from readings that are taken anyway.
//!
//! [`LimitTracker`] averages the readings over a window of at least one second, which ends with a
//! reading of the hardware counters. While nobody watches, these are read every ten seconds, so the
//! window is as long.

mod classify;

use std::collections::HashMap;

use crate::{
    cpu_use::{CpuUse, ProcessUse},
    derive::conditions::is_same_job,
    model::{
        Absence, Activity, ArithmeticUnit, Board, Confidence, GpuSample, Health, HostSample,
        LimitClass, LimitEvidence, LimitSummary, Limits, OwnerLimits, Process, Reading,
        ThrottleCause,
    },
};
pub use classify::are_copies_small;
use classify::{
    Averages, CpuShares, InputRates, Window, classify_owner, classify_window, count_active_owners,
    do_workers_decide, has_small_copies, remaining_cpu, select_owner,
};

/// The minimum length of a window: a second, or slightly less, because samples that are taken every
/// second can be a few milliseconds early.
const WINDOW_MS: u64 = 950;

/// After a longer gap between two readings, the window is dropped.
const MAX_GAP_MS: u64 = 30_000;

/// The limits stay in the samples for this long after the end of their window.
pub const MAX_LIMITS_AGE_MS: u64 = 30_000;

/// GPUs of one job differ in how long they wait for each other by this share of the time if one of
/// them is slow.
const MIN_WAIT: f64 = 0.1;

/// An owner with a smaller share of the multiprocessors' time does not run kernels, and an owner
/// with a lower CPU use, in cores, does not compute.
const MIN_OWNER_SHARE: f64 = 0.01;
const MIN_OWNER_CORES: f64 = 0.1;

/// At most this many owners have causes of their own, so that samples stay small.
const MAX_OWNERS: usize = 8;

/// Over this time, the processes' shares of the multiprocessors' time are averaged. The driver's
/// shares of two programs that use the GPU alike vary between 20 % and 80 % from second to second.
const SHARE_AVERAGING_MS: f64 = 5_000.0;

/// GPUs exchange data if their NVLinks carry at least this much. Without NVLink, PCIe carries at
/// least [`MIN_PCIE_BYTES_PER_SECOND`].
const MIN_NVLINK_BYTES_PER_SECOND: f64 = 10e6;
const MIN_PCIE_BYTES_PER_SECOND: f64 = 0.5e9;

/// GPUs that exchanged data this recently may now wait for each other.
const MAX_WAIT_MS: u64 = 60_000;

/// PCIe's rate per lane and generation, in bytes per second, after encoding.
const LANE_BYTES_PER_SECOND: [f64; 7] = [0.0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

/// The limits of one GPU.
#[derive(Debug, Default)]
pub struct LimitTracker {
    sums: Sums,
    /// The time of the latest counters in `sums`.
    last_ms: Option<u64>,
    /// The time of the latest sample.
    sample_ms: Option<u64>,
    latest: Option<(u64, Limits)>,
    /// The average share of the multiprocessors' time of each process, by PID.
    process_shares: HashMap<u32, f64>,
    /// The end of the latest window in which the GPUs of the job exchanged data, and the processes
    /// of this GPU at that time.
    exchanged: Option<(u64, Vec<u32>)>,
}

/// Sums over the samples since the last window ended.
#[derive(Debug, Default)]
struct Sums {
    /// The time since the last window ended.
    ms: f64,
    /// The number of samples, over which the next three sums are averaged.
    samples: f64,
    gpu: f64,
    clock: f64,
    /// The number of samples with each of [`THROTTLE_CAUSES`].
    throttled: [f64; 2],
    /// The time that the hardware counters cover.
    counted_ms: f64,
    /// The counters, times the time in milliseconds that they cover.
    activity: [f64; COUNTERS.len()],
    /// The rates of PCIe and NVLink, times the time in milliseconds.
    rates: [f64; 2],
    /// The time that the rates cover.
    rate_ms: f64,
    /// The share of the multiprocessors' time of each process, by PID.
    processes: HashMap<u32, f64>,
    /// The rates of the machine's disks and network cards, and how many samples have them.
    machine: [(f64, f64); 2],
}

/// The causes of reduced clocks that count as limits: power and temperature.
const THROTTLE_CAUSES: [&[ThrottleCause]; 2] = [
    &[ThrottleCause::Power, ThrottleCause::Hardware],
    &[ThrottleCause::Thermal],
];

/// The counters of [`Sums::activity`].
const COUNTERS: [fn(&Activity) -> &Reading<f64>; 9] = [
    |activity| &activity.graphics_percent,
    |activity| &activity.sm_percent,
    |activity| &activity.tensor_percent,
    |activity| &activity.tensor_double_percent,
    |activity| &activity.dram_bandwidth_percent,
    // In the order of `UNITS`.
    |activity| &activity.fp64_percent,
    |activity| &activity.fp32_percent,
    |activity| &activity.fp16_percent,
    |activity| &activity.integer_percent,
];

const UNITS: [ArithmeticUnit; 4] = [
    ArithmeticUnit::Fp64,
    ArithmeticUnit::Fp32,
    ArithmeticUnit::Fp16,
    ArithmeticUnit::Integer,
];

impl LimitTracker {
    /// Fills in the limits of the sample at index `number`. Must be called at every tick.
    /// `samples` contains all GPUs of the machine, `cpu` the CPU use of the GPU's processes.
    pub fn update(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        board: &Board,
        cpu: &CpuUse,
        host: &HostSample,
    ) {
        let sample = &samples[number];
        if sample.health != Health::Ok || sample.utilization.gpu_percent.value().is_none() {
            let reason = sample.utilization.gpu_percent.absence().cloned();
            *self = Self::default();
            samples[number].limits = Reading::Absent(reason.unwrap_or(Absence::NoAnswer));
            return;
        }
        if self.sample_ms != Some(sample.at_ms) {
            self.add(sample, host);
            if self.sums.ms >= WINDOW_MS as f64 && self.is_complete(sample, cpu) {
                let machine: &[GpuSample] = samples;
                let limits = self.end_window(&machine[number], machine, board, cpu, host);
                self.latest = Some((machine[number].at_ms, limits));
            }
        }
        let sample = &mut samples[number];
        sample.limits = match &self.latest {
            Some((at_ms, limits)) if sample.at_ms.saturating_sub(*at_ms) <= MAX_LIMITS_AGE_MS => {
                if *at_ms == sample.at_ms {
                    Reading::Now(limits.clone())
                } else {
                    Reading::Earlier {
                        value: limits.clone(),
                        at_ms: *at_ms,
                    }
                }
            }
            _ => Reading::Absent(Absence::WarmingUp),
        };
    }

    /// Returns `true` if the window can end with this sample: its counters cover most of the window
    /// or, without counters, the CPU use has just been read.
    fn is_complete(&self, sample: &GpuSample, cpu: &CpuUse) -> bool {
        match sample.activity.value() {
            Some(_) => self.sums.counted_ms >= self.sums.ms * 0.5,
            None => cpu.processes.is_empty() || cpu.at_ms == sample.at_ms,
        }
    }

    fn add(&mut self, sample: &GpuSample, host: &HostSample) {
        let gap_ms = self
            .sample_ms
            .replace(sample.at_ms)
            .map_or(0, |last| sample.at_ms.saturating_sub(last));
        if gap_ms > MAX_GAP_MS {
            self.sums = Sums::default();
            self.last_ms = None;
            return;
        }
        let sums = &mut self.sums;
        sums.ms += gap_ms as f64;
        sums.samples += 1.0;
        let number = |reading: &Reading<f64>| reading.value().copied().unwrap_or_default();
        sums.gpu += number(&sample.utilization.gpu_percent);
        sums.clock += sample.clocks.sm_mhz.value().copied().map_or(0.0, f64::from);
        for (sum, causes) in sums.throttled.iter_mut().zip(THROTTLE_CAUSES) {
            let mut reasons = sample.throttle_reasons.items().iter();
            let is_throttled = reasons.any(|reason| causes.contains(&reason.cause()));
            *sum += f64::from(u8::from(is_throttled));
        }
        for process in sample.processes.items() {
            *sums.processes.entry(process.pid).or_default() += number(&process.sm_percent) / 100.0;
        }
        let rates = [
            &host.disk.read_bytes_per_second,
            &host.network.received_bytes_per_second,
        ];
        for ((sum, count), rate) in sums.machine.iter_mut().zip(rates) {
            if let Some(rate) = rate.value() {
                *sum += rate;
                *count += 1.0;
            }
        }
        let Some(activity) = sample.activity.value() else {
            let rates = [
                &sample.pcie.rx_bytes_per_second,
                &sample.pcie.tx_bytes_per_second,
            ];
            if let [Some(rx), Some(tx)] = rates.map(Reading::value) {
                sums.rates[0] += rx.max(*tx) * gap_ms as f64;
                sums.rate_ms += gap_ms as f64;
            }
            return;
        };
        let at_ms = sample.activity.read_at_ms(sample.at_ms);
        let Some(last_ms) = self.last_ms.replace(at_ms) else {
            return;
        };
        let covered_ms = at_ms.saturating_sub(last_ms) as f64;
        if covered_ms == 0.0 {
            return;
        }
        sums.counted_ms += covered_ms;
        for (sum, read) in sums.activity.iter_mut().zip(COUNTERS) {
            *sum += number(read(activity)) * covered_ms;
        }
        let rates = [
            number(&sample.pcie.rx_bytes_per_second).max(number(&sample.pcie.tx_bytes_per_second)),
            number(&sample.nvlink.rx_bytes_per_second)
                .max(number(&sample.nvlink.tx_bytes_per_second)),
        ];
        for (sum, rate) in sums.rates.iter_mut().zip(rates) {
            *sum += rate * covered_ms;
        }
        sums.rate_ms += covered_ms;
    }

    fn end_window(
        &mut self,
        sample: &GpuSample,
        machine: &[GpuSample],
        board: &Board,
        cpu: &CpuUse,
        host: &HostSample,
    ) -> Limits {
        let sums = std::mem::take(&mut self.sums);
        if is_exchanging_data(sample, machine) {
            self.exchanged = Some((sample.at_ms, list_pids(sample).collect()));
        }
        let communicates = self.exchanged.as_ref().is_some_and(|(at_ms, pids)| {
            sample.at_ms.saturating_sub(*at_ms) <= MAX_WAIT_MS
                && list_pids(sample).any(|pid| pids.contains(&pid))
        }) && find_siblings(sample, machine).next().is_some();
        self.process_shares = sums.average_process_shares(&self.process_shares);
        let owners = find_owners(sample, &self.process_shares);
        let uses: Vec<&ProcessUse> = cpu.processes.iter().collect();
        let ended = EndedWindow {
            window: Window {
                communicates,
                owners: owners.iter().map(|owner| owner.share).collect(),
                ..sums.to_window(board, &uses, list_pids(sample).count())
            },
            cores: host.cpu.count.value().copied(),
            max_clock: board.max_clocks.sm_mhz.value().copied().map(f64::from),
            sums,
        };
        let shares = classify_window(&ended.window);
        let (main, mut confidence) = shares.find_main_cause();
        let has_processes = sample.processes.value().is_none_or(|all| !all.is_empty());
        if matches!(main, LimitClass::Idle | LimitClass::Host) && uses.is_empty() && has_processes {
            confidence = Confidence::Low;
        }
        let readings = LimitClass::ALL.map(|class| {
            if ended.can_show(class) {
                Reading::Now(to_percent(shares.get(class)))
            } else {
                Reading::NOT_SUPPORTED
            }
        });
        let evidence = ended.collect_evidence(&ended.window, &uses);
        let ms = ended.sums.ms as u64;
        let mut limits = Limits::new(ms, readings, main, confidence, evidence);
        limits.owners = ended.classify_owners(&owners, &uses);
        limits
    }
}

impl Sums {
    /// Returns the averages over the window, but not the parts that depend on owners or other GPUs.
    /// The GPU has `count` processes; `uses` contains those that could be read.
    fn to_window(&self, board: &Board, uses: &[&ProcessUse], count: usize) -> Window {
        let max_clock = board.max_clocks.sm_mhz.value().copied().map(f64::from);
        let [power, heat] = self.throttled_shares();
        let clock = self.mean_clock();
        Window {
            gpu: self.gpu / self.samples / 100.0,
            activity: self.compute_averages(),
            pcie: self.mean_rate(0),
            pcie_limit: pcie_limit(board),
            reduced_clock: max_clock
                .filter(|max| power.max(heat) >= 0.5 && clock > 0.0 && *max > 0.0)
                .map(|max| clock / max),
            cpu: sum_cpu_use(uses),
            input: InputRates {
                own: sum_reads(uses, count),
                disks: self.mean_of_machine(0),
                network: self.mean_of_machine(1),
            },
            ..Window::default()
        }
    }

    fn counter_shares(&self) -> [f64; COUNTERS.len()] {
        self.activity.map(|sum| sum / self.counted_ms / 100.0)
    }

    fn compute_averages(&self) -> Option<Averages> {
        let [graphics, sm, tensor, _, dram, units @ ..] = self.counter_shares();
        (self.counted_ms > 0.0).then(|| Averages {
            graphics,
            sm,
            tensor,
            arithmetic: units.into_iter().fold(0.0, f64::max),
            dram,
        })
    }

    fn mean_rate(&self, number: usize) -> Option<f64> {
        (self.rate_ms > 0.0).then(|| self.rates[number] / self.rate_ms)
    }

    fn mean_of_machine(&self, number: usize) -> Option<f64> {
        let (sum, count) = self.machine[number];
        (count > 0.0).then(|| sum / count)
    }

    fn mean_clock(&self) -> f64 {
        self.clock / self.samples
    }

    fn throttled_shares(&self) -> [f64; 2] {
        self.throttled.map(|count| count / self.samples)
    }

    /// Returns the average share of each process that has used the GPU in this window. `earlier`
    /// contains the averages at the end of the previous window.
    fn average_process_shares(&self, earlier: &HashMap<u32, f64>) -> HashMap<u32, f64> {
        let weight = (self.ms / SHARE_AVERAGING_MS).min(1.0);
        let shares = self.processes.iter();
        shares
            .map(|(pid, sum)| (*pid, sum / self.samples))
            .filter(|(_, share)| *share >= MIN_OWNER_SHARE)
            .map(|(pid, share)| {
                let known = earlier.get(&pid).copied().unwrap_or(share);
                (pid, known + (share - known) * weight)
            })
            .collect()
    }
}

/// The processes of one owner, and their share of the multiprocessors' time.
struct Owner<'a> {
    processes: Vec<&'a Process>,
    share: f64,
}

/// Returns the owners of the GPU's processes. Processes of one job have one owner.
fn find_owners<'a>(sample: &'a GpuSample, shares: &HashMap<u32, f64>) -> Vec<Owner<'a>> {
    let mut owners: Vec<Owner<'_>> = Vec::new();
    for process in sample.processes.items() {
        let share = shares.get(&process.pid).copied().unwrap_or_default();
        match owners
            .iter_mut()
            .find(|owner| is_same_job(owner.processes[0], process))
        {
            Some(owner) => {
                owner.share += share;
                owner.processes.push(process);
            }
            None => owners.push(Owner {
                processes: vec![process],
                share,
            }),
        }
    }
    owners
}

/// The part of a window that belongs to one owner.
struct OwnerPart<'a> {
    window: Window,
    /// The index of the owner.
    number: usize,
    pids: Vec<u32>,
    uses: Vec<&'a ProcessUse>,
}

impl OwnerPart<'_> {
    fn cores(&self) -> f64 {
        self.window.cpu.map_or(0.0, |cpu| cpu.process)
    }
}

/// A window that has ended.
struct EndedWindow {
    sums: Sums,
    window: Window,
    /// The number of logical processors of the machine.
    cores: Option<u32>,
    max_clock: Option<f64>,
}

impl EndedWindow {
    /// Returns `true` if the GPU has the counters that show this cause.
    fn can_show(&self, class: LimitClass) -> bool {
        match class {
            LimitClass::Communication
            | LimitClass::Memory
            | LimitClass::Tensor
            | LimitClass::Compute
            | LimitClass::Latency => self.window.activity.is_some(),
            LimitClass::Transfer => self.window.pcie.is_some(),
            _ => true,
        }
    }

    /// Returns the causes that limited each owner, if there are several.
    fn classify_owners(&self, owners: &[Owner<'_>], uses: &[&ProcessUse]) -> Vec<OwnerLimits> {
        if owners.len() < 2 || owners.iter().all(|owner| owner.share == 0.0) {
            return Vec::new();
        }
        let mut parts: Vec<_> = (0..owners.len())
            .map(|number| self.select_owner(owners, number, uses))
            .filter(|part| part.window.gpu > 0.0 || part.cores() >= MIN_OWNER_CORES)
            .collect();
        parts.sort_by(|one, other| {
            let of = |part: &OwnerPart<'_>| part.window.gpu + part.cores();
            of(other).total_cmp(&of(one))
        });
        parts.truncate(MAX_OWNERS);
        // The copies belong to the owner that has most time for them.
        let time = |part: &OwnerPart<'_>| remaining_cpu(&self.window, &part.window, part.number);
        let copying = parts
            .iter()
            .max_by(|one, other| time(one).total_cmp(&time(other)))
            .map(|part| part.number);
        let summaries = parts.into_iter().filter_map(|mut part| {
            if Some(part.number) != copying {
                part.window.pcie = part.window.pcie.and(Some(0.0));
            }
            let shares = classify_owner(&self.window, &part.window, part.number);
            let percents = LimitClass::ALL.map(|class| (class, to_percent(shares.get(class))));
            let limits = LimitSummary::new(self.sums.ms as u64, percents, |_| {
                self.collect_evidence(&part.window, &part.uses)
            })?;
            Some(OwnerLimits {
                pids: part.pids,
                limits,
            })
        });
        summaries.collect()
    }

    fn select_owner<'a>(
        &self,
        owners: &[Owner<'_>],
        number: usize,
        uses: &[&'a ProcessUse],
    ) -> OwnerPart<'a> {
        let processes = owners[number].processes.iter();
        let mut pids: Vec<u32> = processes.map(|process| process.pid).collect();
        pids.dedup();
        let own = uses.iter().filter(|process| pids.contains(&process.pid));
        let uses: Vec<&ProcessUse> = own.copied().collect();
        let window = Window {
            cpu: sum_cpu_use(&uses),
            input: InputRates {
                own: sum_reads(&uses, pids.len()),
                ..self.window.input
            },
            ..self.window.clone()
        };
        OwnerPart {
            window: select_owner(&window, number),
            number,
            pids,
            uses,
        }
    }

    /// Returns the numbers that decided. `uses` contains the processes whose CPU use is in
    /// `window`.
    fn collect_evidence(&self, window: &Window, uses: &[&ProcessUse]) -> LimitEvidence {
        let sums = &self.sums;
        let [_, _, tensor, double, _, units @ ..] = sums.counter_shares();
        let activity = window.activity;
        let workers = Some(uses.iter().map(|process| process.workers).sum::<u32>())
            .filter(|workers| *workers > 0 && do_workers_decide(window));
        let [power, heat] = sums.throttled_shares();
        let busiest = UNITS
            .into_iter()
            .zip(units)
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .filter(|(_, share)| *share > 0.0);
        let whole = |number: f64| number.round();
        let at_least_a_megabyte = |rate: &f64| *rate >= 1e6;
        LimitEvidence {
            gpu_percent: Some(to_percent(window.gpu)),
            cpu_percent: window.cpu.map(|cpu| to_percent(cpu.process)),
            workers,
            workers_percent: workers.and(window.cpu.map(|cpu| to_percent(cpu.workers))),
            cores: self
                .cores
                .filter(|cores| workers.is_some_and(|workers| workers < *cores)),
            disk_bytes_per_second: window
                .input
                .own
                .or(window.input.disks)
                .filter(at_least_a_megabyte)
                .map(whole),
            network_bytes_per_second: window.input.network.filter(at_least_a_megabyte).map(whole),
            pcie_bytes_per_second: window.pcie.map(whole),
            nvlink_bytes_per_second: sums.mean_rate(1).filter(at_least_a_megabyte).map(whole),
            sm_percent: activity.map(|it| to_percent(it.sm)),
            tensor_percent: activity.map(|it| to_percent(it.tensor)),
            arithmetic_percent: activity.map(|it| to_percent(it.arithmetic)),
            arithmetic_unit: activity.and(busiest).map(|(unit, _)| unit),
            is_tensor_double: activity.is_some() && double > tensor / 2.0,
            dram_percent: activity.map(|it| to_percent(it.dram)),
            sm_mhz: Some(whole(sums.mean_clock())),
            max_sm_mhz: self.max_clock,
            too_hot: window.reduced_clock.is_some() && heat > power,
            small_copies: has_small_copies(window),
            owners: Some(count_active_owners(&window.owners)).filter(|count| *count > 1),
            // Filled in by `name_slow_gpus`.
            slow_gpu: None,
            wait_ms: None,
            slow_ranks: Vec::new(),
        }
    }
}

/// Returns a share as a percentage with one decimal place.
fn to_percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

/// Returns the CPU use of the busiest process, and of all child processes together. Returns `None`
/// if there are no processes.
fn sum_cpu_use(uses: &[&ProcessUse]) -> Option<CpuShares> {
    let cores = uses.iter().map(|process| process.cores);
    Some(CpuShares {
        process: cores.reduce(f64::max)?,
        workers: uses.iter().map(|process| process.worker_cores).sum(),
        blocked: uses.iter().any(|process| process.blocked),
    })
}

/// Returns the rate at which `count` processes read from disks, or `None` if it is not known for
/// all of them.
fn sum_reads(uses: &[&ProcessUse], count: usize) -> Option<f64> {
    let rates = uses.iter().map(|process| process.read_bytes_per_second);
    let is_complete = count > 0 && uses.len() >= count;
    rates.sum::<Option<f64>>().filter(|_| is_complete)
}

/// Returns the maximum rate of the GPU's PCIe link in one direction.
fn pcie_limit(board: &Board) -> Option<f64> {
    let generation = *board.pcie_max_generation.value()? as usize;
    let lanes = f64::from(*board.pcie_max_width.value()?);
    LANE_BYTES_PER_SECOND
        .get(generation)
        .map(|rate| rate * lanes)
}

/// Returns the other GPUs that processes of the same job use.
fn find_siblings<'a>(
    sample: &'a GpuSample,
    machine: &'a [GpuSample],
) -> impl Iterator<Item = &'a GpuSample> {
    let own = sample.processes.items();
    machine.iter().filter(move |gpu| {
        let mut theirs = gpu.processes.items().iter();
        gpu.index != sample.index
            && theirs.any(|process| own.iter().any(|own| is_same_job(own, process)))
    })
}

fn list_pids(sample: &GpuSample) -> impl Iterator<Item = u32> {
    sample.processes.items().iter().map(|process| process.pid)
}

/// Returns `true` if this GPU or another GPU of the same job sends or receives data of other GPUs.
fn is_exchanging_data(sample: &GpuSample, machine: &[GpuSample]) -> bool {
    let exchanges = |gpu: &GpuSample| {
        // GPUs that exchange data send and receive, while a program that loads data only receives.
        let least = |rates: [&Reading<f64>; 2]| {
            let rates = rates.into_iter().filter_map(|rate| rate.value().copied());
            rates.reduce(f64::min)
        };
        let nvlink = least([
            &gpu.nvlink.rx_bytes_per_second,
            &gpu.nvlink.tx_bytes_per_second,
        ]);
        let pcie = least([&gpu.pcie.rx_bytes_per_second, &gpu.pcie.tx_bytes_per_second]);
        match nvlink {
            Some(rate) => rate >= MIN_NVLINK_BYTES_PER_SECOND,
            None => pcie.is_some_and(|rate| rate >= MIN_PCIE_BYTES_PER_SECOND),
        }
    };
    find_siblings(sample, machine)
        .chain([sample])
        .any(exchanges)
}

/// Adds the GPU that is slowest to the limits of those GPUs of the same job that wait for it. Must
/// be called after the limits of all GPUs have been filled in.
pub fn name_slow_gpus(samples: &mut [GpuSample]) {
    for number in 0..samples.len() {
        let slowest = slowest_sibling(&samples[number], samples);
        let slowest =
            slowest.map(|(gpu, wait)| (gpu.index, wait, list_other_ranks(&samples[number], gpu)));
        if let (Some((gpu, wait, ranks)), Some(limits)) =
            (slowest, samples[number].limits.value_mut())
        {
            limits.set_slow_gpu(gpu, (wait * 1000.0).round() as u32, ranks);
        }
    }
}

/// Returns the GPU of the same job that waits least, and how much longer this GPU waits, as a share
/// of the time. Returns `None` if waiting is not what limits this GPU, or if all wait for about the
/// same time.
fn slowest_sibling<'a>(
    sample: &'a GpuSample,
    machine: &'a [GpuSample],
) -> Option<(&'a GpuSample, f64)> {
    let wait = |gpu: &GpuSample| {
        let percent = gpu.limits.value()?.communication_percent.value()?;
        Some(percent / 100.0)
    };
    let is_waiting = sample.limits.value()?.main == LimitClass::Communication;
    let own_wait = wait(sample).filter(|_| is_waiting)?;
    find_siblings(sample, machine)
        .filter_map(|gpu| Some((gpu, own_wait - wait(gpu)?)))
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .filter(|(_, wait)| *wait >= MIN_WAIT)
}

/// Returns the ranks of the job's processes on another GPU. A rank that a process on this GPU also
/// has is omitted: the processes have then inherited it from a common parent.
fn list_other_ranks(sample: &GpuSample, other: &GpuSample) -> Vec<u32> {
    let own = sample.processes.items();
    let rank = |process: &Process| process.owner.value()?.rank;
    let others = other.processes.items().iter();
    others
        .filter(|process| own.iter().any(|own| is_same_job(own, process)))
        .filter_map(rank)
        .filter(|found| own.iter().all(|own| rank(own) != Some(*found)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::examples;

    fn make_cpu_use(at_ms: u64) -> CpuUse {
        let busy = ProcessUse {
            pid: 10,
            cores: 1.0,
            ..ProcessUse::default()
        };
        CpuUse {
            at_ms,
            processes: vec![busy],
        }
    }

    /// Returns a sample of a GPU with one busy process. `counted_ms` is the time of the hardware
    /// counters, which show that tensor cores are busy.
    fn make_sample(index: u32, at_ms: u64, counted_ms: u64) -> GpuSample {
        let mut sample = examples::make_sample(at_ms);
        sample.index = index;
        examples::set_gpu_use(&mut sample, 100.0, 95.0);
        let activity = Activity {
            graphics_percent: Reading::Now(100.0),
            ..examples::make_activity(95.0, 92.0)
        };
        sample.activity = if counted_ms == at_ms {
            Reading::Now(activity)
        } else {
            Reading::Earlier {
                value: activity,
                at_ms: counted_ms,
            }
        };
        let mut process = examples::make_process(10 + index, 1 << 30);
        process.sm_percent = Reading::Now(95.0);
        sample.processes = Reading::Now(vec![process]);
        sample
    }

    /// Updates the tracker with samples at an interval, whose counters are read every
    /// `counted_every_ms`, and returns the limits of each sample.
    fn track(interval_ms: u64, counted_every_ms: u64, count: u64) -> Vec<Reading<Limits>> {
        let (mut tracker, host) = (LimitTracker::default(), examples::make_host());
        let board = examples::make_board();
        (1..=count)
            .map(|number| {
                let at_ms = number * interval_ms;
                let counted_ms = at_ms / counted_every_ms * counted_every_ms;
                let mut samples = [make_sample(0, at_ms, counted_ms.max(1))];
                tracker.update(&mut samples, 0, &board, &make_cpu_use(at_ms), &host);
                samples[0].limits.clone()
            })
            .collect()
    }

    #[test]
    fn window_has_at_least_one_second() {
        let limits = track(100, 100, 30);
        let ends: Vec<_> = limits
            .iter()
            .enumerate()
            .filter(|(_, limits)| matches!(limits, Reading::Now(_)))
            .map(|(number, limits)| (number, limits.value().unwrap().window_ms))
            .collect();
        assert_eq!(ends, [(10, 1000), (20, 1000)]);
        assert_eq!(limits[5], Reading::Absent(Absence::WarmingUp));
        let last = limits[29].value().unwrap();
        assert_eq!(
            (last.main, last.confidence),
            (LimitClass::Tensor, Confidence::High)
        );
        assert_eq!(last.tensor_percent, Reading::Now(100.0));
        assert_eq!(last.text, "Tensor cores are busy 92 % of the time.");
    }

    #[test]
    fn unwatched_window_ends_with_counter_reading() {
        let limits = track(1000, 10_000, 41);
        let ends = limits
            .iter()
            .filter(|limits| matches!(limits, Reading::Now(_)))
            .map(|limits| limits.value().unwrap().window_ms);
        assert_eq!(ends.collect::<Vec<_>>(), [9_000, 10_000, 10_000, 10_000]);
    }

    #[test]
    fn lost_gpu_has_no_limits() {
        let (mut tracker, host) = (LimitTracker::default(), examples::make_host());
        let board = examples::make_board();
        let mut samples = [make_sample(0, 1000, 1000)];
        samples[0].health = Health::Lost { since_ms: 1 };
        tracker.update(&mut samples, 0, &board, &make_cpu_use(1000), &host);
        assert_eq!(samples[0].limits, Reading::Absent(Absence::NoAnswer));
    }

    /// Returns samples of two GPUs of one job after four seconds. GPU 0 runs kernels that hardly
    /// use it for 60 % of the time. `nvlink` is the rate between the GPUs.
    fn run_job_on_two_gpus(nvlink: f64) -> [GpuSample; 2] {
        let host = examples::make_host();
        let board = examples::make_board();
        let mut trackers = [LimitTracker::default(), LimitTracker::default()];
        let mut samples = [make_sample(0, 0, 0), make_sample(1, 0, 0)];
        for second in 1..=4 {
            samples = [0, 1].map(|index| make_sample(index, second * 1000, second * 1000));
            for sample in &mut samples {
                sample.nvlink.rx_bytes_per_second = Reading::Now(nvlink);
                sample.nvlink.tx_bytes_per_second = Reading::Now(nvlink);
                // Both processes belong to one job, because they have the same launcher.
                let process = &mut sample.processes.value_mut().unwrap()[0];
                let owner = process.owner.value_mut().unwrap();
                owner.rank = Some(sample.index);
                owner.parents = vec![crate::model::Ancestor {
                    pid: 5,
                    name: "torchrun".to_owned(),
                }];
            }
            let activity = samples[0].activity.value_mut().unwrap();
            activity.tensor_percent = Reading::Now(92.0 * 0.4);
            for (number, tracker) in trackers.iter_mut().enumerate() {
                let cpu = make_cpu_use(second * 1000);
                tracker.update(&mut samples, number, &board, &cpu, &host);
            }
            name_slow_gpus(&mut samples);
        }
        samples
    }

    #[test]
    fn slow_gpu_of_a_job_is_named() {
        let samples = run_job_on_two_gpus(40e9);
        let waiting = samples[0].limits.value().unwrap();
        assert_eq!(waiting.main, LimitClass::Communication);
        assert_eq!(
            (waiting.evidence.slow_gpu, waiting.evidence.wait_ms),
            (Some(1), Some(600))
        );
        assert_eq!(waiting.evidence.slow_ranks, [1]);
        assert_eq!(samples[1].limits.value().unwrap().main, LimitClass::Tensor);
    }

    #[test]
    fn programs_without_data_exchange_do_not_communicate() {
        let samples = run_job_on_two_gpus(0.0);
        let limits = samples[0].limits.value().unwrap();
        assert_eq!(limits.main, LimitClass::Latency);
        assert_eq!(limits.communication_percent, Reading::Now(0.0));
    }

    #[test]
    fn owners_of_shared_gpu_have_own_causes() {
        let (mut tracker, host) = (LimitTracker::default(), examples::make_host());
        let board = examples::make_board();
        let mut samples = [make_sample(0, 0, 0)];
        for second in 1..=3 {
            samples = [make_sample(0, second * 1000, second * 1000)];
            let processes = samples[0].processes.value_mut().unwrap();
            processes[0].sm_percent = Reading::Now(60.0);
            let mut other = examples::make_process(20, 1 << 30);
            other.sm_percent = Reading::Now(30.0);
            let mut idle = examples::make_process(30, 1 << 30);
            idle.sm_percent = Reading::Now(0.0);
            for (process, pid) in [(&mut other, 2), (&mut idle, 3)] {
                let launcher = crate::model::Ancestor {
                    pid,
                    name: "bash".to_owned(),
                };
                process.owner.value_mut().unwrap().parents = vec![launcher];
            }
            processes.extend([other, idle]);
            tracker.update(&mut samples, 0, &board, &make_cpu_use(second * 1000), &host);
        }
        let limits = samples[0].limits.value().unwrap();
        let pids: Vec<_> = limits.owners.iter().map(|owner| &owner.pids[..]).collect();
        assert_eq!(pids, [[10], [20]]);
        let [first, second] = [0, 1].map(|place| &limits.owners[place].limits);
        assert_eq!(first.main(), Some(LimitClass::Tensor));
        assert_eq!(first.evidence.cpu_percent, Some(100.0));
        // The CPU use of this process is not known, but the other owner takes most of the time.
        assert_eq!(second.main(), Some(LimitClass::Shared));
        assert_eq!(second.evidence.cpu_percent, None);
        assert!((second.get_percent(LimitClass::Tensor) - 33.3).abs() < 0.01);
    }

    #[test]
    fn process_shares_are_averaged_until_process_stops() {
        let make_sums = |one, other| Sums {
            ms: 1000.0,
            samples: 2.0,
            processes: HashMap::from([(1, one), (2, other)]),
            ..Sums::default()
        };
        let first = make_sums(1.0, 1.0).average_process_shares(&HashMap::new());
        assert!((first[&1] - 0.5).abs() < 1e-9);
        let second = make_sums(2.0, 0.0).average_process_shares(&first);
        assert!((second[&1] - 0.6).abs() < 1e-9 && !second.contains_key(&2));
    }

    #[test]
    fn window_without_counters_ends_with_cpu_reading() {
        let (mut tracker, host) = (LimitTracker::default(), examples::make_host());
        let board = examples::make_board();
        let mut ends = Vec::new();
        for second in 1..=21 {
            let at_ms = second * 1000;
            let mut samples = [make_sample(0, at_ms, at_ms)];
            samples[0].activity = Reading::NOT_SUPPORTED;
            let cpu = make_cpu_use(at_ms / 10_000 * 10_000);
            tracker.update(&mut samples, 0, &board, &cpu, &host);
            if let Reading::Now(limits) = &samples[0].limits {
                ends.push((second, limits.window_ms));
            }
        }
        assert_eq!(ends, [(10, 9_000), (20, 10_000)]);
    }
}
