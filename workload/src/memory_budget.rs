//! The amount of memory that a workload may use.

use gpumon_probe::bounded;

use crate::{cuda::FreeMemory, error::RunError};

const MIB: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    /// The location of the memory, such as `on GPU 0`.
    pub place: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
    /// The size of the last cache before memory, in bytes. Workloads whose arrays fit into the
    /// cache do not measure the memory.
    pub cache_bytes: u64,
    /// Whether another process is computing on the GPU. If so, three quarters of the free memory
    /// are left to it.
    pub is_shared: bool,
}

impl MemoryBudget {
    pub(crate) fn for_gpu(index: u32, memory: FreeMemory, cache_bytes: u64) -> Self {
        let FreeMemory {
            free_bytes,
            total_bytes,
        } = memory;
        Self {
            place: format!("on GPU {index}"),
            free_bytes,
            total_bytes,
            cache_bytes,
            is_shared: false,
        }
    }

    /// Returns the budget of the host's memory. The budget is 0 if the operating system does not
    /// report its memory.
    pub(crate) fn for_host(cache_bytes: u64) -> Self {
        let text = bounded::read_text("/proc/meminfo", bounded::TABLE_LIMIT).unwrap_or_default();
        let bytes = |key: &str| parse_kib(&text, key).unwrap_or(0) * 1024;
        Self {
            place: "of the host's memory".to_owned(),
            free_bytes: bytes("MemAvailable:"),
            total_bytes: bytes("MemTotal:"),
            cache_bytes,
            is_shared: false,
        }
    }

    /// Returns the memory in bytes that is left to other processes, so that their allocations do
    /// not fail because of a workload.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        let of_all = (512 * MIB).max(self.total_bytes / 100 * 3);
        if self.is_shared {
            of_all.max(self.free_bytes - self.free_bytes / 4)
        } else {
            of_all
        }
    }

    pub(crate) fn usable_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.reserve_bytes())
    }

    pub(crate) fn check_bytes_fit(
        &self,
        id: &'static str,
        needed_bytes: u64,
    ) -> Result<(), RunError> {
        if needed_bytes <= self.usable_bytes() {
            Ok(())
        } else {
            Err(self.too_large_error(id, needed_bytes))
        }
    }

    pub(crate) fn too_large_error(&self, id: &'static str, needed_bytes: u64) -> RunError {
        RunError::TooLarge {
            id,
            place: self.place.clone(),
            needed_bytes,
            free_bytes: self.free_bytes,
            total_bytes: self.total_bytes,
            reserve_bytes: self.reserve_bytes(),
            fix: "use a smaller --size",
        }
    }
}

/// Parses a line of `/proc/meminfo`, such as `MemTotal:  16384 kB`.
pub(crate) fn parse_kib(meminfo: &str, key: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_budget(free: u64, total: u64) -> MemoryBudget {
        MemoryBudget {
            place: "here".to_owned(),
            free_bytes: free * MIB,
            total_bytes: total * MIB,
            cache_bytes: 0,
            is_shared: false,
        }
    }

    #[test]
    fn memory_budget_leaves_reserve_for_other_programs() {
        assert_eq!(make_budget(10_000, 10_000).usable_bytes(), 9_488 * MIB);
        assert_eq!(make_budget(100_000, 100_000).reserve_bytes() / MIB, 3_000);
        assert_eq!(make_budget(100, 10_000).usable_bytes(), 0);
        let shared = |free, total| MemoryBudget {
            is_shared: true,
            ..make_budget(free, total)
        };
        assert_eq!(shared(8_000, 10_000).usable_bytes(), 2_000 * MIB);
        assert_eq!(
            shared(600, 10_000).usable_bytes(),
            88 * MIB,
            "what stays free in any case does"
        );
    }

    #[test]
    fn too_large_request_is_refused() {
        assert_eq!(
            make_budget(1_024, 10_000).check_bytes_fit("copy", 512 * MIB),
            Ok(())
        );
        let error = make_budget(1_024, 10_000)
            .check_bytes_fit("copy", 512 * MIB + 1)
            .unwrap_err();
        assert!(matches!(error, RunError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn host_memory_is_read() {
        assert_eq!(
            parse_kib("MemTotal:    16 kB\nMemFree: 3 kB\n", "MemFree:"),
            Some(3)
        );
        let host = MemoryBudget::for_host(0);
        assert!(
            host.free_bytes > 0 && host.free_bytes <= host.total_bytes,
            "{host:?}"
        );
    }
}
