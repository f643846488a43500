//! The driver's raw responses, in the format that the vendor's own tools use.
//!
//! Only the vendor's module interprets the responses. All other code passes them on unchanged.

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

/// A driver's raw responses about one GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VendorAnswers(pub(super) CachedAnswers);

impl From<CachedAnswers> for VendorAnswers {
    fn from(answers: CachedAnswers) -> Self {
        Self(answers)
    }
}

/// A function that returns the latest responses about one GPU. The function can run on any thread,
/// because it reads from memory and does not call the driver, which may hang.
pub type AnswersReader = Box<dyn Fn() -> VendorAnswers + Send>;

/// The latest responses about all sampled GPUs.
#[derive(Default)]
pub struct LatestAnswers {
    readers: Mutex<BTreeMap<u32, AnswersReader>>,
    renumbered: AtomicBool,
}

impl LatestAnswers {
    /// Registers the reader for a GPU that has been opened.
    pub(crate) fn set_reader(&self, index: u32, reader: AnswersReader) {
        self.lock_readers().insert(index, reader);
    }

    /// Records that gpumon's GPU indices no longer match those of the driver.
    pub(crate) fn mark_renumbered(&self) {
        self.renumbered.store(true, Ordering::Relaxed);
    }

    /// Returns the responses about every GPU that has been opened.
    pub fn collect_answers(&self) -> DriverAnswers {
        let readers = self.lock_readers();
        let renumbered = self.renumbered.load(Ordering::Relaxed);
        DriverAnswers {
            renumbered,
            gpus: readers
                .iter()
                .map(|(index, read)| (*index, read()))
                .collect(),
        }
    }

    fn lock_readers(&self) -> MutexGuard<'_, BTreeMap<u32, AnswersReader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LatestAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock_readers().keys()).finish()
    }
}

/// The driver responses that a collector has received, as a single record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// Whether gpumon's GPU indices differ from the driver's current indices.
    #[serde(default)]
    pub renumbered: bool,
    /// The index and the responses of each GPU.
    pub gpus: Vec<(u32, VendorAnswers)>,
}

/// The driver's responses about one GPU, and the GPU's health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuAnswers {
    pub index: u32,
    pub health: Health,
    pub answers: VendorAnswers,
}
