//! The causes that limit the work of a GPU, derived from readings that are taken anyway.
//!
//! [`LimitTracker`] averages the readings over a window of at least one second, which ends with a
//! reading of the hardware counters. While nobody watches, these are read every ten seconds, so the
//! window is as long.

mod classify;

use crate::{
    cpu_use::CpuUse,
    derive::conditions::is_same_job,
    model::{
        Absence, Activity, Board, Confidence, GpuSample, Health, HostSample, LimitClass,
        LimitEvidence, Limits, Process, Reading, ThrottleCause,
    },
};
use classify::{
    Averages, CpuShares, Window, classify_window, count_active_owners, do_workers_decide,
    has_small_copies,
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
    activity: [f64; 8],
    /// The rates of PCIe and NVLink, times the time in milliseconds.
    rates: [f64; 2],
    /// The time that the rates cover.
    rate_ms: f64,
}

/// The causes of reduced clocks that count as limits: power and temperature.
const THROTTLE_CAUSES: [&[ThrottleCause]; 2] = [
    &[ThrottleCause::Power, ThrottleCause::Hardware],
    &[ThrottleCause::Thermal],
];

/// The counters of [`Sums::activity`].
const COUNTERS: [fn(&Activity) -> &Reading<f64>; 8] = [
    |activity| &activity.graphics_percent,
    |activity| &activity.sm_percent,
    |activity| &activity.tensor_percent,
    |activity| &activity.fp32_percent,
    |activity| &activity.fp64_percent,
    |activity| &activity.fp16_percent,
    |activity| &activity.integer_percent,
    |activity| &activity.dram_bandwidth_percent,
];

