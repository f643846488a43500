//! A simulated GPU: its load, and the sensor readings that result from it.

use std::sync::{Arc, Mutex};

use super::{
    Counters, GpuIdentity, GpuState, MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ, MigState, ProcessState,
    Profile, Scenario, Timeline, Wear,
    hardware::IDLE_SM_MHZ,
    identity::H200_WATTS,
    noise::Noise,
    processes::{self, round_percent},
    profile::Load,
    scenario::{AccountedSettings, GpuSettings, MigSettings, ProcessSettings, value_or_zero},
    simulation::CounterRates,
};
use crate::{
    model::{AccountedProcess, ThrottleReason, TraceMetric},
    vendor::lock,
};

/// The exponent of the clock in the formula for the dynamic power. It is greater than 1, because
/// the voltage grows with the clock.
const POWER_EXPONENT: f64 = 2.5;
/// The driver reserves the total memory divided by this number, for example 616 MiB on an H200.
const RESERVED_DIVISOR: u64 = 233;
/// The amount of device memory that is always mapped for the host (BAR1), in bytes. Each process
/// adds `BAR1_PER_PROCESS_BYTES`.
const BAR1_USED_BYTES: u64 = 1 << 20;
const BAR1_PER_PROCESS_BYTES: u64 = 2 << 20;

/// A simulated GPU whose state can be calculated for any point in time.
#[derive(Debug, Clone)]
pub(super) struct Board {
    identity: GpuIdentity,
    seed: u64,
    noise: Noise,
    profile: Profile,
    settings: GpuSettings,
    processes: Vec<ProcessSettings>,
    accounted: Vec<AccountedSettings>,
    past: PowerHistory,
}

/// The power that a board draws, and the clock that results from it.
#[derive(Debug, Clone, Copy)]
struct PowerDraw {
    watts: f64,
    sm_mhz: u32,
    capped: bool,
}

impl Board {
    pub(super) fn new(scenario: &Scenario, index: u32) -> Self {
        let settings = scenario.settings_or_default(index);
        Self {
            identity: GpuIdentity::new(scenario, index),
            seed: scenario.seed,
            noise: Noise::new(scenario.seed, index),
            profile: settings
                .profile
                .unwrap_or_else(|| Profile::default_for(index)),
            processes: scenario.list_processes(index).cloned().collect(),
            accounted: scenario.list_accounted(index).cloned().collect(),
            settings,
            past: PowerHistory::default(),
        }
    }

    pub(super) fn identity(&self) -> &GpuIdentity {
        &self.identity
    }

    pub(super) fn compute_state(&self, seconds: f64) -> GpuState {
        let load = self.compute_load(seconds);
        let draw = self.compute_draw(seconds, &load);
        let reserved = self.identity.memory_total_bytes / RESERVED_DIVISOR;
        let usable = self.usable_bytes();
        let mut processes = self.list_running_processes(seconds, &load);
        let held: u64 = processes
            .iter()
            .filter_map(|process| process.memory_bytes)
            .sum();
        let used = match &self.settings.memory_used {
            Some(curve) => (curve.value_at(seconds) as u64).min(usable),
            None => held.min(usable),
        };
        if self.processes.is_empty() {
            processes::scale_memory(&mut processes, used);
        }
        let temperature_celsius = self.compute_chip_celsius(seconds);
        GpuState {
            gpu_percent: round_percent(load.gpu_percent),
            memory_percent: round_percent(load.memory_percent),
            encoder_percent: round_percent(load.encoder_percent),
            decoder_percent: round_percent(load.decoder_percent),
            jpeg_percent: round_percent(value_or_zero(
                self.settings.jpeg_percent.as_ref(),
                seconds,
            )),
            ofa_percent: round_percent(value_or_zero(self.settings.ofa_percent.as_ref(), seconds)),
            memory_total_bytes: self.identity.memory_total_bytes,
            memory_used_bytes: used,
            memory_reserved_bytes: reserved,
            memory_free_bytes: usable - used,
            power_watts: self.average_watts(seconds),
            power_instant_watts: draw.watts,
            power_limit_watts: self.identity.power_limit_watts,
            temperature_celsius,
            memory_temperature_celsius: self.compute_celsius(seconds, &MEMORY_COOLING),
            margin_celsius: f64::from(GpuIdentity::GPU_MAX_CELSIUS) - temperature_celsius,
            fan_percent: round_percent(30.0 + (temperature_celsius - 30.0) * 1.2),
            sm_mhz: draw.sm_mhz,
            memory_mhz: MEMORY_MHZ,
            video_mhz: draw.sm_mhz * MAX_VIDEO_MHZ / MAX_SM_MHZ / 15 * 15,
            throttle_reasons: self.list_reasons(seconds, &load, draw),
            pcie_width: self
                .settings
                .pcie_width
                .as_ref()
                .map_or(GpuIdentity::PCIE_WIDTH, |curve| {
                    curve.value_at(seconds) as u32
                }),
            bar1_used_bytes: BAR1_USED_BYTES + BAR1_PER_PROCESS_BYTES * processes.len() as u64,
            counters: self.compute_counters(seconds, &load),
            mig: self.make_mig(seconds, &processes),
            processes,
        }
    }

