//! Generations of chips, and what each of them can do.

use serde::Deserialize;

/// A generation of NVIDIA's chips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// As the Tesla P100.
    Pascal,
    /// As the Tesla V100.
    Volta,
    /// As the T4.
    Turing,
    /// As the A100.
    Ampere,
    /// As the L4.
    Ada,
    /// As the H200.
    Hopper,
    /// As the B200.
    Blackwell,
}

impl Architecture {
    /// NVIDIA's word.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// CUDA's compute capability of its data-center board: major and minor number.
    pub fn compute_capability(self) -> (u8, u8) {
        self.facts().1
    }

    fn facts(self) -> (&'static str, (u8, u8)) {
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

    /// Whether the hardware counts activity (GPM).
    pub fn counts_activity(self) -> bool {
        self >= Self::Hopper
    }

    /// Whether it replaces rows of bad memory; older ones retire pages.
    pub fn remaps_rows(self) -> bool {
        self >= Self::Ampere
    }

    /// Whether it can be divided into MIG devices.
    pub fn has_mig(self) -> bool {
        self >= Self::Ampere && self != Self::Ada
    }
}
