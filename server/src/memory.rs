//! Returns freed memory to the system.
//!
//! glibc's allocator keeps what was freed below anything that is still in use. Of a server with
//! thousands of clients, nearly all of that is free once they have left. Each sample is allocated
//! and freed, too, by whichever thread the runtime chooses, and every thread has a heap of its own:
//! where hundreds of processes start and end in a second, these heaps keep several times as much as
//! is in use.

#![allow(unsafe_code)]

use std::time::Duration;

use tokio::{task::spawn_blocking, time::Instant};

/// Giving back costs milliseconds, and taking again a fault for each page.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

/// How often memory is returned in any case. Within five minutes, 10 MB more than is in use were
/// kept.
const MAX_INTERVAL: Duration = Duration::from_secs(30);

/// What has to be free before it is worth it, as far as the server knows: in KiB.
const MIN_FREE_KIB: usize = 1024;

/// What a connection with a stream holds.
const CONNECTION_KIB: usize = 6;

/// When memory was given back, and what has become free since.
pub(crate) struct Memory {
    trimmed_at: Instant,
    connections: usize,
    free_kib: usize,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            trimmed_at: Instant::now(),
            connections: 0,
            free_kib: 0,
        }
    }

    /// Gives memory back where that is worth it: there are so many connections now, and answers of
    /// so many KiB, given or read, have been let go of since the last call.
    pub(crate) fn trim(&mut self, connections: usize, released_kib: usize) {
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
    fn memory_is_returned_regularly_without_clients() {
        let mut memory = Memory::new();
        let after = |memory: &Memory, passed: Duration| memory.is_due(memory.trimmed_at + passed);
        assert!(!after(&memory, MAX_INTERVAL.mul_f64(0.9)) && after(&memory, MAX_INTERVAL));
        memory.free_kib = MIN_FREE_KIB;
        assert!(!after(&memory, MIN_INTERVAL.mul_f64(0.9)) && after(&memory, MIN_INTERVAL));
    }
}
