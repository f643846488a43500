//! PCIe rates of GPUs without GPM.
//!
//! `nvmlDeviceGetPcieThroughput` blocks while it measures, which takes 20 ms per direction, so it
//! is called on a separate thread. The counters behind `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` would not
//! block, but they have only 32 bits and wrap every 77 ms at full speed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, SyncSender},
    },
    thread,
};

use super::{backend::Backend, error::to_absence, link_rates::LinkRates};
use crate::{
    model::{Absence, Absent, Reading, now_ms},
    vendor::nvml::query::{Query, Subject},
};

/// The `nvmlPcieUtilCounter_t` for sent data. The constant below is for received data.
const TX: u32 = 0;
const RX: u32 = 1;

/// The unit of NVML's PCIe rates, 1 KB.
pub(super) const UNIT_BYTES: f64 = 1000.0;

/// A thread that measures PCIe rates, and its latest result.
pub(super) struct PcieMeter {
    ask: SyncSender<()>,
    latest: Arc<Mutex<LinkRates>>,
}

impl PcieMeter {
    /// Starts the measuring thread, which ends when the returned value is dropped. Returns `None`
    /// if the thread cannot be started.
    pub(super) fn start(answers: Arc<dyn Backend>, index: u32) -> Option<Self> {
        let (ask, asked) = mpsc::sync_channel::<()>(1);
        let latest = Arc::new(Mutex::new(LinkRates::new_absent(&Absence::WarmingUp)));
        let shared = Arc::clone(&latest);
        let body = move || {
            while asked.recv().is_ok() {
                let rates = read_rates(&*answers, index);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = rates;
            }
        };
        thread::Builder::new()
            .name(format!("gpu-{index}-pcie"))
            .spawn(body)
            .ok()?;
        Some(Self { ask, latest })
    }

    /// Returns the latest rates with their time. Starts the next measurement unless one is still in
    /// progress.
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

/// Measures both rates, which takes 20 ms per direction.
pub(super) fn read_rates(answers: &dyn Backend, index: u32) -> LinkRates {
    let rate = |counter| match answers
        .run_query(Subject::from_gpu(index), Query::PcieThroughput(counter))
    {
        Ok(kilobytes) => {
            let value = kilobytes.number_at(0).unwrap_or(0) as f64 * UNIT_BYTES;
            Reading::Earlier {
                value,
                at_ms: now_ms(),
            }
        }
        Err(code) => Reading::Absent(to_absence(code)),
    };
    LinkRates {
        tx: rate(TX),
        rx: rate(RX),
    }
}
