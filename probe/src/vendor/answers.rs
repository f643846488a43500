//! The driver's answers in the format of the vendor's own tools.
//!
//! Only the vendor's module interprets the answers. All other code passes them on.

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

/// A function that returns the latest answers about one GPU. The function can run on any thread,
/// because it reads from memory and does not call the driver, which may hang.
pub type AnswersReader = Box<dyn Fn() -> VendorAnswers + Send>;

/// The latest answers about all sampled GPUs.
#[derive(Default)]
pub struct LatestAnswers {
    readers: Mutex<BTreeMap<u32, AnswersReader>>,
    renumbered: AtomicBool,
}

impl LatestAnswers {
    /// Registers the reader of a GPU that has been opened.
    pub(crate) fn set_reader(&self, index: u32, reader: AnswersReader) {
        self.readers().insert(index, reader);
    }

    /// Records that gpumon's GPU indices no longer match those of the driver.
    pub(crate) fn set_renumbered(&self) {
        self.renumbered.store(true, Ordering::Relaxed);
    }

    /// Returns the answers about every GPU that has been opened.
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

/// The answers that a collector received, as one record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverAnswers {
    /// Whether gpumon's GPU indices differ from those that the driver uses now.
    #[serde(default)]
    pub renumbered: bool,
    /// The index and the answers of each GPU.
    pub gpus: Vec<(u32, VendorAnswers)>,
}

/// The answers about one GPU, with its health.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuAnswers {
    pub index: u32,
    pub health: Health,
    pub answers: VendorAnswers,
}
