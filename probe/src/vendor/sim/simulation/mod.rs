//! A running simulation of a machine: its GPUs, clock, counters, and sample buffers. The state of
//! the GPUs is a pure function of the scenario, the GPU, and the time.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{
    Counters, GpuIdentity, GpuState, ProcessState, Scenario, Wear, board::Board,
    identity::make_uuid, noise::Noise,
};
use crate::{
    model::{AccountedProcess, PciPath, ThrottleCause, ThrottleReason, TraceMetric, now_ms},
    vendor::lock,
};

/// The number of GPUs per socket.
const GPUS_PER_SOCKET: u32 = 4;

/// All simulated GPUs of a machine. All results depend only on the arguments.
///
/// Methods panic if a GPU index is not below [`gpu_count`](Self::gpu_count). Times are in
/// milliseconds since the start of the timeline.
#[derive(Debug, Clone)]
pub struct World {
    scenario: Scenario,
    boards: Vec<Board>,
}

impl World {
    /// Creates the GPUs that a scenario describes.
    pub fn new(scenario: Scenario) -> Self {
        let boards = (0..scenario.gpu_count())
            .map(|index| Board::new(&scenario, index))
            .collect();
        Self { scenario, boards }
    }

    /// Returns the scenario that describes the GPUs.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the number of GPUs.
    pub fn gpu_count(&self) -> u32 {
        self.boards.len() as u32
    }

    /// Returns a GPU's constant data.
    pub fn gpu_identity(&self, index: u32) -> &GpuIdentity {
        self.get_board(index).identity()
    }

    /// Returns a GPU's state at the given time.
    pub fn state(&self, index: u32, elapsed_ms: u64) -> GpuState {
        let mut state = self.get_board(index).compute_state(to_seconds(elapsed_ms));
        if self.scenario.returns_garbage(index, to_seconds(elapsed_ms)) {
            spoil_state(&mut state);
        }
        state
    }

    /// Returns a GPU's errors and repairs up to the given time.
    pub fn compute_wear(&self, index: u32, elapsed_ms: u64) -> Wear {
        let seconds = to_seconds(elapsed_ms);
        self.get_board(index)
            .compute_wear(seconds, self.scenario.counter_factor(index, seconds))
    }

    /// Returns the processes on a GPU, in the order of the scenario.
    pub fn processes(&self, index: u32, elapsed_ms: u64) -> Vec<ProcessState> {
        let mut processes = self.get_board(index).processes(to_seconds(elapsed_ms));
        if self.scenario.returns_garbage(index, to_seconds(elapsed_ms)) {
            spoil_processes(&mut processes);
        }
        processes
    }

    /// Returns `true` if a GPU is divided into MIG devices at the given time.
    pub fn is_divided(&self, index: u32, elapsed_ms: u64) -> bool {
        self.get_board(index).is_divided(to_seconds(elapsed_ms))
    }

    /// Returns the accounts of running and ended processes, sorted from oldest to newest. The list
    /// is empty if accounting is off.
    pub fn list_accounted(
        &self,
        index: u32,
        elapsed_ms: u64,
        timeline: &Timeline,
    ) -> Vec<AccountedProcess> {
        if self.gpu_identity(index).accounting {
            self.get_board(index)
                .list_accounted(to_seconds(elapsed_ms), timeline)
        } else {
            Vec::new()
        }
    }

    /// Returns the PCIe path between two GPUs.
    pub fn path(&self, a: u32, b: u32) -> PciPath {
        if a == b {
            PciPath::Internal
        } else if a / GPUS_PER_SOCKET == b / GPUS_PER_SOCKET {
            PciPath::Node
        } else {
            PciPath::System
        }
    }

    /// Returns `true` if switches link the two GPUs.
    pub fn are_linked(&self, a: u32, b: u32) -> bool {
        [a, b].iter().all(|index| {
            let links = &self.gpu_identity(*index).nvlinks;
            links.iter().any(|link| link.active)
        })
    }

