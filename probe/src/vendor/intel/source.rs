//! The implementation of `--source intel`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    device::{IntelDevice, identify_card},
    diagnostics::find_cards,
    errors::IntelErrors,
};
use crate::{
    model::{Absence, Driver, Gpu, GpuLink, Platform, Reading, Vendor},
    vendor::{
        Device, DeviceError, ErrorLog, Reporter, Roots, Source, SourceError,
        drm::{Card, Clients, PowerState},
        kernel_log::KernelLog,
    },
};

/// The GPUs of the kernel drivers `i915` and `xe`, sorted by PCI address.
pub struct IntelSource {
    cards: Vec<Card>,
    clients: Arc<Clients>,
    proc_root: PathBuf,
}

impl IntelSource {
    /// Finds the cards that use one of the two drivers.
    ///
    /// # Errors
    /// Returns an error if neither driver is loaded, or if neither has a card.
    pub fn open(roots: &Roots) -> Result<Self, SourceError> {
        let cards = find_cards(&roots.sys);
        if cards.is_empty() {
            return Err(SourceError::NoDriver(
                "neither of the kernel drivers i915 and xe has found a GPU: check that the \
                 machine has an Intel GPU, then see `dmesg | grep -e i915 -e xe`"
                    .to_owned(),
            ));
        }
        let nodes = cards.clone();
        // With the `xe` driver, reading a client's usage wakes the card.
        let may_read = move |minor| {
            let mut nodes = nodes.iter();
            nodes
                .find(|card| card.minors.contains(&minor))
                .is_some_and(|card| card.power_state() == PowerState::Active)
        };
        Ok(Self {
            cards,
            clients: Clients::new(roots.proc.clone(), may_read),
            proc_root: roots.proc.clone(),
        })
    }

    fn find_card(&self, index: u32) -> Option<&Card> {
        self.cards.get(index as usize)
    }
}

impl Source for IntelSource {
    fn platform(&self) -> Platform {
        // The drivers are part of the kernel and have its version.
        let version = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        Platform {
            is_simulated: false,
            drivers: vec![Driver {
                vendor: Vendor::Intel,
                version: Reading::Now(version),
                library_version: Reading::Absent(Absence::NotSupported),
                cuda_version: Reading::Absent(Absence::NotSupported),
            }],
        }
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        Ok(self.cards.len() as u32)
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        let card = self.find_card(index).ok_or(DeviceError::Lost)?;
        let clients = Arc::clone(&self.clients);
        Ok(Box::new(IntelDevice::open(
            card,
            index,
            &self.proc_root,
            clients,
        )?))
    }

    fn is_asleep(&self, index: u32, _sys_root: &Path) -> bool {
        let card = self.find_card(index);
        card.is_some_and(|card| card.power_state() == PowerState::Asleep)
    }

    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        self.find_card(index).map_or_else(
            || Gpu::new_unidentified(index, reason),
            |card| identify_card(card, index, reason),
        )
    }

    fn reporter(&self) -> Option<Box<dyn Reporter>> {
        None
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        let log = KernelLog::open(path, IntelErrors).ok();
        log.into_iter().map(|log| Box::new(log) as _).collect()
    }

    fn find_links(&self, _gpus: &[u32]) -> Vec<GpuLink> {
        Vec::new()
    }
}
