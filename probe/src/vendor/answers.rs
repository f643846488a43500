//! Driver answers in the vendor's own format, for the vendor's own tools.
//!
//! They are passed on when somebody asks for them; only the code of the vendor reads them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use super::nvml::query::CachedAnswers;
use crate::model::Health;

/// The answers of a driver about one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VendorAnswers(pub(super) CachedAnswers);

impl From<CachedAnswers> for VendorAnswers {
    fn from(answers: CachedAnswers) -> Self {
        Self(answers)
    }
}

/// Returns the newest answers about one GPU, on any thread, from memory: the driver may hang.
pub type AnswersReader = Box<dyn Fn() -> VendorAnswers + Send>;

/// The newest answers about all GPUs, while they are sampled.
#[derive(Default)]
pub struct LatestAnswers {
    readers: Mutex<BTreeMap<u32, AnswersReader>>,
    renumbered: AtomicBool,
}

impl LatestAnswers {
    /// Takes the answers about the GPU of this index from this reader: the GPU has been opened.
    pub(crate) fn set_reader(&self, index: u32, reader: AnswersReader) {
        self.readers().insert(index, reader);
    }

    /// Tells that the indices of the GPUs are no longer those of the driver.
    pub(crate) fn set_renumbered(&self) {
        self.renumbered.store(true, Ordering::Relaxed);
    }

    /// The answers about every GPU that has been opened.
    pub fn get(&self) -> DriverAnswers {
        let readers = self.readers();
        let renumbered = self.renumbered.load(Ordering::Relaxed);
        DriverAnswers {
            renumbered,
            gpus: readers
                .iter()
                .map(|(index, read)| (*index, read()))
                .collect(),
        }
    }

    fn readers(&self) -> MutexGuard<'_, BTreeMap<u32, AnswersReader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LatestAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.readers().keys()).finish()
    }
}

/// The answers that a collector received, as a record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// Whether the indices of the GPUs differ from those that the driver gives them now.
    #[serde(default)]
    pub renumbered: bool,
    /// Each GPU's index and answers.
    pub gpus: Vec<(u32, VendorAnswers)>,
}

/// The answers about one GPU, with its health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuAnswers {
    /// The index of the GPU.
    pub index: u32,
    /// Whether the GPU responds.
    pub health: Health,
    /// The answers.
    pub answers: VendorAnswers,
}
