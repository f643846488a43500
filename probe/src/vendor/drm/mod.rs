//! Access to the kernel's Direct Rendering Manager (DRM), shared by all vendors: cards in sysfs,
//! and the processes that use them in procfs.

mod card;
mod clients;
mod recorder;
mod sysfs;
#[cfg(test)]
pub(super) mod testing;
mod usage;

pub(super) use card::{Binding, Card, add_vendor_name, find_cards, is_node_of_awake_card};
pub(super) use clients::{Client, Clients, ScanResult, copy_client_files};
pub(super) use recorder::Recorder;
pub(super) use sysfs::{
    Attributes, Hwmon, PciePort, check_sensors, generation_from_speed, list_names, list_numbers,
    parse_pcie_generation,
};
pub(super) use usage::{ClientInfo, Names, Usage};