    pub(super) fn is_divided(&self, seconds: f64) -> bool {
        !self.mig_settings(seconds).is_empty()
    }

    fn mig_settings(&self, seconds: f64) -> &[MigSettings] {
        let mig = self.settings.mig.as_ref();
        mig.map_or(&[], |steps| steps.get_ref().value_at(seconds))
    }

    fn make_mig(&self, seconds: f64, processes: &[ProcessState]) -> Vec<MigState> {
        let devices = self.mig_settings(seconds).iter().zip(0..);
        devices
            .map(|(own, index)| MigState::new(&self.identity, self.seed, index, own, processes))
            .collect()
    }

    /// Returns the share of the GPU that a process can use: the share of its MIG device, or 1 if
    /// the process does not use MIG.
    fn usable_gpu_share(&self, process: &ProcessSettings, seconds: f64) -> f64 {
        let Some(instance) = process.mig() else {
            return 1.0;
        };
        let device = self
            .mig_settings(seconds)
            .iter()
            .find(|device| device.instance() == instance);
        device.map_or(0.0, |device| {
            f64::from(device.profile.compute_slices) / f64::from(MigState::MAX_SLICES)
        })
    }

    /// Returns the counter rates at a given time. This is much cheaper than calculating the whole
    /// state.
    pub(super) fn compute_rates(&self, seconds: f64) -> CounterRates {
        let load = self.compute_load(seconds);
        let draw = self.compute_draw(seconds, &load);
        CounterRates {
            watts: draw.watts,
            counters: self.compute_counters(seconds, &load),
            throttle_reasons: self.list_reasons(seconds, &load, draw),
        }
    }

    /// Returns a metric's value as the driver records it in a buffer, rounded to the sensor's
    /// resolution.
    pub(super) fn recorded_value(&self, metric: TraceMetric, seconds: f64) -> f64 {
        match metric {
            TraceMetric::PowerWatts => (self.compute_watts(seconds) * 1000.0).round() / 1000.0,
            TraceMetric::GpuPercent => round_percent(self.compute_load(seconds).gpu_percent).into(),
            TraceMetric::MemoryPercent => {
                round_percent(self.compute_load(seconds).memory_percent).into()
            }
        }
    }

    /// Returns the errors and repairs. The counters are multiplied by `left`, which is 1 unless a
    /// fault makes counters run backwards.
    pub(super) fn compute_wear(&self, seconds: f64, left: f64) -> Wear {
        Wear::new(&self.identity, &self.settings, seconds, left)
    }

    pub(super) fn processes(&self, seconds: f64) -> Vec<ProcessState> {
        self.list_running_processes(seconds, &self.compute_load(seconds))
    }

