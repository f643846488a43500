//! Memory usage in MiB.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    format::{full_mib, mib},
    item::{Item, SAME, group, number},
    sections::Section,
};

/// The memory of the GPU, the BAR1 window, and the protected memory.
pub(super) static ITEMS: &[Item] = &[
    group("FB Memory Usage", SAME).of(Section::MEMORY).holds(&[
        number("Total", SAME, Q::MemoryInfo, 0, mib),
        number("Reserved", SAME, Q::MemoryInfo, 1, mib),
        number("Used", SAME, Q::MemoryInfo, 3, mib),
        number("Free", SAME, Q::MemoryInfo, 2, mib),
    ]),
    group("BAR1 Memory Usage", SAME)
        .of(Section::MEMORY)
        .holds(&[
            number("Total", SAME, Q::Bar1MemoryInfo, 0, mib),
            number("Used", SAME, Q::Bar1MemoryInfo, 2, full_mib),
            number("Free", SAME, Q::Bar1MemoryInfo, 1, mib),
        ]),
    group(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
    )
    .of(Section::MEMORY)
    .holds(&[
        number("Total", SAME, Q::ProtectedMemory, 0, mib),
        number("Used", SAME, Q::ProtectedMemory, 2, mib),
        number("Free", SAME, Q::ProtectedMemory, 1, mib),
    ]),
];
