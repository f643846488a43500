//! Functions that return freed memory to the system.
//!
//! glibc's allocator does not return freed memory below a block that is still in use. After
//! thousands of clients have left, the server would therefore keep memory that it hardly needs. In
//! addition, samples are allocated and freed by different threads, each with its own heap. If
//! hundreds of processes start and end per second, these heaps keep several times the memory that
//! is in use.

#![allow(unsafe_code)]

use std::time::Duration;

use tokio::{task::spawn_blocking, time::Instant};

/// The minimum time between two calls of `malloc_trim`. Returning memory takes milliseconds, and
/// allocating it again causes a page fault for each page.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

/// The time after which memory is returned in any case. Without this, up to 10 MB of unused memory
/// accumulated within five minutes.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// The smallest estimated amount of freed memory, in KiB, for which returning the memory is worth
/// the cost.
const MIN_FREE_KIB: usize = 1024;

/// The estimated memory of a connection with a stream, in KiB.
const CONNECTION_KIB: usize = 6;

/// The time of the last call of `malloc_trim`, and an estimate of the memory freed since.
pub(crate) struct MemoryTrimmer {
    trimmed_at: Instant,
    connections: usize,
    free_kib: usize,
}

impl MemoryTrimmer {
    pub(crate) fn new() -> Self {
        Self {
            trimmed_at: Instant::now(),
            connections: 0,
            free_kib: 0,
        }
    }

    /// Returns memory to the system if this is worth the cost. `connections` is the current number
    /// of connections. `released_kib` is the size of the responses released since the last call.
    pub(crate) fn trim_if_worthwhile(&mut self, connections: usize, released_kib: usize) {
        let ended = self.connections.saturating_sub(connections);
        self.connections = connections;
        self.free_kib += ended * CONNECTION_KIB + released_kib;
        if self.is_due(Instant::now()) {
            (self.trimmed_at, self.free_kib) = (Instant::now(), 0);
            drop(spawn_blocking(trim_heap));
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let interval = if self.free_kib >= MIN_FREE_KIB {
            MIN_INTERVAL
        } else {
            MAX_INTERVAL
        };
        now.duration_since(self.trimmed_at) >= interval
    }
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: malloc_trim(3) has no preconditions, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_memory_is_returned_to_system_regularly() {
        let mut memory = MemoryTrimmer::new();
        let after =
            |memory: &MemoryTrimmer, passed: Duration| memory.is_due(memory.trimmed_at + passed);
        assert!(!after(&memory, MAX_INTERVAL.mul_f64(0.9)) && after(&memory, MAX_INTERVAL));
        memory.free_kib = MIN_FREE_KIB;
        assert!(!after(&memory, MIN_INTERVAL.mul_f64(0.9)) && after(&memory, MIN_INTERVAL));
    }
}
