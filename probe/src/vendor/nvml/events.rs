//! Waiting for what the driver reports by itself.
//!
//! One set, and one thread, for all GPUs: `nvmlEventSetWait_v2` holds a lock of the library for as
//! long as it waits, and every other function of event sets, waiting with another set included,
//! stands still meanwhile (driver 580).

use std::{thread, time::Duration};

use super::backend::raw;
use crate::vendor::{Notice, Reporter, nvml::query::Code};

/// A GPU that was opened meanwhile is added after this time at the latest. A wait costs 70 us.
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

    /// A GPU that was lost makes every wait fail, so the others go on in a new set.
    fn renew(&mut self) {
        let Ok(mut set) = raw::EventSet::create(self.library) else {
            return;
        };
        for gpu in self.set.members() {
            // One that cannot be registered is added again when it is opened again.
            let _ = set.add(gpu);
        }
        self.set = set;
    }
}

impl Reporter for EventReporter {
    fn add(&mut self, gpu: u32) {
        // A GPU without events has none; its samples are read all the same.
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
