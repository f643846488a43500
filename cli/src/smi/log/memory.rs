//! Memory, in MiB.

use gpumon_probe::question::Question;

use super::{
    item::{Item, group, value},
    say::{full_mib, mib},
    sections::Sections,
};

/// The GPU's own, the window to it, and the protected part.
pub(super) static ITEMS: &[Item] = &[
    group(
        "FB Memory Usage",
        "fb_memory_usage",
        &[
            value("Total", "total", |at| at.say(Question::MemoryInfo, 0, mib)),
            value("Reserved", "reserved", |at| at.say(Question::MemoryInfo, 1, mib)),
            value("Used", "used", |at| at.say(Question::MemoryInfo, 3, mib)),
            value("Free", "free", |at| at.say(Question::MemoryInfo, 2, mib)),
        ],
    )
    .of(Sections::MEMORY),
    group(
        "BAR1 Memory Usage",
        "bar1_memory_usage",
        &[
            value("Total", "total", |at| at.say(Question::Bar1MemoryInfo, 0, mib)),
            value("Used", "used", |at| at.say(Question::Bar1MemoryInfo, 2, full_mib)),
            value("Free", "free", |at| at.say(Question::Bar1MemoryInfo, 1, mib)),
        ],
    )
    .of(Sections::MEMORY),
    group(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
        &[
            value("Total", "total", |at| at.say(Question::ProtectedMemory, 0, mib)),
            value("Used", "used", |at| at.say(Question::ProtectedMemory, 2, mib)),
            value("Free", "free", |at| at.say(Question::ProtectedMemory, 1, mib)),
        ],
    )
    .of(Sections::MEMORY),
];
