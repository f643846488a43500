//! A running simulation of a machine: its GPUs, clock, and counters.

use std::sync::{Arc, Mutex, PoisonError};

use super::{GpuState, Scenario, Timeline, Totals, World, meters::Meters};

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
        let skew_s = self.world.scenario().skew_s(gpu, self.timeline.elapsed_s());
        let host_us = (self.timeline.unix_ms(0.0) + elapsed_ms) * 1000;
        host_us.saturating_add_signed((skew_s * 1e6) as i64)
    }
}

#[cfg(test)]
mod tests {
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
