//! The `--query-gpu` option, which prints one row for each GPU.

mod activity;
mod clocks;
mod ecc;
mod fabric;
mod identity;
mod memory;
mod modes;
mod pci;
mod platform;
mod power;
mod reasons;
mod repair;
mod settings;
mod smoothing;

use super::common;
use super::row;
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        identity::IDENTITY_SECTIONS,
        pci::PCI_SECTIONS,
        settings::SETTING_SECTIONS,
        reasons::PERFORMANCE_SECTIONS,
        memory::MEMORY_SECTIONS,
        activity::UTILIZATION_SECTIONS,
        ecc::SECTIONS,
        repair::RETIRED_PAGES,
        repair::REMAPPED_ROWS,
        power::SECTIONS,
        smoothing::SECTIONS,
        power::EDPP,
        clocks::CLOCK_SECTIONS,
        modes::MODE_SECTIONS,
        fabric::FABRIC_SECTIONS,
        platform::PLATFORM_SECTIONS,
    ],
    items: row::list_single_item,
};

/// The fields of `--query-remapped-rows`.
pub(super) static REMAPPED_ROWS: Table = Table {
    subjects: &[common::COMMON_SECTIONS, repair::REMAPPED_ROWS],
    items: row::list_single_item,
};
