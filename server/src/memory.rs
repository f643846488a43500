//! Gives back memory that clients needed.
//!
//! glibc's allocator keeps what was freed below anything that is still in use. Of a server with thousands of clients,
//! nearly all of that is free once they have left.

#![allow(unsafe_code)]

use std::time::Duration;

use tokio::{task::spawn_blocking, time::Instant};

/// Giving back costs milliseconds, and taking again a fault for each page.
const MIN_INTERVAL: Duration = Duration::from_secs(5);

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
        Self { trimmed_at: Instant::now(), connections: 0, free_kib: 0 }
    }

    /// Gives memory back where that is worth it: there are so many connections now, and answers of so many KiB, given
    /// or read, have been let go of since the last call.
    pub(crate) fn trim(&mut self, connections: usize, released_kib: usize) {
        let ended = self.connections.saturating_sub(connections);
        self.connections = connections;
        self.free_kib += ended * CONNECTION_KIB + released_kib;
        if self.free_kib >= MIN_FREE_KIB && self.trimmed_at.elapsed() >= MIN_INTERVAL {
            (self.trimmed_at, self.free_kib) = (Instant::now(), 0);
            drop(spawn_blocking(trim_heap));
        }
    }
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: malloc_trim(3) has no preconditions, and touches no memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}
