//! Items for memory usage in MiB.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    format::{format_mib, format_mib_rounded_down},
    item::{Item, TITLE_AS_TAG, group_item, number_item},
    sections::Section,
};

/// The items for the GPU's memory, the BAR1 window, and the protected memory.
pub(super) static MEMORY_ITEMS: &[Item] = &[
    group_item("FB Memory Usage", TITLE_AS_TAG)
        .show_in_section(Section::MEMORY)
        .with_items(&[
            number_item("Total", TITLE_AS_TAG, Q::MemoryInfo, 0, format_mib),
            number_item("Reserved", TITLE_AS_TAG, Q::MemoryInfo, 1, format_mib),
            number_item("Used", TITLE_AS_TAG, Q::MemoryInfo, 3, format_mib),
            number_item("Free", TITLE_AS_TAG, Q::MemoryInfo, 2, format_mib),
        ]),
    group_item("BAR1 Memory Usage", TITLE_AS_TAG)
        .show_in_section(Section::MEMORY)
        .with_items(&[
            number_item("Total", TITLE_AS_TAG, Q::Bar1MemoryInfo, 0, format_mib),
            number_item(
                "Used",
                TITLE_AS_TAG,
                Q::Bar1MemoryInfo,
                2,
                format_mib_rounded_down,
            ),
            number_item("Free", TITLE_AS_TAG, Q::Bar1MemoryInfo, 1, format_mib),
        ]),
    group_item(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
    )
    .show_in_section(Section::MEMORY)
    .with_items(&[
        number_item("Total", TITLE_AS_TAG, Q::ProtectedMemory, 0, format_mib),
        number_item("Used", TITLE_AS_TAG, Q::ProtectedMemory, 2, format_mib),
        number_item("Free", TITLE_AS_TAG, Q::ProtectedMemory, 1, format_mib),
    ]),
];