    /// Returns the UUID of the `NVSwitch` fabric, or `None` if the GPU has no links.
    pub fn fabric_uuid(&self, index: u32) -> Option<String> {
        let noise = || Noise::new(self.scenario.seed, u32::MAX).derive_stream("fabric");
        (!self.gpu_identity(index).nvlinks.is_empty()).then(|| make_uuid(noise()))
    }

    fn compute_rates(&self, index: u32, elapsed_ms: u64) -> CounterRates {
        self.get_board(index).compute_rates(to_seconds(elapsed_ms))
    }

    fn recorded_value(&self, index: u32, metric: TraceMetric, elapsed_ms: u64) -> f64 {
        self.get_board(index)
            .recorded_value(metric, to_seconds(elapsed_ms))
    }

    fn get_board(&self, index: u32) -> &Board {
        &self.boards[index as usize]
    }
}

fn to_seconds(elapsed_ms: u64) -> f64 {
    elapsed_ms as f64 / 1000.0
}

/// A running simulation with its clock, used by `--source sim` and by gpumon's fake NVML library.
///
/// Methods panic if a GPU index is not below the world's `gpu_count`.
#[derive(Debug)]
pub struct Machine {
    /// The simulated GPUs, and the scenario that describes them.
    pub world: World,
    /// The simulation's clock.
    pub timeline: Timeline,
    /// The machine-wide indices of the GPUs that were present at the start, in the driver's order.
    /// The driver does not find GPUs that appear later.
    pub found: Vec<u32>,
    meters: Meters,
    newest: Vec<Mutex<CachedState>>,
}

/// A GPU's most recently calculated state, and the time for which it was calculated.
type CachedState = Option<(u64, Arc<GpuState>)>;

impl Machine {
    pub fn start(scenario: Scenario) -> Self {
        let timeline = Timeline::start(&scenario);
        let world = World::new(scenario);
        Self {
            meters: Meters::new(world.gpu_count(), timeline.elapsed_ms()),
            found: (0..world.gpu_count())
                .filter(|gpu| world.scenario().is_present(*gpu, timeline.elapsed_s()))
                .collect(),
            newest: (0..world.gpu_count()).map(|_| Mutex::default()).collect(),
            world,
            timeline,
        }
    }

    /// Returns a GPU's state at `elapsed_ms` after the start of the timeline. Calls for the same
    /// millisecond share one calculation.
    pub fn state(&self, gpu: u32, elapsed_ms: u64) -> Arc<GpuState> {
        let mut newest = lock(&self.newest[gpu as usize]);
        match &*newest {
            Some((at_ms, state)) if *at_ms == elapsed_ms => Arc::clone(state),
            _ => {
                let state = Arc::new(self.world.state(gpu, elapsed_ms));
                *newest = Some((elapsed_ms, Arc::clone(&state)));
                state
            }
        }
    }

    /// Returns a GPU's counters at `elapsed_ms` after the start of the timeline.
    pub fn compute_totals(&self, gpu: u32, elapsed_ms: u64) -> Totals {
        let totals = self.meters.compute_totals(&self.world, gpu, elapsed_ms);
        totals.scale(
            self.world
                .scenario()
                .counter_factor(gpu, elapsed_ms as f64 / 1000.0),
        )
    }

    /// Converts a time on the timeline to a timestamp of the GPU's driver, in microseconds since
    /// 1970.
    pub fn driver_timestamp_us(&self, gpu: u32, elapsed_ms: u64) -> u64 {
        let skew_s = self
            .world
            .scenario()
            .driver_clock_skew_s(gpu, self.timeline.elapsed_s());
        let host_us = (self.timeline.unix_ms(0.0) + elapsed_ms) * 1000;
        host_us.saturating_add_signed((skew_s * 1e6) as i64)
    }
}

