//! A simulated GPU: its load, and the resulting readings of its sensors.

use crate::model::{AccountedProcess, ThrottleReason, TraceMetric};

use super::{
    Counters, GpuIdentity, GpuState, MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ, MigState, ProcessState,
    Profile, Scenario, Timeline, Wear, accounting,
    clocks::RESTING_MHZ,
    identity::H200_WATTS,
    meters::Flow,
    noise::Noise,
    profile::Load,
    scenario::{AccountedSettings, Curve, GpuSettings, MigSettings, Percent, ProcessSettings},
    tenancy::{self, percent},
    thermal::{self, Past, Path},
};

/// The exponent with which dynamic power grows with the clock. The voltage grows with the clock
/// too.
const POWER_BY_CLOCK: f64 = 2.5;
/// The driver reserves one part in this many of the memory, for example 616 MiB on an H200.
const RESERVED_PART: u64 = 233;
/// The device memory that the host maps: a base amount, and an amount per process.
const BAR1_USED_BYTES: u64 = 1 << 20;
const BAR1_PER_PROCESS_BYTES: u64 = 2 << 20;

/// A GPU whose state can be computed for any moment.
#[derive(Debug, Clone)]
pub(super) struct Board {
    identity: GpuIdentity,
    seed: u64,
    noise: Noise,
    profile: Profile,
    settings: Option<GpuSettings>,
    processes: Vec<ProcessSettings>,
    accounted: Vec<AccountedSettings>,
    past: Past,
}

/// The power that a board draws at one moment, and the resulting clock.
#[derive(Debug, Clone, Copy)]
struct Draw {
    watts: f64,
    sm_mhz: u32,
    capped: bool,
}

impl Board {
    pub(super) fn new(scenario: &Scenario, index: u32) -> Self {
        let settings = scenario.settings(index).cloned();
        Self {
            identity: GpuIdentity::new(scenario, index),
            seed: scenario.seed,
            noise: Noise::new(scenario.seed, index),
            profile: settings
                .as_ref()
                .and_then(|own| own.profile)
                .unwrap_or_else(|| Profile::of_index(index)),
            processes: scenario.processes(index).cloned().collect(),
            accounted: scenario.accounted(index).cloned().collect(),
            settings,
            past: Past::default(),
        }
    }

    pub(super) fn identity(&self) -> &GpuIdentity {
        &self.identity
    }

    pub(super) fn state(&self, seconds: f64) -> GpuState {
        let load = self.load(seconds);
        let draw = self.draw(seconds, &load);
        let reserved = self.identity.memory_total_bytes / RESERVED_PART;
        let usable = self.usable_bytes();
        let mut processes = self.running(seconds, &load);
        let held: u64 = processes
            .iter()
            .filter_map(|process| process.memory_bytes)
            .sum();
        let used = match self.set(|own| own.memory_used.as_ref()) {
            Some(curve) => (curve.at(seconds) as u64).min(usable),
            None => held.min(usable),
        };
        if self.processes.is_empty() {
            tenancy::fit(&mut processes, used);
        }
        let share = |pick: fn(&GpuSettings) -> Option<&Curve<Percent>>| {
            percent(self.said(pick, seconds).unwrap_or(0.0))
        };
        let temperature_celsius = self.temperature(seconds);
        GpuState {
            gpu_percent: percent(load.gpu_percent),
            memory_percent: percent(load.memory_percent),
            encoder_percent: percent(load.encoder_percent),
            decoder_percent: percent(load.decoder_percent),
            jpeg_percent: share(|own| own.jpeg_percent.as_ref()),
            ofa_percent: share(|own| own.ofa_percent.as_ref()),
            memory_total_bytes: self.identity.memory_total_bytes,
            memory_used_bytes: used,
            memory_reserved_bytes: reserved,
            memory_free_bytes: usable - used,
            power_watts: self.average_watts(seconds),
            power_instant_watts: draw.watts,
            power_limit_watts: self.identity.power_limit_watts,
            temperature_celsius,
            memory_temperature_celsius: self.warmth(seconds, &thermal::MEMORY),
            margin_celsius: f64::from(GpuIdentity::GPU_MAX_CELSIUS) - temperature_celsius,
            fan_percent: percent(30.0 + (temperature_celsius - 30.0) * 1.2),
            sm_mhz: draw.sm_mhz,
            memory_mhz: MEMORY_MHZ,
            video_mhz: draw.sm_mhz * MAX_VIDEO_MHZ / MAX_SM_MHZ / 15 * 15,
            performance_state: 0,
            throttle_reasons: self.reasons(seconds, &load, draw),
            pcie_generation: GpuIdentity::PCIE_GENERATION,
            pcie_width: self
                .set(|own| own.pcie_width.as_ref())
                .map_or(GpuIdentity::PCIE_WIDTH, |curve| curve.at(seconds) as u32),
            bar1_used_bytes: BAR1_USED_BYTES + BAR1_PER_PROCESS_BYTES * processes.len() as u64,
            counters: self.counters(seconds, &load),
            mig: self.mig(seconds, &processes),
            processes,
        }
    }

