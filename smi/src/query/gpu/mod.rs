//! The `--query-gpu` option, which prints one row for each GPU.

mod identity;
mod interconnect;
mod memory_errors;
mod performance;
mod power_and_temperature;
mod settings;
mod smoothing;
mod usage;

use super::table::{self, Table};

pub(super) static TABLE: Table = Table {
    subjects: &[
        identity::IDENTITY_SECTIONS,
        interconnect::PCI_SECTIONS,
        settings::SETTING_SECTIONS,
        performance::PERFORMANCE_SECTIONS,
        usage::MEMORY_SECTIONS,
        usage::UTILIZATION_SECTIONS,
        memory_errors::SECTIONS,
        memory_errors::RETIRED_PAGES,
        memory_errors::REMAPPED_ROWS,
        power_and_temperature::SECTIONS,
        smoothing::SECTIONS,
        power_and_temperature::EDPP,
        performance::CLOCK_SECTIONS,
        settings::MODE_SECTIONS,
        interconnect::FABRIC_SECTIONS,
        identity::PLATFORM_SECTIONS,
    ],
    items: table::list_single_item,
};

/// The fields of `--query-remapped-rows`.
pub(super) static REMAPPED_ROWS: Table = Table {
    subjects: &[table::COMMON_SECTIONS, memory_errors::REMAPPED_ROWS],
    items: table::list_single_item,
};
