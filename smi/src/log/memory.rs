//! Memory, in MiB.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    format::{full_mib, mib},
    item::{Item, group, value},
    sections::Sections,
};

/// The GPU's own, the window to it, and the protected part.
pub(super) static ITEMS: &[Item] = &[
    group(
        "FB Memory Usage",
        "fb_memory_usage",
        &[
            value("Total", "total", |at| at.format(Query::MemoryInfo, 0, mib)),
            value("Reserved", "reserved", |at| at.format(Query::MemoryInfo, 1, mib)),
            value("Used", "used", |at| at.format(Query::MemoryInfo, 3, mib)),
            value("Free", "free", |at| at.format(Query::MemoryInfo, 2, mib)),
        ],
    )
    .of(Sections::MEMORY),
    group(
        "BAR1 Memory Usage",
        "bar1_memory_usage",
        &[
            value("Total", "total", |at| at.format(Query::Bar1MemoryInfo, 0, mib)),
            value("Used", "used", |at| at.format(Query::Bar1MemoryInfo, 2, full_mib)),
            value("Free", "free", |at| at.format(Query::Bar1MemoryInfo, 1, mib)),
        ],
    )
    .of(Sections::MEMORY),
    group(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
        &[
            value("Total", "total", |at| at.format(Query::ProtectedMemory, 0, mib)),
            value("Used", "used", |at| at.format(Query::ProtectedMemory, 2, mib)),
            value("Free", "free", |at| at.format(Query::ProtectedMemory, 1, mib)),
        ],
    )
    .of(Sections::MEMORY),
];
