//! The simulated machine as it runs: world, clock, and the counters that go on.

use std::sync::{Arc, Mutex, PoisonError};

use super::{GpuState, Scenario, Timeline, Totals, World, meters::Meters};

/// A world with its clock, behind `--source sim` and behind gpumon's fake NVML library.
///
/// Methods that take a GPU's index panic where it is not below the world's `gpu_count`.
#[derive(Debug)]
pub struct Machine {
    /// What there is.
    pub world: World,
    /// What time it is there.
    pub timeline: Timeline,
    /// The GPUs that were present at the start, by the driver's index. The driver finds no others
    /// later.
    pub found: Vec<u32>,
    meters: Meters,
    newest: Vec<Mutex<Newest>>,
}

/// What was worked out last of a GPU, and for which moment.
type Newest = Option<(u64, Arc<GpuState>)>;

impl Machine {
    /// Starts a scenario.
    pub fn start(scenario: Scenario) -> Self {
        let timeline = Timeline::begin(&scenario);
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

    /// What a GPU does at a moment, in milliseconds after the start of the timeline. Whoever asks
    /// for the same millisecond shares one answer.
    pub fn state(&self, gpu: u32, elapsed_ms: u64) -> Arc<GpuState> {
        let mut newest = self.newest[gpu as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((at_ms, state)) if *at_ms == elapsed_ms => Arc::clone(state),
            _ => {
                let state = Arc::new(self.world.state(gpu, elapsed_ms));
                *newest = Some((elapsed_ms, Arc::clone(&state)));
                state
            }
        }
    }

    /// What has flowed through a GPU until a moment.
    pub fn totals(&self, gpu: u32, elapsed_ms: u64) -> Totals {
        let totals = self.meters.totals(&self.world, gpu, elapsed_ms);
        totals.times(self.world.scenario().left(gpu, elapsed_ms as f64 / 1000.0))
    }

    /// A moment as the driver of a GPU stamps it, in microseconds since the Unix epoch.
    pub fn stamp_us(&self, gpu: u32, elapsed_ms: u64) -> u64 {
        let skew_s = self.world.scenario().skew_s(gpu, self.timeline.elapsed_s());
        let host_us = (self.timeline.unix_ms(0.0) + elapsed_ms) * 1000;
        host_us.saturating_add_signed((skew_s * 1e6) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_is_worked_out_once() {
        let machine = Machine::start(Scenario::simple(2, 1));
        let first = machine.state(0, 5_000);
        assert!(Arc::ptr_eq(&first, &machine.state(0, 5_000)));
        assert!(!Arc::ptr_eq(&first, &machine.state(0, 5_001)));
        assert_eq!(*machine.state(1, 7_000), machine.world.state(1, 7_000));
        assert_ne!(*machine.state(1, 7_000), *machine.state(0, 7_000));
    }
}
