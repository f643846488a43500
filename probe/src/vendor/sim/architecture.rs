//! GPU chip generations and their capabilities.

use serde::Deserialize;

/// An NVIDIA chip generation, for example Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// The generation of the Tesla P100.
    Pascal,
    /// The generation of the Tesla V100.
    Volta,
    /// The generation of the T4.
    Turing,
    /// The generation of the A100.
    Ampere,
    /// The generation of the L4.
    Ada,
    /// The generation of the H200.
    Hopper,
    /// The generation of the B200.
    Blackwell,
}

impl Architecture {
    /// Returns NVIDIA's name for the generation.
    pub fn name(self) -> &'static str {
        self.name_and_compute_capability().0
    }

    /// Returns the major and minor CUDA compute capability of the generation's data-center board.
    pub fn compute_capability(self) -> (u8, u8) {
        self.name_and_compute_capability().1
    }

    fn name_and_compute_capability(self) -> (&'static str, (u8, u8)) {
        match self {
            Self::Pascal => ("Pascal", (6, 0)),
            Self::Volta => ("Volta", (7, 0)),
            Self::Turing => ("Turing", (7, 5)),
            Self::Ampere => ("Ampere", (8, 0)),
            Self::Ada => ("Ada Lovelace", (8, 9)),
            Self::Hopper => ("Hopper", (9, 0)),
            Self::Blackwell => ("Blackwell", (10, 0)),
        }
    }

    /// Returns `true` if the hardware has activity counters (GPM).
    pub fn counts_activity(self) -> bool {
        self >= Self::Hopper
    }

    /// Returns `true` if the memory can replace defective rows. Older generations retire whole
    /// pages instead.
    pub fn remaps_rows(self) -> bool {
        self >= Self::Ampere
    }

    /// Returns `true` if the GPU can be divided into MIG devices.
    pub fn has_mig(self) -> bool {
        self >= Self::Ampere && self != Self::Ada
    }
}