    pub(super) fn list_accounted(
        &self,
        seconds: f64,
        timeline: &Timeline,
    ) -> Vec<AccountedProcess> {
        let mut accounted = processes::list_earlier_accounts(&self.accounted, timeline);
        if self.processes.is_empty() {
            accounted.extend(processes::list_running_accounts(
                &self.processes(seconds),
                timeline,
            ));
        } else {
            accounted.extend(processes::list_scenario_accounts(
                &self.processes,
                seconds,
                timeline,
            ));
        }
        accounted
    }

    fn usable_bytes(&self) -> u64 {
        self.identity.memory_total_bytes - self.identity.memory_total_bytes / RESERVED_DIVISOR
    }

    fn compute_counters(&self, seconds: f64, load: &Load) -> Counters {
        let mut counters = if load.waits {
            Counters::from_waiting_kernels(load.gpu_percent.clamp(0.0, 100.0))
        } else {
            Counters::from_utilization(
                load.gpu_percent.clamp(0.0, 100.0),
                load.memory_percent.clamp(0.0, 100.0),
            )
        };
        let own = &self.settings;
        if let Some(curve) = &own.sm_percent {
            counters.sm_percent = curve.value_at(seconds);
            counters.occupancy_percent = counters.sm_percent * 0.23;
        }
        for (curve, counter) in [
            (&own.graphics_percent, &mut counters.graphics_percent),
            (&own.tensor_percent, &mut counters.tensor_percent),
            (&own.fp32_percent, &mut counters.fp32_percent),
            (
                &own.dram_bandwidth_percent,
                &mut counters.dram_bandwidth_percent,
            ),
        ] {
            if let Some(curve) = curve {
                *counter = curve.value_at(seconds);
            }
        }
        if let Some(rate) = &own.pcie_per_second {
            counters.pcie_rx_bytes_per_second = rate.value_at(seconds);
        }
        if self.identity.nvlinks.is_empty() {
            counters.nvlink_tx_bytes_per_second = 0.0;
            counters.nvlink_rx_bytes_per_second = 0.0;
        }
        counters
    }

    /// Returns the power that the driver reports, which is an average over the last second.
    fn average_watts(&self, seconds: f64) -> f64 {
        let moments = [0.0, 0.25, 0.5, 0.75];
        moments
            .iter()
            .map(|ago| self.compute_watts(seconds - ago))
            .sum::<f64>()
            / moments.len() as f64
    }

    fn compute_watts(&self, seconds: f64) -> f64 {
        self.compute_draw(seconds, &self.compute_load(seconds))
            .watts
    }

    /// Returns the GPU's load. The load comes from the profile or the processes, but the scenario's
    /// settings take precedence.
    fn compute_load(&self, seconds: f64) -> Load {
        let load = if self.processes.is_empty() {
            self.profile.compute_load(self.noise, seconds)
        } else {
            let share = |own: &ProcessSettings| {
                own.sm_percent(seconds) * own.process_count() * self.usable_gpu_share(own, seconds)
            };
            let running = || self.running_settings(seconds);
            let computing: f64 = running().filter(|own| !own.waits).map(share).sum();
            let waiting: f64 = running().filter(|own| own.waits).map(share).sum();
            if computing > 0.0 || waiting <= 0.0 {
                Load::from_utilization(computing + waiting)
            } else {
                Load::from_waiting_kernels(waiting.min(100.0))
            }
        };
        let mut load = match &self.settings.utilization_percent {
            Some(curve) => Load {
                tenants: load.tenants,
                ..Load::from_utilization(curve.value_at(seconds))
            },
            None => load,
        };
        let of_processes = |percent: fn(&ProcessSettings, f64) -> f64| -> f64 {
            self.running_settings(seconds)
                .map(|own| percent(own, seconds) * own.process_count())
                .sum()
        };
        load.encoder_percent += of_processes(ProcessSettings::encoder_percent);
        load.decoder_percent += of_processes(ProcessSettings::decoder_percent);
        if let Some(curve) = &self.settings.encoder_percent {
            load.encoder_percent = curve.value_at(seconds);
        }
        if let Some(curve) = &self.settings.decoder_percent {
            load.decoder_percent = curve.value_at(seconds);
        }
        load
    }