/// A value that the driver has recorded in a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordedValue {
    /// The driver's timestamp, in microseconds since 1970.
    pub at_us: u64,
    /// The value, in the unit of its metric.
    pub value: f64,
}

/// Returns the interval between two values in a buffer, in milliseconds, and the number of values
/// that the buffer stores.
fn buffer_period_and_length(metric: TraceMetric) -> (u64, u64) {
    match metric {
        TraceMetric::PowerWatts => (20, 119),
        TraceMetric::GpuPercent | TraceMetric::MemoryPercent => (200, 71),
    }
}

impl Machine {
    /// Returns the values in a GPU's buffer at the given time, sorted from oldest to newest. Only
    /// values after `after_us` are returned. Values are recorded at fixed times, counted from the
    /// start of the timeline.
    pub fn read_buffer(
        &self,
        gpu: u32,
        metric: TraceMetric,
        elapsed_ms: u64,
        after_us: u64,
    ) -> Vec<RecordedValue> {
        let (period_ms, length) = buffer_period_and_length(metric);
        let start_ms = self.timeline.unix_ms(0.0);
        let newest = (start_ms + elapsed_ms) / period_ms;
        let oldest = (newest + 1)
            .saturating_sub(length)
            .max(start_ms.div_ceil(period_ms));
        let moments = (oldest..=newest).map(|number| number * period_ms - start_ms);
        moments
            .map(|at_ms| (self.driver_timestamp_us(gpu, at_ms), at_ms))
            .filter(|(at_us, _)| *at_us > after_us)
            .map(|(at_us, at_ms)| RecordedValue {
                at_us,
                value: self.world.recorded_value(gpu, metric, at_ms),
            })
            .collect()
    }
}

const IMPOSSIBLE_PERCENT: u32 = 4_000_000;

/// Sets all numbers in a GPU's state to values that are out of range, like those of a faulty
/// driver.
fn spoil_state(state: &mut GpuState) {
    state.gpu_percent = IMPOSSIBLE_PERCENT;
    state.memory_percent = IMPOSSIBLE_PERCENT;
    state.encoder_percent = IMPOSSIBLE_PERCENT;
    state.decoder_percent = IMPOSSIBLE_PERCENT;
    state.jpeg_percent = IMPOSSIBLE_PERCENT;
    state.ofa_percent = IMPOSSIBLE_PERCENT;
    state.fan_percent = IMPOSSIBLE_PERCENT;
    state.memory_used_bytes = state.memory_total_bytes * 2;
    state.memory_free_bytes = state.memory_total_bytes * 3;
    // Corresponds to the largest 32-bit number of milliwatts.
    state.power_watts = f64::from(u32::MAX) / 1000.0;
    state.power_instant_watts = state.power_watts;
    state.temperature_celsius = 255.0;
    state.memory_temperature_celsius = 255.0;
    state.margin_celsius = -1_000.0;
    state.sm_mhz = u32::MAX;
    state.memory_mhz = u32::MAX;
    state.video_mhz = u32::MAX;
    state.counters.sm_percent = f64::from(IMPOSSIBLE_PERCENT);
    state.counters.occupancy_percent = -1.0;
    state.counters.tensor_percent = f64::NAN;
    spoil_processes(&mut state.processes);
}

/// Sets the utilization of processes to values that are out of range.
fn spoil_processes(processes: &mut [ProcessState]) {
    for process in processes {
        process.sm_percent = IMPOSSIBLE_PERCENT;
        process.memory_percent = IMPOSSIBLE_PERCENT;
    }
}

/// The interval at which counters change. The driver's real energy counter changes at the same
/// interval.
const COUNTER_TICK_MS: u64 = 100;
/// How much of the time before the simulation's creation is included in the counters, in
/// milliseconds. If the timeline started earlier, the rest is ignored, because adding it up would
/// take too long.
const MAX_COUNTED_PAST_MS: u64 = 3_600_000;

