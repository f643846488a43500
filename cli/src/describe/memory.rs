//! How much memory is how much, in GiB.

use gpumon_probe::model::{GpuSample, MemoryKind};

use super::{Level, Phrase};

const GIB: f64 = (1u64 << 30) as f64;

/// `8.5`, `78.2`, `130.0`: what is in use, in GiB without the unit, so that points stand below each
/// other.
pub(crate) fn used(bytes: u64) -> String {
    match bytes as f64 / GIB {
        many if many >= 999.95 => format!("{many:.0}"),
        few => format!("{few:.1}"),
    }
}

/// `22.5`, `80.0`, `141`: all that there is, in GiB without the unit.
pub(crate) fn total(bytes: u64) -> String {
    match bytes as f64 / GIB {
        large if large >= 99.95 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    }
}

/// `78.2/140 GiB`; without the total where that is not known.
pub(crate) fn used_of(bytes: u64, of: Option<u64>) -> String {
    let of = of.map_or_else(String::new, |all| format!("/{}", total(all)));
    format!("{}{of} GiB", used(bytes))
}

/// The share that is in use, from 0 to 1; `None` where one of both is not known.
pub(crate) fn share(used: Option<&u64>, total: Option<&u64>) -> Option<f64> {
    used.zip(total)
        .filter(|(_, total)| **total > 0)
        .map(|(used, total)| *used as f64 / *total as f64)
}

/// Returns the share that is taken, from 0 to 1, of unified memory also by the rest of the system;
/// `None` if it is not known.
pub(crate) fn taken_share(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let (used, total) = (memory.used_bytes.value(), memory.total_bytes.value());
    match gpu.memory_kind {
        MemoryKind::Device => share(used, total),
        MemoryKind::Unified => share(memory.free_bytes.value(), total).map(|free| 1.0 - free),
    }
}

/// Returns a note about memory that the GPU shares with the CPU.
pub(super) fn unified_phrase(gpu: &GpuSample) -> Option<Phrase> {
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
                total(*bytes)
            )
        },
    );
    Some(Phrase::new(Level::Quiet, short, long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_there_is_has_three_digits() {
        assert_eq!(
            [22.5, 80.0, 140.4].map(|gib| total((gib * GIB) as u64)),
            ["22.5", "80.0", "140"]
        );
        assert_eq!(
            [0.5, 71.5, 113.8, 1144.7].map(|gib| used((gib * GIB) as u64)),
            ["0.5", "71.5", "113.8", "1145"]
        );
    }
}