impl LimitTracker {
    /// Fills in the limits of the sample at index `number`. Must be called at every tick.
    /// `samples` contains all GPUs of the machine, `cpu` the CPU use of the GPU's processes.
    pub fn update(
        &mut self,
        samples: &mut [GpuSample],
        number: usize,
        board: &Board,
        cpu: Option<&CpuUse>,
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
            self.add(sample);
            if self.sums.ms >= WINDOW_MS as f64 && self.is_complete(sample) {
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

    /// Returns `true` if the window can end with this sample: its counters cover most of the
    /// window.
    fn is_complete(&self, sample: &GpuSample) -> bool {
        sample.activity.value().is_none() || self.sums.counted_ms >= self.sums.ms * 0.5
    }

    fn add(&mut self, sample: &GpuSample) {
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
            let reasons = sample.throttle_reasons.value().into_iter().flatten();
            let is_throttled = reasons
                .clone()
                .any(|reason| causes.contains(&reason.info().cause));
            *sum += f64::from(u8::from(is_throttled));
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
        cpu: Option<&CpuUse>,
        host: &HostSample,
    ) -> Limits {
        let sums = std::mem::take(&mut self.sums);
        let share = |sum: f64| sum / sums.samples / 100.0;
        let counters = sums.activity.map(|sum| sum / sums.counted_ms / 100.0);
        let [graphics, sm, tensor, fp32, fp64, fp16, integer, dram] = counters;
        let activity = (sums.counted_ms > 0.0).then(|| Averages {
            graphics,
            sm,
            tensor,
            arithmetic: fp32.max(fp64).max(fp16).max(integer),
            dram,
        });
        let rate = |sum: f64| (sums.rate_ms > 0.0).then(|| sum / sums.rate_ms);
        let clock = sums.clock / sums.samples;
        let max_clock = board.max_clocks.sm_mhz.value().copied().map(f64::from);
        let throttled = sums.throttled.map(|count| count / sums.samples);
        let reduced = max_clock
            .filter(|max| throttled[0].max(throttled[1]) >= 0.5 && clock > 0.0 && *max > 0.0)
            .map(|max| clock / max);
        let rates = [
            &host.disk.read_bytes_per_second,
            &host.network.received_bytes_per_second,
        ];
        let [disk, network] = rates.map(|rate| rate.value().copied());
        let owners = owner_shares(sample);
        let window = Window {
            gpu: share(sums.gpu),
            activity,
            pcie: rate(sums.rates[0]),
            pcie_limit: pcie_limit(board),
            reduced_clock: reduced,
            cpu: cpu.map(|cpu| CpuShares {
                process: cpu.process_cores,
                workers: cpu.worker_cores,
                blocked: cpu.blocked,
            }),
            input: disk.into_iter().chain(network).reduce(f64::max),
            spans_gpus: spans_gpus(sample, machine),
            owners,
        };
        let shares = classify_window(&window);
        let (main, mut confidence) = shares.find_main_cause();
        let has_processes = sample.processes.value().is_none_or(|all| !all.is_empty());
        if matches!(main, LimitClass::Idle | LimitClass::Host)
            && window.cpu.is_none()
            && has_processes
        {
            confidence = Confidence::Low;
        }
        let workers = cpu.filter(|cpu| cpu.workers > 0 && do_workers_decide(&window));
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        let whole = |number: f64| number.round();
        let evidence = LimitEvidence {
            gpu_percent: Some(percent(window.gpu)),
            cpu_percent: cpu.map(|cpu| percent(cpu.process_cores)),
            workers: workers.map(|cpu| cpu.workers),
            workers_percent: workers.map(|cpu| percent(cpu.worker_cores)),
            cores: host
                .cpu
                .count
                .value()
                .copied()
                .filter(|cores| workers.is_some_and(|cpu| cpu.workers < *cores)),
            disk_bytes_per_second: disk.filter(|rate| *rate >= 1e6).map(whole),
            network_bytes_per_second: network.filter(|rate| *rate >= 1e6).map(whole),
            pcie_bytes_per_second: window.pcie.map(whole),
            nvlink_bytes_per_second: rate(sums.rates[1]).filter(|rate| *rate >= 1e6).map(whole),
            sm_percent: activity.map(|it| percent(it.sm)),
            tensor_percent: activity.map(|it| percent(it.tensor)),
            arithmetic_percent: activity.map(|it| percent(it.arithmetic)),
            dram_percent: activity.map(|it| percent(it.dram)),
            sm_mhz: Some(whole(clock)),
            max_sm_mhz: max_clock,
            too_hot: reduced.is_some() && throttled[1] > throttled[0],
            small_copies: has_small_copies(&window),
            owners: Some(count_active_owners(&window.owners)).filter(|count| *count > 1),
            // Filled in by `name_slow_gpus`.
            slow_gpu: None,
            wait_ms: None,
        };
        let needs_counters = [
            LimitClass::Communication,
            LimitClass::Memory,
            LimitClass::Tensor,
            LimitClass::Compute,
            LimitClass::Latency,
        ];
        let readings = LimitClass::ALL.map(|class| {
            if activity.is_none() && needs_counters.contains(&class) {
                Reading::NOT_SUPPORTED
            } else {
                Reading::Now(percent(shares.get(class)))
            }
        });
        Limits::new(sums.ms as u64, readings, main, confidence, evidence)
    }
}

/// Returns the maximum rate of the GPU's PCIe link in one direction.
fn pcie_limit(board: &Board) -> Option<f64> {
    let generation = *board.pcie_max_generation.value()? as usize;
    let lanes = f64::from(*board.pcie_max_width.value()?);
    LANE_BYTES_PER_SECOND
        .get(generation)
        .map(|rate| rate * lanes)
}

/// Returns the multiprocessor shares of the owners. Processes of one job have one owner.
fn owner_shares(sample: &GpuSample) -> Vec<f64> {
    let mut owners: Vec<(&Process, f64)> = Vec::new();
    for process in sample.processes.value().into_iter().flatten() {
        let share = process.sm_percent.value().copied().unwrap_or_default() / 100.0;
        match owners
            .iter_mut()
            .find(|(known, _)| is_same_job(known, process))
        {
            Some((_, sum)) => *sum += share,
            None => owners.push((process, share)),
        }
    }
    owners.into_iter().map(|(_, share)| share).collect()
}

/// Returns the other GPUs that processes of the same job use.
fn find_siblings<'a>(
    sample: &'a GpuSample,
    machine: &'a [GpuSample],
) -> impl Iterator<Item = &'a GpuSample> {
    let own = || sample.processes.value().into_iter().flatten();
    machine.iter().filter(move |gpu| {
        gpu.index != sample.index
            && gpu
                .processes
                .value()
                .into_iter()
                .flatten()
                .any(|process| own().any(|own| is_same_job(own, process)))
    })
}