/// A GPU's counters since the start of the timeline. If the timeline was more than an hour old when
/// the simulation was created, the counters start one hour before the creation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// The energy that the GPU has consumed, in joules.
    pub energy_joules: f64,
    /// The number of bytes that the GPU has sent over PCIe.
    pub pcie_tx_bytes: f64,
    /// The number of bytes that the GPU has received over PCIe.
    pub pcie_rx_bytes: f64,
    /// The number of bytes that the GPU has sent over all `NVLinks`.
    pub nvlink_tx_bytes: f64,
    /// The number of bytes that the GPU has received over all `NVLinks`.
    pub nvlink_rx_bytes: f64,
    throttled_s: [f64; ThrottleReason::ALL.len()],
}

impl Totals {
    /// Returns how long `reason` has reduced the clocks, in seconds.
    pub fn throttled_s(&self, reason: ThrottleReason) -> f64 {
        self.throttled_s[reason as usize]
    }

    /// Returns how long reasons with the given cause have reduced the clocks, in seconds.
    pub fn throttled_by_cause_s(&self, cause: ThrottleCause) -> f64 {
        let reasons = ThrottleReason::ALL.into_iter();
        let alike = reasons.filter(|reason| reason.cause() == cause);
        alike.map(|reason| self.throttled_s(reason)).sum()
    }

    /// Multiplies all counters by `factor`.
    #[must_use]
    fn scale(self, factor: f64) -> Self {
        Self {
            energy_joules: self.energy_joules * factor,
            pcie_tx_bytes: self.pcie_tx_bytes * factor,
            pcie_rx_bytes: self.pcie_rx_bytes * factor,
            nvlink_tx_bytes: self.nvlink_tx_bytes * factor,
            nvlink_rx_bytes: self.nvlink_rx_bytes * factor,
            throttled_s: self.throttled_s.map(|seconds| seconds * factor),
        }
    }

    fn add(&mut self, flow: &CounterRates, seconds: f64) {
        self.energy_joules += flow.watts * seconds;
        self.pcie_tx_bytes += flow.counters.pcie_tx_bytes_per_second * seconds;
        self.pcie_rx_bytes += flow.counters.pcie_rx_bytes_per_second * seconds;
        self.nvlink_tx_bytes += flow.counters.nvlink_tx_bytes_per_second * seconds;
        self.nvlink_rx_bytes += flow.counters.nvlink_rx_bytes_per_second * seconds;
        for reason in &flow.throttle_reasons {
            self.throttled_s[*reason as usize] += seconds;
        }
    }
}

/// The rates at a certain time, from which the counters are calculated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CounterRates {
    pub(super) watts: f64,
    pub(super) counters: Counters,
    pub(super) throttle_reasons: Vec<ThrottleReason>,
}

/// The counters of all GPUs in a simulated machine, calculated as the sums of all past rates.
#[derive(Debug)]
struct Meters(Vec<Mutex<Meter>>);

#[derive(Debug)]
struct Meter {
    counted_until_ms: u64,
    totals: Totals,
}

impl Meters {
    /// Creates counters that are 0 at the start of the timeline, or one hour before `elapsed_ms` if
    /// that is later.
    fn new(gpus: u32, elapsed_ms: u64) -> Self {
        let counted_until_ms =
            elapsed_ms.saturating_sub(MAX_COUNTED_PAST_MS) / COUNTER_TICK_MS * COUNTER_TICK_MS;
        Self(
            (0..gpus)
                .map(|_| {
                    Mutex::new(Meter {
                        counted_until_ms,
                        totals: Totals::default(),
                    })
                })
                .collect(),
        )
    }

    /// Returns a GPU's counters at `elapsed_ms`.
    fn compute_totals(&self, world: &World, gpu: u32, elapsed_ms: u64) -> Totals {
        let mut meter = lock(&self.0[gpu as usize]);
        while meter.counted_until_ms + COUNTER_TICK_MS <= elapsed_ms {
            meter.counted_until_ms += COUNTER_TICK_MS;
            let flow = world.compute_rates(gpu, meter.counted_until_ms);
            meter.totals.add(&flow, COUNTER_TICK_MS as f64 / 1000.0);
        }
        meter.totals
    }
}

