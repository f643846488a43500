//! The options `--query-gpu` and `--query-remapped-rows`, which print one row for each GPU.

mod identity;
mod interconnect;
mod memory_errors;
mod performance;
mod power_and_temperature;
mod settings;
mod smoothing;
mod usage;

use super::table::{self, Table};

/// The fields of `--query-gpu`.
pub(super) static GPUS: Table = Table {
    subjects: &[
        identity::IDENTITY_SECTIONS,
        interconnect::PCI_SECTIONS,
        settings::SETTING_SECTIONS,
        performance::PERFORMANCE_SECTIONS,
        usage::MEMORY_SECTIONS,
        usage::UTILIZATION_SECTIONS,
        memory_errors::ECC_SECTIONS,
        memory_errors::RETIRED_PAGE_SECTIONS,
        memory_errors::REMAPPED_ROW_SECTIONS,
        power_and_temperature::POWER_AND_TEMPERATURE_SECTIONS,
        smoothing::SMOOTHING_SECTIONS,
        power_and_temperature::EDPP_SECTIONS,
        performance::CLOCK_SECTIONS,
        settings::MODE_SECTIONS,
        interconnect::FABRIC_SECTIONS,
        identity::PLATFORM_SECTIONS,
    ],
    items: table::list_single_item,
};

/// The fields of `--query-remapped-rows`.
pub(super) static REMAPPED_ROWS: Table = Table {
    subjects: &[table::COMMON_SECTIONS, memory_errors::REMAPPED_ROW_SECTIONS],
    items: table::list_single_item,
};