    /// Returns the settings of the scenario's processes that are running at a given time.
    fn running_settings(&self, seconds: f64) -> impl Iterator<Item = &ProcessSettings> {
        let processes = self.processes.iter();
        processes.filter(move |process| process.is_running(seconds))
    }

    fn list_running_processes(&self, seconds: f64, load: &Load) -> Vec<ProcessState> {
        if self.processes.is_empty() {
            processes::list_profile_processes(
                load,
                self.noise,
                self.identity.index,
                self.usable_bytes(),
            )
        } else {
            processes::list_scenario_processes(&self.processes, seconds)
        }
    }

    /// Simulates the power governor: the clock is at its maximum unless the power limit requires a
    /// lower clock.
    fn compute_draw(&self, seconds: f64, load: &Load) -> PowerDraw {
        let held = load.gpu_percent > 0.5
            || load.tenants.iter().any(Option::is_some)
            || self.running_settings(seconds).next().is_some();
        let ripple = self
            .noise
            .derive_stream("power")
            .smooth_curve(seconds * 3.0);
        let limit_watts = self.identity.power_limit_watts;
        let base = limit_watts * if held { 0.175 } else { 0.112 } * (1.0 + 0.015 * ripple);
        let room = limit_watts - base;
        let max_mhz = match &self.settings.max_sm_mhz {
            Some(curve) => curve.value_at(seconds),
            None => f64::from(MAX_SM_MHZ),
        };
        let demand =
            load.demand * limit_watts * (max_mhz / f64::from(MAX_SM_MHZ)).powf(POWER_EXPONENT);
        let (watts, capped) = match &self.settings.power_watts {
            Some(curve) => (
                curve.value_at(seconds),
                curve.value_at(seconds) >= 0.98 * limit_watts,
            ),
            None if demand > room => (limit_watts * (0.988 + 0.008 * ripple), true),
            None => (base + demand, false),
        };
        let sm_mhz = match (capped, held) {
            (true, _) => {
                (max_mhz * (room / demand.max(room)).powf(1.0 / POWER_EXPONENT)) as u32 / 15 * 15
            }
            (false, true) => max_mhz as u32,
            (false, false) => IDLE_SM_MHZ,
        };
        PowerDraw {
            watts,
            sm_mhz,
            capped,
        }
    }

    fn compute_chip_celsius(&self, seconds: f64) -> f64 {
        match &self.settings.temperature_celsius {
            Some(curve) => curve.value_at(seconds),
            None => self.compute_celsius(seconds, &CHIP_COOLING),
        }
    }

    fn compute_celsius(&self, seconds: f64, path: &Cooling) -> f64 {
        let inlet = 29.5 + 3.0 * self.noise.derive_stream("inlet").random_unit(0);
        // The cooler of a board is designed for the board's power limit, so the power is scaled to
        // the limit of an H200.
        path.compute_celsius(seconds, inlet, &self.past, |at| {
            self.compute_watts(at) * H200_WATTS / self.identity.power_limit_watts
        })
    }

    fn list_reasons(&self, seconds: f64, load: &Load, draw: PowerDraw) -> Vec<ThrottleReason> {
        if let Some(steps) = &self.settings.throttle_reasons {
            steps.value_at(seconds).clone()
        } else if draw.capped {
            vec![ThrottleReason::SwPowerCap]
        } else if round_percent(load.gpu_percent) == 0 {
            vec![ThrottleReason::GpuIdle]
        } else {
            vec![]
        }
    }
}