/// The clock of a running simulation. Changes to the machine's clock do not affect it.
#[derive(Debug, Clone)]
pub struct Timeline {
    start_ms: u64,
    begun: Instant,
    elapsed_when_begun: Duration,
}

impl Timeline {
    /// Starts the timeline now. If the scenario's `start_ms` is in the past, the timeline starts at
    /// that time instead.
    pub fn start(scenario: &Scenario) -> Self {
        let now = now_ms();
        let start_ms = scenario.start_ms.unwrap_or(now).min(now);
        Self {
            start_ms,
            begun: Instant::now(),
            elapsed_when_begun: Duration::from_millis(now - start_ms),
        }
    }

    /// Returns the time since the start of the timeline, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.elapsed_time().as_millis() as u64
    }

    /// Returns the time since the start of the timeline, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        self.elapsed_time().as_secs_f64()
    }

    fn elapsed_time(&self) -> Duration {
        self.elapsed_when_begun + self.begun.elapsed()
    }

    /// Converts a time on the timeline to milliseconds since 1970.
    pub fn unix_ms(&self, seconds: f64) -> u64 {
        self.start_ms
            .saturating_add_signed((seconds * 1000.0).round() as i64)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod machine_tests {
    use super::*;

    #[test]
    fn state_is_computed_once_per_millisecond() {
        let machine = Machine::start(Scenario::with_gpus(2, 1));
        let first = machine.state(0, 5_000);
        assert!(Arc::ptr_eq(&first, &machine.state(0, 5_000)));
        assert!(!Arc::ptr_eq(&first, &machine.state(0, 5_001)));
        assert_eq!(*machine.state(1, 7_000), machine.world.state(1, 7_000));
        assert_ne!(*machine.state(1, 7_000), *machine.state(0, 7_000));
    }
}

#[cfg(test)]
mod buffers_tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn start_machine(toml: &str) -> Machine {
        Machine::start(
            Scenario::from_toml(&format!("start_ms = 1_700_000_000_007\n{toml}"), "test").unwrap(),
        )
    }

    #[test]
    fn simulated_buffer_has_driver_length_and_interval() {
        let machine = start_machine("");
        for (metric, count, step_us) in [
            (TraceMetric::PowerWatts, 119, 20_000),
            (TraceMetric::GpuPercent, 71, 200_000),
        ] {
            let samples = machine.read_buffer(0, metric, 60_000, 0);
            assert_eq!(samples.len(), count);
            assert!(
                samples
                    .iter()
                    .all(|sample| sample.at_us.is_multiple_of(step_us))
            );
            assert!(
                samples
                    .windows(2)
                    .all(|pair| pair[1].at_us == pair[0].at_us + step_us)
            );
            let age_us = 1_700_000_060_007_000 - samples[count - 1].at_us;
            assert!(age_us < step_us, "the newest is {age_us} us old");
        }
    }

    #[test]
    fn consecutive_reads_return_each_value_once() {
        let machine = start_machine("");
        let all = machine.read_buffer(0, TraceMetric::PowerWatts, 12_000, 0);
        let (mut pieces, mut seen) = (Vec::new(), all[0].at_us - 1);
        for elapsed_ms in [9_800, 10_019, 10_500, 10_500, 12_000] {
            let piece = machine.read_buffer(0, TraceMetric::PowerWatts, elapsed_ms, seen);
            seen = piece.last().map_or(seen, |last| last.at_us);
            pieces.extend(piece);
        }
        assert_eq!(pieces, all);
    }

    #[test]
    fn simulated_buffer_has_no_samples_before_timeline_start() {
        let machine = start_machine(
            "[[gpu]]\nindex = 0\nutilization_percent = [[0, 0], [10, 100]]\npower_watts = 300",
        );
        let young = machine.read_buffer(0, TraceMetric::GpuPercent, 1_000, 0);
        assert_eq!(
            young.iter().map(|sample| sample.value).collect::<Vec<_>>(),
            [2.0, 4.0, 6.0, 8.0, 10.0]
        );
        let values = |metric, ms| {
            machine
                .read_buffer(0, metric, ms, 0)
                .into_iter()
                .map(|sample| sample.value)
        };
        assert_eq!(
            values(TraceMetric::PowerWatts, 60).collect::<Vec<_>>(),
            [300.0; 3]
        );
        assert_eq!(
            values(TraceMetric::MemoryPercent, 1_000).next_back(),
            Some(4.0)
        );
    }
}

