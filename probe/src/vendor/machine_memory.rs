//! The machine's memory, which GPUs without their own memory use.

use std::path::Path;

use crate::{
    bounded,
    model::{Absence, Absent as _, GpuSample, MemoryKind, MemorySample, Process, Reading},
};

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vendor) struct MachineMemory {
    pub(in crate::vendor) total_bytes: u64,
    /// The memory that programs can still allocate, including caches that the kernel can free.
    pub(in crate::vendor) available_bytes: u64,
}

impl MachineMemory {
    /// Reads `MemTotal` and `MemAvailable` from `meminfo` in `proc_root`, which is `/proc` except
    /// in tests.
    pub(in crate::vendor) fn read(proc_root: &Path) -> Option<Self> {
        let text = bounded::read_text(proc_root.join("meminfo"), bounded::STAT_LIMIT).ok()?;
        let bytes = |key: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(key))?;
            let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kibibytes.checked_mul(1024)
        };
        Some(Self {
            total_bytes: bytes("MemTotal:")?,
            available_bytes: bytes("MemAvailable:")?,
        })
    }
}

impl GpuSample {
    /// Replaces the GPU's memory readings with the machine's memory. The processes must be read
    /// first. Memory that other programs use counts as neither used nor free.
    pub(in crate::vendor) fn set_memory_from_machine(&mut self, machine: Option<MachineMemory>) {
        let machine = Reading::from(machine.ok_or(Absence::Unknown));
        self.memory_kind = MemoryKind::Unified;
        self.memory = MemorySample {
            total_bytes: machine.clone().map(|own| own.total_bytes),
            free_bytes: machine.map(|own| own.available_bytes),
            used_bytes: self.sum_process_memory(),
            ..MemorySample::new_absent(&Absence::NotSupported)
        };
    }

    /// Returns the sum of the processes' known memory, in bytes.
    pub(in crate::vendor) fn sum_process_memory(&self) -> Reading<u64> {
        let bytes = |process: &Process| process.memory_bytes.value().copied();
        let sum = |all: Vec<Process>| all.iter().filter_map(bytes).fold(0, u64::saturating_add);
        self.processes.clone().map(sum)
    }
}