/// The cooling of one part of the board. The part's temperature follows the power with a lag.
#[derive(Debug)]
struct Cooling {
    /// How many degrees warmer than the air the part becomes for each watt that the board draws.
    celsius_per_watt: f64,
    /// The time that the temperature takes to cover 63% of its distance to the final value, in
    /// seconds.
    lag_s: f64,
}

/// The cooling of an H200's chip. The measured temperatures were 36 °C at 125 W and 60 °C at 693 W.
const CHIP_COOLING: Cooling = Cooling {
    celsius_per_watt: 0.042,
    lag_s: 18.0,
};
/// The cooling of an H200's memory. The measured temperatures were 34 °C at 125 W and 47 °C at 693
/// W.
const MEMORY_COOLING: Cooling = Cooling {
    celsius_per_watt: 0.0235,
    lag_s: 30.0,
};

/// The length of the intervals in which the power is treated as constant, in seconds.
const POWER_STEP_S: f64 = 5.0;
/// The number of past intervals that affect the temperature. The effect of power from more than
/// four lags ago is negligible.
const PAST_POWER_STEPS: i64 = 24;

/// The mean power of past intervals. It is stored because consecutive readings need the same
/// intervals.
#[derive(Debug, Clone, Default)]
struct PowerHistory(Arc<Mutex<StoredMeans>>);

/// The stored intervals, each as its number and mean power. The number of an interval determines
/// its position in the array.
type StoredMeans = [Option<(i64, f64)>; STORED_POWER_STEPS];

/// The number of intervals that are stored. One reading needs fewer.
const STORED_POWER_STEPS: usize = 32;

impl Cooling {
    /// Returns the temperature at a given time, calculated from the air temperature and the past
    /// power.
    ///
    /// The part is modeled as a body with a single time constant, which is warmed by the power of
    /// each interval. Intervals start at fixed times, so that consecutive readings use the same
    /// intervals and the curve is smooth.
    fn compute_celsius(
        &self,
        seconds: f64,
        inlet_celsius: f64,
        past: &PowerHistory,
        watts: impl Fn(f64) -> f64,
    ) -> f64 {
        let mut known = lock(&past.0);
        let mut mean_watts = |step: i64| {
            let place = &mut known[step.cast_unsigned() as usize % STORED_POWER_STEPS];
            match *place {
                Some((known, watts)) if known == step => watts,
                _ => {
                    let begin = step as f64 * POWER_STEP_S;
                    let mean = f64::midpoint(watts(begin + 1.3), watts(begin + 3.8));
                    *place = Some((step, mean));
                    mean
                }
            }
        };
        let newest = (seconds / POWER_STEP_S).floor() as i64;
        let mut felt_watts = 0.0;
        let mut end = seconds;
        for step in (newest - PAST_POWER_STEPS + 1..=newest).rev() {
            let begin = step as f64 * POWER_STEP_S;
            let share =
                (-(seconds - end) / self.lag_s).exp() - (-(seconds - begin) / self.lag_s).exp();
            felt_watts += share * mean_watts(step);
            end = begin;
        }
        // All earlier intervals are assumed to have the same power as the interval just before
        // those considered above.
        felt_watts += (-(seconds - end) / self.lag_s).exp() * mean_watts(newest - PAST_POWER_STEPS);
        inlet_celsius + self.celsius_per_watt * felt_watts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_follows_power_with_lag() {
        let step = |at: f64| if at < 1_000.0 { 100.0 } else { 700.0 };
        let past = PowerHistory::default();
        let at = |seconds| CHIP_COOLING.compute_celsius(seconds, 30.0, &past, step);
        assert!((at(999.0) - 34.2).abs() < 0.1);
        let risen = (at(1_018.0) - 34.2) / (0.042 * 600.0);
        assert!(
            (0.58..0.68).contains(&risen),
            "{risen} of the way after one lag"
        );
        assert!((at(1_200.0) - 59.4).abs() < 0.2);
    }
}