fn spans_gpus(sample: &GpuSample, machine: &[GpuSample]) -> bool {
    find_siblings(sample, machine).next().is_some()
}

/// Adds the GPU that is slowest to the limits of those GPUs of the same job that wait for it. Must
/// be called after the limits of all GPUs have been filled in.
pub fn name_slow_gpus(samples: &mut [GpuSample]) {
    for number in 0..samples.len() {
        let slowest = slowest_sibling(&samples[number], samples);
        if let (Some((gpu, wait)), Some(limits)) = (slowest, samples[number].limits.value_mut()) {
            limits.set_slow_gpu(gpu, (wait * 1000.0).round() as u32);
        }
    }
}

/// Returns the GPU of the same job that waits least, and how much longer this GPU waits, as a share
/// of the time. Returns `None` if waiting is not what limits this GPU, or if all wait for about the
/// same time.
fn slowest_sibling(sample: &GpuSample, machine: &[GpuSample]) -> Option<(u32, f64)> {
    let wait = |gpu: &GpuSample| {
        let percent = gpu.limits.value()?.communication_percent.value()?;
        Some(percent / 100.0)
    };
    let is_waiting = sample.limits.value()?.main == LimitClass::Communication;
    let own_wait = wait(sample).filter(|_| is_waiting)?;
    find_siblings(sample, machine)
        .filter_map(|gpu| Some((gpu.index, own_wait - wait(gpu)?)))
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .filter(|(_, wait)| *wait >= MIN_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::examples;

    const CPU: CpuUse = CpuUse {
        process_cores: 1.0,
        workers: 0,
        worker_cores: 0.0,
        blocked: false,
    };

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
                tracker.update(&mut samples, 0, &board, Some(&CPU), &host);
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
        tracker.update(&mut samples, 0, &board, Some(&CPU), &host);
        assert_eq!(samples[0].limits, Reading::Absent(Absence::NoAnswer));
    }

    #[test]
    fn slow_gpu_of_a_job_is_named() {
        let host = examples::make_host();
        let board = examples::make_board();
        let mut trackers = [LimitTracker::default(), LimitTracker::default()];
        let mut samples = [make_sample(0, 0, 0), make_sample(1, 0, 0)];
        for second in 1..=4 {
            samples = [0, 1].map(|index| make_sample(index, second * 1000, second * 1000));
            for sample in &mut samples {
                // Both processes belong to one job, because they have the same launcher.
                let process = &mut sample.processes.value_mut().unwrap()[0];
                process.owner.value_mut().unwrap().parents = vec![crate::model::Ancestor {
                    pid: 5,
                    name: "torchrun".to_owned(),
                }];
            }
            // GPU 0 waits in a collective for 60 % of the time.
            let activity = samples[0].activity.value_mut().unwrap();
            activity.tensor_percent = Reading::Now(92.0 * 0.4);
            for (number, tracker) in trackers.iter_mut().enumerate() {
                tracker.update(&mut samples, number, &board, Some(&CPU), &host);
            }
            name_slow_gpus(&mut samples);
        }
        let waiting = samples[0].limits.value().unwrap();
        assert_eq!(waiting.main, LimitClass::Communication);
        assert_eq!(
            (waiting.evidence.slow_gpu, waiting.evidence.wait_ms),
            (Some(1), Some(600))
        );
        assert_eq!(samples[1].limits.value().unwrap().main, LimitClass::Tensor);
    }
}
