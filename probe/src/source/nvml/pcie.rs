//! PCIe rates of GPUs without GPM.
//!
//! `nvmlDeviceGetPcieThroughput` watches the link for 20 ms per direction and blocks for as long, so that it has a
//! thread of its own. The counters behind `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` would not block, but have 32 bits and wrap
//! every 77 ms at full speed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, SyncSender},
    },
    thread,
};

use nvml_wrapper::{Device, Nvml, enum_wrappers::device::PcieUtilCounter};

use super::error::absence;
use crate::model::{Absence, Reading, now_ms};

/// NVML's unit: KB.
const UNIT_BYTES: f64 = 1000.0;

/// Both directions, in bytes per second.
#[derive(Debug, Clone)]
pub(super) struct PcieRates {
    pub(super) tx: Reading<f64>,
    pub(super) rx: Reading<f64>,
}

/// Asks on a thread of its own, and has the last answer at hand.
pub(super) struct PcieWatch {
    ask: SyncSender<()>,
    latest: Arc<Mutex<PcieRates>>,
}

impl PcieWatch {
    /// Starts the thread; it ends with this.
    pub(super) fn start(nvml: &'static Nvml, index: u32) -> Option<Self> {
        let device = nvml.device_by_index(index).ok()?;
        let (ask, asked) = mpsc::sync_channel::<()>(1);
        let latest = Arc::new(Mutex::new(PcieRates::absent(&Absence::WarmingUp)));
        let shared = Arc::clone(&latest);
        let body = move || {
            while asked.recv().is_ok() {
                let rates = read(&device);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = rates;
            }
        };
        thread::Builder::new().name(format!("gpu-{index}-pcie")).spawn(body).ok()?;
        Some(Self { ask, latest })
    }

    /// What was read last, with its time. The next reading begins, unless one is still under way.
    pub(super) fn latest(&self) -> PcieRates {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = self.ask.try_send(());
        latest
    }
}

fn read(device: &Device<'_>) -> PcieRates {
    let rate = |direction| match device.pcie_throughput(direction) {
        Ok(kilobytes) => Reading::Earlier { value: f64::from(kilobytes) * UNIT_BYTES, at_ms: now_ms() },
        Err(error) => Reading::Absent(absence(&error)),
    };
    PcieRates { tx: rate(PcieUtilCounter::Send), rx: rate(PcieUtilCounter::Receive) }
}

impl PcieRates {
    pub(super) fn absent(reason: &Absence) -> Self {
        Self { tx: Reading::Absent(reason.clone()), rx: Reading::Absent(reason.clone()) }
    }
}
