//! The interface to the process reader. One finder serves all GPUs, so that each process is read
//! only once.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CommandLines, ProcessName, process_reader::ProcessReader, table::ProcessFields,
    workers::SharedState,
};
use crate::model::{Owner, Process};

/// A reader of process details that the driver does not report.
#[derive(Clone)]
pub struct Finder(Arc<SharedState>);

/// Gives one GPU access to a finder, and keeps the GPU's list of processes up to date.
pub struct Resolver {
    shared: Arc<SharedState>,
    listed: BTreeSet<u32>,
}

impl Finder {
    /// Creates a finder for the processes below `root`, which is `/proc` except in tests.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Self(SharedState::new(ProcessReader::new(root.into(), commands)))
    }

    /// Creates a finder that behaves as if gpumon ran as the user `uid`.
    #[cfg(test)]
    pub(super) fn with_uid(root: impl Into<PathBuf>, commands: CommandLines, uid: u32) -> Self {
        Self(SharedState::new(
            ProcessReader::new(root.into(), commands).with_uid(uid),
        ))
    }

    /// Returns the number of processes in the table and the number of threads.
    #[cfg(test)]
    pub(super) fn process_and_thread_counts(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.table.len(), state.thread_count())
    }

    /// Creates a resolver. Each GPU needs its own.
    pub fn resolver(&self) -> Resolver {
        Resolver {
            shared: Arc::clone(&self.0),
            listed: BTreeSet::new(),
        }
    }
}

impl Resolver {
    /// Creates a resolver with a finder of its own.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Finder::new(root, commands).resolver()
    }

    /// Fills in the details of all processes in a GPU's list, and forgets processes that are no
    /// longer listed. Waits for new processes, but no longer than `patience`; details that are
    /// still unknown are "not read yet".
    ///
    /// A process that has ended after the driver listed it stays in the list, with unknown details.
    pub fn fill(&mut self, processes: &mut [Process], patience: Duration) {
        self.request_details(
            processes.iter().map(|process| process.pid).collect(),
            patience,
        );
        for process in processes {
            self.describe(process, ProcessFields::All);
        }
    }

    /// Requests the details of all listed processes, and waits like [`Self::fill`].
    pub(crate) fn request_details(&mut self, listed: BTreeSet<u32>, patience: Duration) {
        let deadline = Instant::now() + patience;
        let ended: Vec<u32> = self.listed.difference(&listed).copied().collect();
        let mut pending: Vec<u32> = listed.difference(&self.listed).copied().collect();
        let mut state = self.shared.lock();
        for pid in &pending {
            state.table.add_listing(*pid);
        }
        if !ended.is_empty() {
            state.table.remove_listings(&ended);
        }
        for pid in &listed {
            state.table.refresh(*pid);
        }
        self.listed = listed;
        loop {
            self.shared.ensure_threads(&mut state);
            // The last process is checked first, because processes are read in order and the last
            // one finishes last.
            while pending.pop_if(|pid| state.is_settled(*pid)).is_some() {}
            let left = deadline.saturating_duration_since(Instant::now());
            if pending.is_empty() || left.is_zero() {
                return;
            }
            state = self.shared.wait_for_change(state, left);
        }
    }

    /// Returns `true` if processes of other PID namespaces are not visible.
    pub(crate) fn is_in_child_pid_namespace(&self) -> bool {
        self.shared.is_in_child_pid_namespace()
    }

    /// Returns the user ID of the process, or `None` if it is unknown.
    pub(crate) fn process_uid(&self, pid: u32) -> Option<u32> {
        self.shared.lock().table.process_uid(pid)
    }

    /// Returns the name of the process, or `None` if it is unknown.
    pub(crate) fn process_name(&self, pid: u32) -> Option<ProcessName> {
        self.shared.lock().table.process_name(pid)
    }

    /// Calls `see` with the owners found in the process's cgroup, if they are known.
    pub(crate) fn with_cgroup(&self, pid: u32, see: impl FnOnce(&Owner)) {
        if let Some(owner) = self.shared.lock().table.cgroup_owner(pid) {
            see(owner);
        }
    }

    pub(crate) fn describe(&self, process: &mut Process, fields: ProcessFields) {
        self.shared.lock().table.fill(process, fields);
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let listed: Vec<u32> = self.listed.iter().copied().collect();
        self.shared.lock().table.remove_listings(&listed);
    }
}
