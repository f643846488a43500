//! One simulated GPU: from what is asked of it to what its sensors show.

use crate::model::ThrottleReason;

use super::{
    Counters, GpuState, ProcessState, Profile, Scenario,
    noise::Noise,
    profile::Load,
    scenario::{GpuSettings, ProcessSettings},
    tenancy::{self, percent},
    thermal::{self, Path},
};

/// The highest clock of the streaming multiprocessors of an H200.
pub const MAX_SM_MHZ: u32 = 1_980;
/// The clock of an H200's memory; it does not move.
pub const MEMORY_MHZ: u32 = 3_201;
/// The highest clock of an H200's video engines.
pub const MAX_VIDEO_MHZ: u32 = 1_545;
/// The clock of an H200 that nobody holds.
const RESTING_MHZ: u32 = 345;
/// All memory of an H200, as its driver reports it.
const H200_BYTES: u64 = 143_771 << 20;
/// Its power limit.
const H200_WATTS: f64 = 700.0;
/// The driver keeps about one part in so many of the memory: 616 MiB of an H200.
const RESERVED_PART: u64 = 233;

/// A GPU, ready to be asked for any moment.
#[derive(Debug, Clone)]
pub(super) struct Board {
    noise: Noise,
    index: u32,
    profile: Profile,
    settings: Option<GpuSettings>,
    processes: Vec<ProcessSettings>,
    total_bytes: u64,
    limit_watts: f64,
}

