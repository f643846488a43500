//! Memory, in MiB.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    format::{full_mib, mib},
    item::{Item, group, number},
    sections::Section,
};

/// The GPU's own, the window to it, and the protected part.
pub(super) static ITEMS: &[Item] = &[
    group("FB Memory Usage", "fb_memory_usage")
        .of(Section::MEMORY)
        .holds(&[
            number("Total", "total", Q::MemoryInfo, 0, mib),
            number("Reserved", "reserved", Q::MemoryInfo, 1, mib),
            number("Used", "used", Q::MemoryInfo, 3, mib),
            number("Free", "free", Q::MemoryInfo, 2, mib),
        ]),
    group("BAR1 Memory Usage", "bar1_memory_usage")
        .of(Section::MEMORY)
        .holds(&[
            number("Total", "total", Q::Bar1MemoryInfo, 0, mib),
            number("Used", "used", Q::Bar1MemoryInfo, 2, full_mib),
            number("Free", "free", Q::Bar1MemoryInfo, 1, mib),
        ]),
    group(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
    )
    .of(Section::MEMORY)
    .holds(&[
        number("Total", "total", Q::ProtectedMemory, 0, mib),
        number("Used", "used", Q::ProtectedMemory, 2, mib),
        number("Free", "free", Q::ProtectedMemory, 1, mib),
    ]),
];
