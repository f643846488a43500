//! The interface to the process reader. One finder serves all GPUs, so that each process is read
//! once.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    CommandLines, ProcessName, process_reader::ProcessReader, table::ProcessFields, workers::Shared,
};
use crate::model::{Owner, Process};

/// A finder of details about processes that the driver does not report.
#[derive(Clone)]
pub struct Finder(Arc<Shared>);

/// One GPU's access to a finder, which keeps the GPU's processes up to date.
pub struct Resolver {
    shared: Arc<Shared>,
    listed: BTreeSet<u32>,
}

impl Finder {
    /// Returns a finder for the processes below `root`, which is `/proc` except in tests.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Self(Shared::new(ProcessReader::new(root.into(), commands)))
    }

    /// Returns a finder that behaves as if it ran as this user.
    #[cfg(test)]
    pub(super) fn of_user(root: impl Into<PathBuf>, commands: CommandLines, uid: u32) -> Self {
        Self(Shared::new(
            ProcessReader::new(root.into(), commands).of_user(uid),
        ))
    }

    /// Returns the number of remembered processes and the number of threads.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.table.len(), state.threads())
    }

    /// Returns a resolver for one more GPU.
    pub fn resolver(&self) -> Resolver {
        Resolver {
            shared: Arc::clone(&self.0),
            listed: BTreeSet::new(),
        }
    }
}

impl Resolver {
    /// Returns a resolver with a finder of its own.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Finder::new(root, commands).resolver()
    }

    /// Fills in the details of all processes of one reading, and forgets processes that are not
    /// listed. Waits for processes that are new in this reading, but at most for `patience`;
    /// unknown details are "not read yet".
    ///
    /// A process that has ended after the driver listed it stays in the list, with unknown details.
    pub fn fill(&mut self, processes: &mut [Process], patience: Duration) {
        self.ask(
            processes.iter().map(|process| process.pid).collect(),
            patience,
        );
        for process in processes {
            self.describe(process, ProcessFields::All);
        }
    }

    /// Requests the details of all processes of one reading, and waits like [`Self::fill`].
    pub(crate) fn ask(&mut self, listed: BTreeSet<u32>, patience: Duration) {
        let deadline = Instant::now() + patience;
        let ended: Vec<u32> = self.listed.difference(&listed).copied().collect();
        let mut pending: Vec<u32> = listed.difference(&self.listed).copied().collect();
        let mut state = self.shared.lock();
        for pid in &pending {
            state.table.list(*pid);
        }
        if !ended.is_empty() {
            state.table.unlist(&ended);
        }
        for pid in &listed {
            state.table.refresh(*pid);
        }
        self.listed = listed;
        loop {
            self.shared.ensure_threads(&mut state);
            // The last process is checked first, because processes are read in this order.
            while pending.pop_if(|pid| state.is_settled(*pid)).is_some() {}
            let left = deadline.saturating_duration_since(Instant::now());
            if pending.is_empty() || left.is_zero() {
                return;
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Returns `true` if processes of other PID namespaces are not visible.
    pub(crate) fn is_in_namespace(&self) -> bool {
        self.shared.is_in_namespace()
    }

    /// Returns the process's user, or `None` if it is not known.
    pub(crate) fn uid(&self, pid: u32) -> Option<u32> {
        self.shared.lock().table.uid(pid)
    }

    /// Returns the process's name, or `None` if it is not known.
    pub(crate) fn name(&self, pid: u32) -> Option<ProcessName> {
        self.shared.lock().table.name(pid)
    }

    /// Calls `see` with the owners in the process's cgroup, if they are known.
    pub(crate) fn with_cgroup(&self, pid: u32, see: impl FnOnce(&Owner)) {
        if let Some(owner) = self.shared.lock().table.owner(pid) {
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
        self.shared.lock().table.unlist(&listed);
    }
}
