//! The GPUs of all vendors as Linux' direct rendering manager (DRM) shows them: cards in sysfs, and
//! the processes that use them in procfs.

mod attributes;
mod card;
mod clients;
mod errors;
mod fdinfo;
mod hwmon;
mod pcie;
mod scanner;
#[cfg(test)]
pub(super) mod testing;
mod usage;

pub(super) use self::{
    attributes::{Attributes, list_numbers},
    card::{Card, PowerState, find_cards},
    clients::Clients,
    errors::{ErrorKind, ErrorTable, split_message},
    fdinfo::{ClientInfo, Engine},
    hwmon::Hwmon,
    pcie::{Port, generation_of, pcie_generation},
    scanner::{Client, Snapshot},
    usage::{Names, Usage},
};