    pub(super) fn is_divided(&self, seconds: f64) -> bool {
        !self.divisions(seconds).is_empty()
    }

    fn divisions(&self, seconds: f64) -> &[MigSettings] {
        self.set(|own| own.mig.as_ref())
            .map_or(&[], |steps| steps.get_ref().at(seconds))
    }

    fn mig(&self, seconds: f64, processes: &[ProcessState]) -> Vec<MigState> {
        let devices = self.divisions(seconds).iter().zip(0..);
        devices
            .map(|(own, index)| MigState::new(&self.identity, self.seed, index, own, processes))
            .collect()
    }

    /// Returns the share of the GPU that a process can use.
    fn part(&self, process: &ProcessSettings, seconds: f64) -> f64 {
        let Some(instance) = process.mig() else {
            return 1.0;
        };
        let device = self
            .divisions(seconds)
            .iter()
            .find(|device| device.instance() == instance);
        device.map_or(0.0, |device| {
            f64::from(device.profile.compute_slices) / f64::from(MigState::MOST)
        })
    }

    /// Returns the rates at a moment. This takes a fraction of the work of computing the whole
    /// state.
    pub(super) fn flow(&self, seconds: f64) -> Flow {
        let load = self.load(seconds);
        let draw = self.draw(seconds, &load);
        Flow {
            watts: draw.watts,
            counters: self.counters(seconds, &load),
            throttle_reasons: self.reasons(seconds, &load, draw),
        }
    }

    /// Returns a value that the driver records in a buffer, with the resolution of the sensor.
    pub(super) fn recorded(&self, metric: TraceMetric, seconds: f64) -> f64 {
        match metric {
            TraceMetric::PowerWatts => (self.watts(seconds) * 1000.0).round() / 1000.0,
            TraceMetric::GpuPercent => percent(self.load(seconds).gpu_percent).into(),
            TraceMetric::MemoryPercent => percent(self.load(seconds).memory_percent).into(),
        }
    }

    /// Returns the errors and repairs, with the counters multiplied by `left`.
    pub(super) fn wear(&self, seconds: f64, left: f64) -> Wear {
        Wear::new(&self.identity, self.settings.as_ref(), seconds, left)
    }

    pub(super) fn processes(&self, seconds: f64) -> Vec<ProcessState> {
        self.running(seconds, &self.load(seconds))
    }

    pub(super) fn accounted(&self, seconds: f64, timeline: &Timeline) -> Vec<AccountedProcess> {
        let mut accounted = accounting::of_earlier(&self.accounted, timeline);
        if self.processes.is_empty() {
            accounted.extend(accounting::of_states(&self.processes(seconds), timeline));
        } else {
            accounted.extend(accounting::of_scenario(&self.processes, seconds, timeline));
        }
        accounted
    }

    fn usable_bytes(&self) -> u64 {
        self.identity.memory_total_bytes - self.identity.memory_total_bytes / RESERVED_PART
    }

    /// Returns a setting of the scenario.
    fn set<T>(&self, pick: impl FnOnce(&GpuSettings) -> Option<&T>) -> Option<&T> {
        self.settings.as_ref().and_then(pick)
    }

    /// Returns the value of a curve in the scenario at a time.
    fn said(&self, pick: fn(&GpuSettings) -> Option<&Curve<Percent>>, seconds: f64) -> Option<f64> {
        self.set(pick).map(|curve| curve.at(seconds))
    }

    fn counters(&self, seconds: f64, load: &Load) -> Counters {
        let mut counters = if load.waits {
            Counters::of_waiting()
        } else {
            Counters::of(
                load.gpu_percent.clamp(0.0, 100.0),
                load.memory_percent.clamp(0.0, 100.0),
            )
        };
        if let Some(percent) = self.said(|own| own.sm_percent.as_ref(), seconds) {
            counters.sm_percent = percent;
            counters.occupancy_percent = percent * 0.23;
        }
        if let Some(percent) = self.said(|own| own.tensor_percent.as_ref(), seconds) {
            counters.tensor_percent = percent;
        }
        if self.identity.nvlinks.is_empty() {
            counters.nvlink_tx_bytes_per_second = 0.0;
            counters.nvlink_rx_bytes_per_second = 0.0;
        }
        counters
    }

    /// Returns the power that the driver reports, which is the average of the last second.
    fn average_watts(&self, seconds: f64) -> f64 {
        let moments = [0.0, 0.25, 0.5, 0.75];
        moments
            .iter()
            .map(|ago| self.watts(seconds - ago))
            .sum::<f64>()
            / moments.len() as f64
    }