#[cfg(test)]
mod meters_tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn make_world(toml: &str) -> World {
        World::new(Scenario::from_toml(toml, "test").unwrap())
    }

    #[test]
    fn energy_is_integral_of_power() {
        let world = make_world("[[gpu]]\nindex = 0\npower_watts = 500\n");
        let meters = Meters::new(1, 0);
        let joules = |ms| meters.compute_totals(&world, 0, ms).energy_joules;
        let (early, late) = (joules(1_000), joules(11_000));
        assert!(
            ((late - early) / 5_000.0 - 1.0).abs() < 0.001,
            "{early} J and 10 s of 500 W later {late} J"
        );
        assert!(
            (joules(11_099) - late).abs() < f64::EPSILON,
            "it moves in steps"
        );
        assert!((joules(11_100) - late - 50.0).abs() < 0.001);
    }

    #[test]
    fn throttled_time_grows_while_reason_lasts() {
        let world = make_world(
            "[[gpu]]\nindex = 0\nutilization_percent = 50\nnvlinks = 2\n\
             throttle_reasons = [[0, []], [10, [\"hw_thermal_slowdown\"]], [14, []]]",
        );
        let meters = Meters::new(1, 0);
        let at = |ms| meters.compute_totals(&world, 0, ms);
        let heat = |totals: Totals| totals.throttled_s(ThrottleReason::HwThermalSlowdown);
        assert!(heat(at(9_000)).abs() < 1e-9);
        assert!((heat(at(12_000)) - 2.0).abs() < 0.2);
        let late = at(60_000);
        assert!((heat(late) - 4.0).abs() < 0.2);
        assert!(late.throttled_s(ThrottleReason::SwPowerCap).abs() < 1e-9);
        let state = world.state(0, 60_000);
        let expected = state.counters.nvlink_tx_bytes_per_second * 60.0;
        assert!(
            (late.nvlink_tx_bytes / expected - 1.0).abs() < 0.01,
            "{late:?}"
        );
        assert!(
            late.nvlink_rx_bytes < late.nvlink_tx_bytes && late.pcie_rx_bytes > late.pcie_tx_bytes
        );
    }
}

#[cfg(test)]
mod timeline_tests {
    use super::*;

    fn make_scenario_starting_at(start_ms: u64) -> Scenario {
        let mut scenario = Scenario::with_gpus(1, 0);
        scenario.start_ms = Some(start_ms);
        scenario
    }

    #[test]
    fn timeline_starts_now_or_at_start_ms() {
        let fresh = Timeline::start(&Scenario::default());
        assert!(fresh.elapsed_ms() < 5_000);

        let hour_ago = now_ms() - 3_600_000;
        let old = Timeline::start(&make_scenario_starting_at(hour_ago));
        assert!((3_600_000..3_605_000).contains(&old.elapsed_ms()));
        assert_eq!(old.unix_ms(1.5), hour_ago + 1_500);
        assert_eq!(old.unix_ms(-1.5), hour_ago - 1_500);

        let delayed = Timeline::start(&make_scenario_starting_at(u64::MAX));
        assert!(delayed.elapsed_ms() < 5_000);
    }
}
