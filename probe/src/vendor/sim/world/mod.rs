//! The simulated GPUs of a machine. Their state is a pure function of the scenario, the GPU, and
//! the time.

use crate::model::{AccountedProcess, PciPath, TraceMetric};

use super::{
    GpuIdentity, GpuState, ProcessState, Scenario, Timeline, Wear, board::Board, garbage,
    identity::make_uuid, meters::CounterRates, noise::Noise,
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
            garbage::spoil_state(&mut state);
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
            garbage::spoil_processes(&mut processes);
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

    pub(super) fn compute_rates(&self, index: u32, elapsed_ms: u64) -> CounterRates {
        self.get_board(index).compute_rates(to_seconds(elapsed_ms))
    }

    pub(super) fn recorded_value(&self, index: u32, metric: TraceMetric, elapsed_ms: u64) -> f64 {
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

#[cfg(test)]
mod tests;