    fn watts(&self, seconds: f64) -> f64 {
        self.draw(seconds, &self.load(seconds)).watts
    }

    /// Returns the load of the GPU, from its profile or its processes, and from the scenario's
    /// settings, which take precedence.
    fn load(&self, seconds: f64) -> Load {
        let load = if self.processes.is_empty() {
            self.profile.load(self.noise, seconds)
        } else {
            let running = || {
                self.processes
                    .iter()
                    .filter(|process| process.runs(seconds))
            };
            let share = |own: &ProcessSettings| {
                own.sm_percent(seconds) * own.many() * self.part(own, seconds)
            };
            let computing: f64 = running().filter(|own| !own.waits).map(share).sum();
            let waiting: f64 = running().filter(|own| own.waits).map(share).sum();
            if computing > 0.0 || waiting <= 0.0 {
                Load::even(computing + waiting)
            } else {
                Load::waiting(waiting.min(100.0))
            }
        };
        let mut load = match self.said(|own| own.utilization_percent.as_ref(), seconds) {
            Some(percent) => Load {
                tenants: load.tenants,
                ..Load::even(percent)
            },
            None => load,
        };
        let running = || {
            self.processes
                .iter()
                .filter(|process| process.runs(seconds))
        };
        let of_processes = |percent: fn(&ProcessSettings, f64) -> f64| -> f64 {
            running()
                .map(|own| percent(own, seconds) * own.many())
                .sum()
        };
        load.encoder_percent += of_processes(ProcessSettings::encoder_percent);
        load.decoder_percent += of_processes(ProcessSettings::decoder_percent);
        if let Some(percent) = self.said(|own| own.encoder_percent.as_ref(), seconds) {
            load.encoder_percent = percent;
        }
        if let Some(percent) = self.said(|own| own.decoder_percent.as_ref(), seconds) {
            load.decoder_percent = percent;
        }
        load
    }

    fn running(&self, seconds: f64, load: &Load) -> Vec<ProcessState> {
        if self.processes.is_empty() {
            tenancy::of_profile(load, self.noise, self.identity.index, self.usable_bytes())
        } else {
            tenancy::of_scenario(&self.processes, seconds)
        }
    }

    /// Simulates the power governor: the clock is the highest one unless the power limit requires a
    /// lower one.
    fn draw(&self, seconds: f64, load: &Load) -> Draw {
        let held = load.gpu_percent > 0.5
            || load.tenants.iter().any(Option::is_some)
            || self.processes.iter().any(|process| process.runs(seconds));
        let ripple = self.noise.stream("power").smooth(seconds * 3.0);
        let limit_watts = self.identity.power_limit_watts;
        let base = limit_watts * if held { 0.175 } else { 0.112 } * (1.0 + 0.015 * ripple);
        let room = limit_watts - base;
        let max_mhz = self
            .set(|own| own.max_sm_mhz.as_ref())
            .map_or(f64::from(MAX_SM_MHZ), |curve| curve.at(seconds));
        let demand =
            load.demand * limit_watts * (max_mhz / f64::from(MAX_SM_MHZ)).powf(POWER_BY_CLOCK);
        let (watts, capped) = match self.set(|own| own.power_watts.as_ref()) {
            Some(curve) => (curve.at(seconds), curve.at(seconds) >= 0.98 * limit_watts),
            None if demand > room => (limit_watts * (0.988 + 0.008 * ripple), true),
            None => (base + demand, false),
        };
        let sm_mhz = match (capped, held) {
            (true, _) => {
                (max_mhz * (room / demand.max(room)).powf(1.0 / POWER_BY_CLOCK)) as u32 / 15 * 15
            }
            (false, true) => max_mhz as u32,
            (false, false) => RESTING_MHZ,
        };
        Draw {
            watts,
            sm_mhz,
            capped,
        }
    }

    fn temperature(&self, seconds: f64) -> f64 {
        let set = self.set(|own| own.temperature_celsius.as_ref());
        set.map_or_else(
            || self.warmth(seconds, &thermal::CHIP),
            |curve| curve.at(seconds),
        )
    }

    fn warmth(&self, seconds: f64, path: &Path) -> f64 {
        let inlet = 29.5 + 3.0 * self.noise.stream("inlet").unit(0);
        // A board with a different power limit has a cooler for that power.
        path.celsius(seconds, inlet, &self.past, |at| {
            self.watts(at) * H200_WATTS / self.identity.power_limit_watts
        })
    }

    fn reasons(&self, seconds: f64, load: &Load, draw: Draw) -> Vec<ThrottleReason> {
        if let Some(steps) = self.set(|own| own.throttle_reasons.as_ref()) {
            steps.at(seconds).clone()
        } else if draw.capped {
            vec![ThrottleReason::SwPowerCap]
        } else if percent(load.gpu_percent) == 0 {
            vec![ThrottleReason::GpuIdle]
        } else {
            vec![]
        }
    }
}
