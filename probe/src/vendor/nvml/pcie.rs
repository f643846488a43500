//! PCIe rates of GPUs without GPM.
//!
//! `nvmlDeviceGetPcieThroughput` watches the link for 20 ms per direction and blocks for as long,
//! so that it has a thread of its own. The counters behind `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` would
//! not block, but have 32 bits and wrap every 77 ms at full speed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, SyncSender},
    },
    thread,
};

use super::{backend::Backend, error::absence, link_rates::LinkRates};
use crate::{
    model::{Absence, Absent, Reading, now_ms},
    vendor::nvml::query::{Query, Subject},
};

/// `nvmlPcieUtilCounter_t`.
const TX: u32 = 0;
const RX: u32 = 1;

/// NVML's unit: KB.
pub(super) const UNIT_BYTES: f64 = 1000.0;

/// Asks on a thread of its own, and has the last answer at hand.
pub(super) struct PcieWatch {
    ask: SyncSender<()>,
    latest: Arc<Mutex<LinkRates>>,
}

impl PcieWatch {
    /// Starts the thread; it ends with this.
    pub(super) fn start(answers: Arc<dyn Backend>, index: u32) -> Option<Self> {
        let (ask, asked) = mpsc::sync_channel::<()>(1);
        let latest = Arc::new(Mutex::new(LinkRates::absent(&Absence::WarmingUp)));
        let shared = Arc::clone(&latest);
        let body = move || {
            while asked.recv().is_ok() {
                let rates = read(&*answers, index);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = rates;
            }
        };
        thread::Builder::new()
            .name(format!("gpu-{index}-pcie"))
            .spawn(body)
            .ok()?;
        Some(Self { ask, latest })
    }

    /// What was read last, with its time. The next reading begins, unless one is still under way.
    pub(super) fn latest(&self) -> LinkRates {
        let latest = self
            .latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let _ = self.ask.try_send(());
        latest
    }
}

/// Asks the driver, which takes 20 ms for each direction.
pub(super) fn read(answers: &dyn Backend, index: u32) -> LinkRates {
    let rate = |counter| match answers.ask(Subject::gpu(index), Query::PcieThroughput(counter)) {
        Ok(kilobytes) => {
            let value = kilobytes.at(0).unwrap_or(0) as f64 * UNIT_BYTES;
            Reading::Earlier {
                value,
                at_ms: now_ms(),
            }
        }
        Err(code) => Reading::Absent(absence(code)),
    };
    LinkRates {
        tx: rate(TX),
        rx: rate(RX),
    }
}