/// What flows into a board at one moment, and what its governor makes of it.
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
            noise: Noise::new(scenario.seed, index),
            index,
            profile: settings.as_ref().and_then(|own| own.profile).unwrap_or_else(|| Profile::of_index(index)),
            processes: scenario.processes(index).cloned().collect(),
            total_bytes: settings.as_ref().and_then(|own| own.memory).map_or(H200_BYTES, |memory| memory.0),
            // A limit of 0 would leave no power to share out.
            limit_watts: settings
                .as_ref()
                .and_then(|own| own.power_limit_watts)
                .map_or(H200_WATTS, |watts| watts.0.max(1.0)),
            settings,
        }
    }

    pub(super) fn noise(&self) -> Noise {
        self.noise
    }

    pub(super) fn name(&self) -> &str {
        self.settings.as_ref().and_then(|own| own.name.as_deref()).unwrap_or("NVIDIA H200")
    }

    pub(super) fn state(&self, seconds: f64) -> GpuState {
        let load = self.load(seconds);
        let draw = self.draw(seconds, &load);
        let reserved = self.total_bytes / RESERVED_PART;
        let usable = self.total_bytes - reserved;
        let mut processes = self.processes_at(seconds, &load, usable);
        let held: u64 = processes.iter().filter_map(|process| process.memory_bytes).sum();
        let used = match self.settings.as_ref().and_then(|own| own.memory_used.as_ref()) {
            Some(curve) => (curve.at(seconds) as u64).min(usable),
            None => held.min(usable),
        };
        if self.processes.is_empty() {
            tenancy::fit(&mut processes, used);
        }
        GpuState {
            gpu_percent: percent(load.gpu_percent),
            memory_percent: percent(load.memory_percent),
            encoder_percent: percent(load.encoder_percent),
            decoder_percent: percent(load.decoder_percent),
            memory_total_bytes: self.total_bytes,
            memory_used_bytes: used,
            memory_reserved_bytes: reserved,
            memory_free_bytes: usable - used,
            power_watts: self.average_watts(seconds),
            power_instant_watts: draw.watts,
            power_limit_watts: self.limit_watts,
            temperature_celsius: self.temperature(seconds),
            memory_temperature_celsius: self.warmth(seconds, &thermal::MEMORY),
            sm_mhz: draw.sm_mhz,
            memory_mhz: MEMORY_MHZ,
            video_mhz: draw.sm_mhz * MAX_VIDEO_MHZ / MAX_SM_MHZ / 15 * 15,
            performance_state: 0,
            throttle_reasons: reasons(&load, draw),
            pcie_generation: 5,
            pcie_width: 16,
            counters: Counters::of(load.gpu_percent.clamp(0.0, 100.0), load.memory_percent.clamp(0.0, 100.0)),
            processes,
        }
    }

    /// The draw as the driver reports it: the average of the last second.
    pub(super) fn average_watts(&self, seconds: f64) -> f64 {
        let moments = [0.0, 0.25, 0.5, 0.75];
        moments.iter().map(|ago| self.watts(seconds - ago)).sum::<f64>() / moments.len() as f64
    }

    fn watts(&self, seconds: f64) -> f64 {
        self.draw(seconds, &self.load(seconds)).watts
    }

    /// What is asked of the GPU: by its profile or its processes, and by what the scenario says over them.
    fn load(&self, seconds: f64) -> Load {
        let load = if self.processes.is_empty() {
            self.profile.load(self.noise, seconds)
        } else {
            let running = self.processes.iter().filter(|process| process.runs(seconds));
            Load::even(running.map(|process| process.sm_percent(seconds)).sum())
        };
        match self.settings.as_ref().and_then(|own| own.utilization_percent.as_ref()) {
            Some(curve) => Load { tenants: load.tenants, ..Load::even(curve.at(seconds)) },
            None => load,
        }
    }

    fn processes_at(&self, seconds: f64, load: &Load, usable_bytes: u64) -> Vec<ProcessState> {
        let mut processes = if self.processes.is_empty() {
            tenancy::of_profile(load, self.noise, self.index, usable_bytes)
        } else {
            tenancy::of_scenario(&self.processes, seconds)
        };
        processes.sort_by_key(|process| process.pid);
        processes
    }

    /// The governor: full clocks while the power limit allows, lower ones where it does not.
    fn draw(&self, seconds: f64, load: &Load) -> Draw {
        let held = load.gpu_percent > 0.5
            || load.tenants.iter().any(Option::is_some)
            || self.processes.iter().any(|process| process.runs(seconds));
        let ripple = self.noise.stream("power").smooth(seconds * 3.0);
        let base = self.limit_watts * if held { 0.175 } else { 0.112 } * (1.0 + 0.015 * ripple);
        let room = self.limit_watts - base;
        let demand = load.demand * self.limit_watts;
        let (watts, capped) = match self.settings.as_ref().and_then(|own| own.power_watts.as_ref()) {
            Some(curve) => (curve.at(seconds), curve.at(seconds) >= 0.98 * self.limit_watts),
            None if demand > room => (self.limit_watts * (0.988 + 0.008 * ripple), true),
            None => (base + demand, false),
        };
        let sm_mhz = match (capped, held) {
            // Dynamic power grows with about the 2.5th power of the clock, since the voltage grows with it.
            (true, _) => (f64::from(MAX_SM_MHZ) * (room / demand.max(room)).powf(0.4)) as u32 / 15 * 15,
            (false, true) => MAX_SM_MHZ,
            (false, false) => RESTING_MHZ,
        };
        Draw { watts, sm_mhz, capped }
    }

    fn temperature(&self, seconds: f64) -> f64 {
        match self.settings.as_ref().and_then(|own| own.temperature_celsius.as_ref()) {
            Some(curve) => curve.at(seconds),
            None => self.warmth(seconds, &thermal::CHIP),
        }
    }

    fn warmth(&self, seconds: f64, path: &Path) -> f64 {
        let inlet = 29.5 + 3.0 * self.noise.stream("inlet").unit(0);
        // A board of another power has a cooler for that power.
        path.celsius(seconds, inlet, |at| self.watts(at) * H200_WATTS / self.limit_watts)
    }
}

fn reasons(load: &Load, draw: Draw) -> Vec<ThrottleReason> {
    if draw.capped {
        vec![ThrottleReason::SwPowerCap]
    } else if percent(load.gpu_percent) == 0 {
        vec![ThrottleReason::GpuIdle]
    } else {
        vec![]
    }
}
