//! The running simulation of a machine: world, clock and counters.

use std::sync::{Arc, Mutex, PoisonError};

use super::{GpuState, Scenario, Timeline, Totals, World, meters::Meters};

/// A running world with its clock, used by `--source sim` and gpumon's fake NVML library.
///
/// Methods panic if a GPU's index is not below the world's `gpu_count`.
#[derive(Debug)]
pub struct Machine {
    /// The simulated GPUs and their scenario.
    pub world: World,
    /// The clock of the simulation.
    pub timeline: Timeline,
    /// The indices of the GPUs that were present at the start, by the driver's index. The driver
    /// finds no others later.
    pub found: Vec<u32>,
    meters: Meters,
    newest: Vec<Mutex<Newest>>,
}

/// The latest computed state of a GPU, and its moment.
type Newest = Option<(u64, Arc<GpuState>)>;

impl Machine {
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

    /// Returns a GPU's state at a moment, in milliseconds since the start of the timeline. Calls
    /// for the same millisecond share one computation.
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

    /// Returns a GPU's counters at a moment.
    pub fn totals(&self, gpu: u32, elapsed_ms: u64) -> Totals {
        let totals = self.meters.totals(&self.world, gpu, elapsed_ms);
        totals.times(self.world.scenario().left(gpu, elapsed_ms as f64 / 1000.0))
    }

    /// Converts a moment to a timestamp of the GPU's driver, in microseconds since 1970.
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
