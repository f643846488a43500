//! Driver answers in the vendor's own format, for the vendor's own tools.
//!
//! The sampler and the server store and forward them; only the code of the vendor reads them.

use serde::{Deserialize, Serialize};

use super::nvml::query::CachedAnswers;
use crate::model::Health;

/// The answers of a driver about one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VendorAnswers(pub(super) CachedAnswers);

impl VendorAnswers {
    /// Adds newer answers, which replace the older ones to the same queries.
    pub fn update(&mut self, newer: Self) {
        self.0.update(newer.0);
    }
}

impl From<CachedAnswers> for VendorAnswers {
    fn from(answers: CachedAnswers) -> Self {
        Self(answers)
    }
}

/// The answers that a collector received about one GPU, as a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// The index of the GPU.
    pub index: u32,
    /// Whether these are all answers, rather than those since the last record.
    pub all: bool,
    /// The answers.
    pub answers: VendorAnswers,
}

/// All answers about one GPU, with its health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuAnswers {
    /// The index of the GPU.
    pub index: u32,
    /// Whether the GPU responds.
    pub health: Health,
    /// The answers.
    pub answers: VendorAnswers,
}
