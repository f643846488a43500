//! The simulated machine, which is a pure function of scenario, GPU and time.

use crate::model::{AccountedProcess, PciPath, TraceMetric};

use super::{
    GpuIdentity, GpuState, ProcessState, Scenario, Timeline, Wear, board::Board, garbage,
    identity::uuid, meters::Flow, noise::Noise,
};

/// The number of GPUs per socket.
const PER_SOCKET: u32 = 4;

/// All simulated GPUs. The results depend only on the arguments.
///
/// Methods panic if a GPU's index is not below [`gpu_count`](Self::gpu_count). Moments are in
/// milliseconds since the start of the timeline.
#[derive(Debug, Clone)]
pub struct World {
    scenario: Scenario,
    boards: Vec<Board>,
}

impl World {
    /// Creates the GPUs of a scenario.
    pub fn new(scenario: Scenario) -> Self {
        let boards = (0..scenario.gpu_count())
            .map(|index| Board::new(&scenario, index))
            .collect();
        Self { scenario, boards }
    }

    /// Returns the scenario from which the world was created.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the number of GPUs.
    pub fn gpu_count(&self) -> u32 {
        self.boards.len() as u32
    }

    /// Returns the constant data of a GPU.
    pub fn identity(&self, index: u32) -> &GpuIdentity {
        self.board(index).identity()
    }

    /// Returns the state of a GPU at a moment.
    pub fn state(&self, index: u32, elapsed_ms: u64) -> GpuState {
        let mut state = self.board(index).state(seconds(elapsed_ms));
        if self.scenario.is_garbage(index, seconds(elapsed_ms)) {
            garbage::spoil(&mut state);
        }
        state
    }

    /// Returns the errors and repairs of a GPU up to a moment.
    pub fn wear(&self, index: u32, elapsed_ms: u64) -> Wear {
        let seconds = seconds(elapsed_ms);
        self.board(index)
            .wear(seconds, self.scenario.left(index, seconds))
    }

    /// Returns the processes on a GPU, in the order of the scenario.
    pub fn processes(&self, index: u32, elapsed_ms: u64) -> Vec<ProcessState> {
        let mut processes = self.board(index).processes(seconds(elapsed_ms));
        if self.scenario.is_garbage(index, seconds(elapsed_ms)) {
            garbage::spoil_processes(&mut processes);
        }
        processes
    }

    /// Returns `true` if a GPU is divided into MIG devices.
    pub fn is_divided(&self, index: u32, elapsed_ms: u64) -> bool {
        self.board(index).is_divided(seconds(elapsed_ms))
    }

    /// Returns the processes that the driver accounts for, both running and ended, the oldest
    /// first. Returns none if accounting is off.
    pub fn accounted(
        &self,
        index: u32,
        elapsed_ms: u64,
        timeline: &Timeline,
    ) -> Vec<AccountedProcess> {
        if self.identity(index).accounting {
            self.board(index).accounted(seconds(elapsed_ms), timeline)
        } else {
            Vec::new()
        }
    }

    /// Returns the PCIe path between two GPUs.
    pub fn path(&self, a: u32, b: u32) -> PciPath {
        if a == b {
            PciPath::Internal
        } else if a / PER_SOCKET == b / PER_SOCKET {
            PciPath::Node
        } else {
            PciPath::System
        }
    }

    /// Returns `true` if both GPUs are linked by switches.
    pub fn are_linked(&self, a: u32, b: u32) -> bool {
        [a, b].iter().all(|index| {
            let links = &self.identity(*index).nvlinks;
            links.iter().any(|link| link.active)
        })
    }

    /// Returns the UUID of the `NVSwitch` fabric, or `None` if the GPU has no links.
    pub fn fabric_uuid(&self, index: u32) -> Option<String> {
        let noise = || Noise::new(self.scenario.seed, u32::MAX).stream("fabric");
        (!self.identity(index).nvlinks.is_empty()).then(|| uuid(noise()))
    }

    pub(super) fn flow(&self, index: u32, elapsed_ms: u64) -> Flow {
        self.board(index).flow(seconds(elapsed_ms))
    }

    pub(super) fn recorded(&self, index: u32, metric: TraceMetric, elapsed_ms: u64) -> f64 {
        self.board(index).recorded(metric, seconds(elapsed_ms))
    }

    fn board(&self, index: u32) -> &Board {
        &self.boards[index as usize]
    }
}

fn seconds(elapsed_ms: u64) -> f64 {
    elapsed_ms as f64 / 1000.0
}

#[cfg(test)]
mod tests;
