//! Events that the driver reports on its own.
//!
//! All GPUs share one event set and one thread. `nvmlEventSetWait_v2` holds a lock of the library
//! while it waits, which blocks every other function of event sets, even for other sets (driver
//! 580).

use std::{thread, time::Duration};

use super::backend::raw;
use crate::vendor::{Notice, Reporter, nvml::query::Code};

/// The maximum time of one wait, after which newly opened GPUs are added. A wait costs 70 µs.
const WAIT: Duration = Duration::from_secs(1);

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

    /// Creates a new set, because a lost GPU makes every wait fail for the other GPUs too.
    fn renew(&mut self) {
        let Ok(mut set) = raw::EventSet::create(self.library) else {
            return;
        };
        for gpu in self.set.members() {
            // A GPU that cannot be registered now is added again when it is opened again.
            let _ = set.add(gpu);
        }
        self.set = set;
    }
}

impl Reporter for EventReporter {
    fn add(&mut self, gpu: u32) {
        // If registering fails, the GPU has no events. Its samples are still read.
        let _ = self.set.add(gpu);
    }

    fn wait(&mut self) -> Option<(u32, Notice)> {
        if let Ok(event) = self.set.wait(WAIT.as_millis() as u32) {
            event
        } else {
            thread::sleep(WAIT);
            self.renew();
            None
        }
    }
}
