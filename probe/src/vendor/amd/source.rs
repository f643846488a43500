//! The implementation of `--source amd`.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use super::{
    board,
    counters::EnergyMeter,
    device::{AmdDevice, AmdMachine},
    diagnostics::find_cards,
    errors::{AmdErrors, FatalErrors},
    kfd,
};
use crate::{
    model::{Absence, Gpu, GpuLink, Platform, Reading, Vendor},
    process_stat::is_first_pid_namespace,
    vendor::{
        Device, DeviceError, ErrorLog, Roots, Source, SourceError,
        drm::{Attributes, Card, Clients, is_node_of_awake_card},
        kernel_log::{self, LogParser},
        make_kernel_driver_platform,
    },
};

/// The name of the kernel driver. Cards from before 2012 use `radeon`, which reports little.
pub(super) const DRIVER_NAME: &str = "amdgpu";

/// The GPUs of the kernel driver `amdgpu`, sorted by PCI address.
pub struct AmdSource {
    machine: Arc<AmdMachine>,
    cards: Vec<KnownCard>,
}

struct KnownCard {
    card: Card,
    energy: Arc<Mutex<EnergyMeter>>,
}

impl AmdSource {
    /// Finds the cards that use the `amdgpu` driver.
    ///
    /// # Errors
    /// Returns an error if the driver is not loaded or has no card.
    pub fn open(roots: &Roots) -> Result<Self, SourceError> {
        let cards = find_cards(&roots.sys);
        if cards.is_empty() {
            return Err(explain_missing_cards(&roots.sys));
        }
        let kfd_root = kfd::find_kfd_folder(&roots.sys);
        let known = cards.clone();
        // Clients of other vendors' cards are skipped, because reading their data could wake those
        // cards.
        let may_read = move |minor| is_node_of_awake_card(&known, minor);
        let found = |card| KnownCard {
            card,
            energy: Arc::default(),
        };
        Ok(Self {
            machine: Arc::new(AmdMachine {
                sys_root: roots.sys.clone(),
                proc_root: roots.proc.clone(),
                kfd_root,
                clients: Clients::new(roots.proc.clone(), may_read),
                sees_host_pids: is_first_pid_namespace(&roots.proc) != Some(false),
                fatal_errors: Arc::default(),
            }),
            cards: cards.into_iter().map(found).collect(),
        })
    }

    fn find_card(&self, index: u32) -> Option<&KnownCard> {
        self.cards.get(index as usize)
    }
}

/// Returns the error that explains why the machine has no AMD cards.
fn explain_missing_cards(sys_root: &Path) -> SourceError {
    if sys_root.join("module").join(DRIVER_NAME).exists() {
        SourceError::NoDevice(
            "the kernel driver amdgpu is loaded, but found no GPU: see `dmesg | grep amdgpu`"
                .to_owned(),
        )
    } else {
        SourceError::NoDriver(
            "the kernel driver amdgpu is not loaded: check that the machine has an AMD GPU, then \
             run `modprobe amdgpu`"
                .to_owned(),
        )
    }
}

/// Reads the fatal errors that occurred before gpumon was started.
fn read_past_errors(fatal_errors: &Arc<FatalErrors>, log: &Path) {
    let mut errors = AmdErrors::new(Arc::clone(fatal_errors));
    for message in kernel_log::read_past_messages(log).unwrap_or_default() {
        errors.parse(&message);
    }
}

impl Source for AmdSource {
    fn platform(&self) -> Platform {
        // Drivers from AMD's packages have their own version number. The driver in the kernel has
        // the kernel's version.
        let driver = Attributes::new(self.machine.sys_root.join("module/amdgpu"));
        make_kernel_driver_platform(Vendor::Amd, driver.read_text("version").ok())
    }

    fn device_count(&self) -> Result<u32, SourceError> {
        Ok(self.cards.len() as u32)
    }

    fn open(&self, index: u32) -> Result<Box<dyn Device>, DeviceError> {
        let found = self.find_card(index).ok_or(DeviceError::Lost)?;
        found.card.check_is_awake()?;
        Ok(Box::new(AmdDevice::open(
            &found.card,
            index,
            Arc::clone(&self.machine),
            Arc::clone(&found.energy),
        )))
    }

    fn is_asleep(&self, index: u32, _sys_root: &Path) -> bool {
        let found = self.find_card(index);
        found.is_some_and(|found| found.card.is_asleep())
    }

    fn identify_closed(&self, index: u32, reason: &Absence) -> Gpu {
        self.find_card(index).map_or_else(
            || Gpu::new_unidentified(index, reason),
            |found| board::identify_card(&found.card, index, reason),
        )
    }

    fn error_logs(&self, path: &Path) -> Vec<Box<dyn ErrorLog>> {
        let fatal_errors = &self.machine.fatal_errors;
        read_past_errors(fatal_errors, path);
        kernel_log::open_error_log(path, AmdErrors::new(Arc::clone(fatal_errors)))
    }

    /// Returns one link for each pair of GPUs that are connected by XGMI.
    fn find_links(&self, gpus: &[u32]) -> Vec<GpuLink> {
        let nodes = kfd::find_nodes(&self.machine.kfd_root);
        let index_of = |bus_id: &str| {
            let mut indices = gpus.iter().copied();
            indices.find(|index| {
                self.find_card(*index)
                    .is_some_and(|own| own.card.bus_id == bus_id)
            })
        };
        let index_of_node = |number: u32| {
            let node = nodes.iter().find(|node| node.number == number)?;
            index_of(&node.bus_id()?)
        };
        let mut pairs: Vec<_> = nodes
            .iter()
            .flat_map(|node| {
                node.xgmi_peers()
                    .into_iter()
                    .map(|peer| (node.number, peer))
            })
            .filter_map(|(one, other)| Some((index_of_node(one)?, index_of_node(other)?)))
            .filter(|(one, other)| one < other)
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        let link = |(a, b)| GpuLink {
            a,
            b,
            path: Reading::NOT_SUPPORTED,
            nvlinks: Reading::Now(1),
        };
        pairs.into_iter().map(link).collect()
    }
}
