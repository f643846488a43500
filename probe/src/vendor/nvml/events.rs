//! Events that the driver reports without a request.
//!
//! All GPUs share one event set and one thread. While `nvmlEventSetWait_v2` waits, it holds a lock
//! in the library that blocks all other event functions, even for other sets (driver 580).

use std::{thread, time::Duration};

use super::backend::raw;
use crate::vendor::{Notice, Reporter, nvml::query::Code};

/// The maximum time of a single wait. Between waits, newly opened GPUs are added. Each wait costs
/// 70 µs.
const MAX_WAIT: Duration = Duration::from_secs(1);

pub(super) struct EventReporter {
    library: &'static raw::Library,
    set: raw::EventSet,
}

impl EventReporter {
    pub(super) fn new(library: &'static raw::Library) -> Result<Self, Code> {
        Ok(Self {
            library,
            set: raw::EventSet::create(library)?,
        })
    }

    /// Replaces the event set with a new one, because a lost GPU makes every wait fail, even for
    /// other GPUs.
    fn recreate_set(&mut self) {
        let Ok(mut set) = raw::EventSet::create(self.library) else {
            return;
        };
        for gpu in self.set.gpu_indices() {
            // A GPU that cannot be registered is added again the next time it is opened.
            let _ = set.add(gpu);
        }
        self.set = set;
    }
}

impl Reporter for EventReporter {
    fn add(&mut self, gpu: u32) {
        // If the GPU cannot be registered, it has no events, but its samples are still read.
        let _ = self.set.add(gpu);
    }

    fn wait_for_event(&mut self) -> Option<(u32, Notice)> {
        if let Ok(event) = self.set.wait_for_event(MAX_WAIT.as_millis() as u32) {
            event
        } else {
            thread::sleep(MAX_WAIT);
            self.recreate_set();
            None
        }
    }
}
