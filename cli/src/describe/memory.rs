//! Formats amounts of memory in GiB.

use gpumon_probe::model::{GpuSample, MemoryKind};

use super::{Level, Phrase};

const GIB: f64 = (1u64 << 30) as f64;

/// Formats memory in use in GiB without the unit, such as `8.5`, `78.2`, or `130.0`, so that
/// decimal points align.
pub(crate) fn format_used_memory(bytes: u64) -> String {
    match bytes as f64 / GIB {
        many if many >= 999.95 => format!("{many:.0}"),
        few => format!("{few:.1}"),
    }
}

/// Formats total memory in GiB without the unit, such as `22.5`, `80.0`, or `141`.
pub(crate) fn format_total_memory(bytes: u64) -> String {
    match bytes as f64 / GIB {
        large if large >= 99.95 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    }
}

/// Formats memory in use, such as `78.2/140 GiB`. The total is left out if it is unknown.
pub(crate) fn format_used_of_total(bytes: u64, of: Option<u64>) -> String {
    let of = of.map_or_else(String::new, |all| format!("/{}", format_total_memory(all)));
    format!("{}{of} GiB", format_used_memory(bytes))
}

/// Returns the fraction of memory in use, from 0 to 1, or `None` if either amount is unknown.
pub(crate) fn used_memory_fraction(used: Option<&u64>, total: Option<&u64>) -> Option<f64> {
    used.zip(total)
        .filter(|(_, total)| **total > 0)
        .map(|(used, total)| *used as f64 / *total as f64)
}

/// Returns the fraction of memory that is unavailable, from 0 to 1, or `None` if unknown. For
/// unified memory, the fraction includes the memory used by the rest of the system.
pub(crate) fn unavailable_memory_fraction(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let (used, total) = (memory.used_bytes.value(), memory.total_bytes.value());
    match gpu.memory_kind {
        MemoryKind::Device => used_memory_fraction(used, total),
        MemoryKind::Unified => {
            used_memory_fraction(memory.free_bytes.value(), total).map(|free| 1.0 - free)
        }
    }
}

/// Returns a note about memory that the GPU shares with the CPU.
pub(super) fn find_unified_memory_phrase(gpu: &GpuSample) -> Option<Phrase> {
    if gpu.memory_kind != MemoryKind::Unified {
        return None;
    }
    let short = "unified memory";
    let available = gpu.memory.free_bytes.value();
    let long = available.map_or_else(
        || short.to_owned(),
        |bytes| {
            format!(
                "{short}, shared with the CPU: {} GiB available",
                format_total_memory(*bytes)
            )
        },
    );
    Some(Phrase::new(Level::Quiet, short, long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_has_three_digits() {
        assert_eq!(
            [22.5, 80.0, 140.4].map(|gib| format_total_memory((gib * GIB) as u64)),
            ["22.5", "80.0", "140"]
        );
        assert_eq!(
            [0.5, 71.5, 113.8, 1144.7].map(|gib| format_used_memory((gib * GIB) as u64)),
            ["0.5", "71.5", "113.8", "1145"]
        );
    }
}
