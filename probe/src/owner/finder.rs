//! Who asks for what is known of processes: one finder for all GPUs, so that each process is read
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

/// Finds out what the driver does not know of processes.
#[derive(Clone)]
pub struct Finder(Arc<Shared>);

/// One GPU's view of it: the processes that it lists are kept up to date.
pub struct Resolver {
    shared: Arc<Shared>,
    listed: BTreeSet<u32>,
}

impl Finder {
    /// Reads below `root`, which is `/proc` but in tests.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Self(Shared::new(ProcessReader::new(root.into(), commands)))
    }

    /// As if it ran as this user.
    #[cfg(test)]
    pub(super) fn of_user(root: impl Into<PathBuf>, commands: CommandLines, uid: u32) -> Self {
        Self(Shared::new(
            ProcessReader::new(root.into(), commands).of_user(uid),
        ))
    }

    /// Processes it remembers, and threads it has.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.table.len(), state.threads())
    }

    /// For one more GPU.
    pub fn resolver(&self) -> Resolver {
        Resolver {
            shared: Arc::clone(&self.0),
            listed: BTreeSet::new(),
        }
    }
}

impl Resolver {
    /// A finder with nobody else.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Finder::new(root, commands).resolver()
    }

    /// Fills in what is known of every process of one reading, and forgets those that are not in
    /// it. Waits for those that were not in the reading before, but no longer than `patience`; what
    /// is not known by then is not read yet.
    ///
    /// A process that ended since the driver listed it stays in the list, with its details unknown.
    pub fn fill(&mut self, processes: &mut [Process], patience: Duration) {
        self.ask(
            processes.iter().map(|process| process.pid).collect(),
            patience,
        );
        for process in processes {
            self.describe(process, ProcessFields::All);
        }
    }

    /// Asks for every process of one reading, as [`Self::fill`] does.
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
            // They are read in their order, so that the last is known last.
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

    /// Whose process it is; `None` where that is not known.
    pub(crate) fn uid(&self, pid: u32) -> Option<u32> {
        self.shared.lock().table.uid(pid)
    }

    /// What it is called; `None` where that is not known.
    pub(crate) fn name(&self, pid: u32) -> Option<ProcessName> {
        self.shared.lock().table.name(pid)
    }

    /// Shows what a process's cgroup tells, where it is known.
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
