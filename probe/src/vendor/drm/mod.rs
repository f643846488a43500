//! The GPUs of all vendors as Linux' direct rendering manager (DRM) shows them: cards in sysfs, and
//! the processes that use them in procfs.

mod attributes;
mod card;
mod clients;
mod errors;
mod fdinfo;
mod hwmon;
mod pcie;
#[cfg(test)]
pub(super) mod testing;
mod usage;

pub(super) use self::{
    attributes::{Attributes, list_numbers},
    card::{Card, PowerState, find_cards},
    clients::{Client, Clients, Snapshot},
    errors::{ErrorKind, ErrorTable, split_message},
    fdinfo::{ClientInfo, Engine},
    hwmon::Hwmon,
    pcie::{generation_of, pcie_generation, read_link, read_max_link},
    usage::{Names, Usage},
};
