//! The simulated machine: a pure function of scenario, GPU and time.

use super::{GpuIdentity, GpuState, Scenario, board::Board, noise::Noise};

/// All simulated GPUs. It has no state: asked twice for the same moment, it gives the same answer twice.
///
/// Methods that take a GPU's index panic where it is not below [`gpu_count`](Self::gpu_count).
#[derive(Debug, Clone)]
pub struct World {
    scenario: Scenario,
    boards: Vec<Board>,
}

impl World {
    /// Builds the GPUs of a scenario.
    pub fn new(scenario: Scenario) -> Self {
        let boards = (0..scenario.gpu_count()).map(|index| Board::new(&scenario, index)).collect();
        Self { scenario, boards }
    }

    /// What it was built from.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// How many GPUs there are.
    pub fn gpu_count(&self) -> u32 {
        self.boards.len() as u32
    }

    /// Who a GPU is.
    pub fn identity(&self, index: u32) -> GpuIdentity {
        let board = &self.boards[index as usize];
        // Domain 0 has room for 64 boards from bus 10 on.
        let pci_bus = 0x10 + index;
        GpuIdentity {
            index,
            uuid: uuid(board.noise()),
            name: board.name().to_owned(),
            pci_bus,
            pci_bus_id: format!("00000000:{pci_bus:02X}:00.0"),
            serial: format!("165{:010}", board.noise().stream("serial").bits(0) % 10_000_000_000),
        }
    }

    /// What a GPU does, so many milliseconds after the start of the timeline.
    pub fn state(&self, index: u32, elapsed_ms: u64) -> GpuState {
        self.boards[index as usize].state(elapsed_ms as f64 / 1000.0)
    }

    /// A GPU's draw in watts, averaged over the second before; a fraction of the work of [`state`](Self::state).
    pub fn power_watts(&self, index: u32, elapsed_ms: u64) -> f64 {
        self.boards[index as usize].average_watts(elapsed_ms as f64 / 1000.0)
    }
}

/// As the driver writes them.
fn uuid(noise: Noise) -> String {
    let (high, low) = (noise.stream("uuid").bits(0), noise.stream("uuid").bits(1));
    let digits = format!("{high:016x}{low:016x}");
    format!("GPU-{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
}

#[cfg(test)]
mod tests;
