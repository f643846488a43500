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
    model::{Absence, Gpu, Platform, Vendor},
    vendor::{
        Device, DeviceError, ErrorLog, Roots, Source, SourceError,
        drm::{Card, Clients, is_node_of_awake_card},
        kernel_log, make_kernel_driver_platform,
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
        let known = cards.clone();
        // With the `xe` driver, reading a client's usage wakes the card.
        let may_read = move |minor| is_node_of_awake_card(&known, minor);
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
        make_kernel_driver_platform(Vendor::Intel, None)
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
        card.is_some_and(Card::is_asleep)
    }

    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        self.find_card(index).map_or_else(
            || Gpu::new_unidentified(index, reason),
            |card| identify_card(card, index, reason),
        )
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        kernel_log::open_error_log(path, IntelErrors)
    }
}
