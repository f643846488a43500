//! Access to the kernel's Direct Rendering Manager (DRM), shared by all vendors: cards in sysfs,
//! and the processes that use them in procfs.

mod attributes;
mod binding;
mod card;
mod clients;
mod errors;
mod fdinfo;
mod hwmon;
mod pcie;
mod recorder;
mod scanner;
#[cfg(test)]
pub(super) mod testing;
mod usage;

pub(super) use self::{
    attributes::{Attributes, list_numbers},
    binding::Binding,
    card::{Card, PowerState, find_cards},
    clients::Clients,
    errors::{ErrorKind, ErrorTable, split_message},
    fdinfo::{ClientInfo, Engine},
    hwmon::{Hwmon, check_sensors},
    pcie::{PciePort, generation_from_speed, parse_pcie_generation},
    recorder::Recorder,
    scanner::{Client, ScanResult, record_clients},
    usage::{Names, Usage},
};
