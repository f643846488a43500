//! The machine's memory, which is also that of GPUs without memory of their own.

use std::path::Path;

use crate::{
    bounded,
    model::{Absence, Absent as _, GpuSample, MemoryKind, MemorySample, Process, Reading},
};

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vendor) struct MachineMemory {
    pub(in crate::vendor) total_bytes: u64,
    /// The memory that programs can still get, with the caches that are given up for it.
    pub(in crate::vendor) available_bytes: u64,
}

impl MachineMemory {
    /// Reads `MemTotal` and `MemAvailable` of `meminfo`; `proc_root` is `/proc` except in tests.
    pub(in crate::vendor) fn read(proc_root: &Path) -> Option<Self> {
        let text = bounded::text(proc_root.join("meminfo"), bounded::STAT).ok()?;
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
    /// Makes the machine's memory that of this GPU, whose processes have been read. What the rest
    /// of the system uses is neither used by the GPU nor free.
    pub(in crate::vendor) fn share_memory(&mut self, machine: Option<MachineMemory>) {
        let machine = Reading::from(machine.ok_or(Absence::Unknown));
        self.memory_kind = MemoryKind::Unified;
        self.memory = MemorySample {
            total_bytes: machine.clone().map(|own| own.total_bytes),
            free_bytes: machine.map(|own| own.available_bytes),
            used_bytes: self.sum_process_memory(),
            ..MemorySample::absent(&Absence::NotSupported)
        };
    }

    /// Returns the sum of the processes' memory, as far as it is known, in bytes.
    pub(in crate::vendor) fn sum_process_memory(&self) -> Reading<u64> {
        let bytes = |process: &Process| process.memory_bytes.value().copied();
        let sum = |all: Vec<Process>| all.iter().filter_map(bytes).fold(0, u64::saturating_add);
        self.processes.clone().map(sum)
    }
}
