//! The finder, which reads processes on its own threads. One finder serves all GPUs, so that each
//! process is read only once.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    CommandLines, ProcessName,
    process_reader::{self, ProcessReader},
    table::{ProcessFields, Table},
};
use crate::{
    model::{Owner, Process},
    thread,
};

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

    /// Creates a resolver. Each GPU needs its own.
    pub fn new_resolver(&self) -> Resolver {
        Resolver {
            shared: Arc::clone(&self.0),
            listed: BTreeSet::new(),
        }
    }
}

impl Resolver {
    /// Creates a resolver with a finder of its own.
    pub fn new(root: impl Into<PathBuf>, commands: CommandLines) -> Self {
        Finder::new(root, commands).new_resolver()
    }

    /// Fills in the details of all processes in a GPU's list, and forgets processes that are no
    /// longer listed. Waits for new processes, but no longer than `patience`; details that are
    /// still unknown are "not read yet".
    ///
    /// A process that has ended after the driver listed it stays in the list, with unknown details.
    pub fn fill_details(&mut self, processes: &mut [Process], patience: Duration) {
        self.request_details(
            processes.iter().map(|process| process.pid).collect(),
            patience,
        );
        for process in processes {
            self.fill_known_details(process, ProcessFields::All);
        }
    }

    /// Requests the details of all listed processes, and waits like [`Self::fill_details`].
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
            state.table.queue_outdated_basics(*pid);
        }
        self.listed = listed;
        loop {
            self.shared.start_needed_threads(&mut state);
            // The last process is checked first, because processes are read in order and the last
            // one finishes last.
            while pending
                .pop_if(|pid| state.are_details_settled(*pid))
                .is_some()
            {}
            let left = deadline.saturating_duration_since(Instant::now());
            if pending.is_empty() || left.is_zero() {
                return;
            }
            state = self.shared.wait_for_change(state, left);
        }
    }

    /// Returns `true` if gpumon runs in a child PID namespace, where processes of other namespaces
    /// are not visible.
    pub(crate) fn is_in_child_pid_namespace(&self) -> bool {
        self.shared.reader.is_in_child_pid_namespace()
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
    pub(crate) fn with_cgroup_owner(&self, pid: u32, see: impl FnOnce(&Owner)) {
        if let Some(owner) = self.shared.lock().table.cgroup_owner(pid) {
            see(owner);
        }
    }

    pub(crate) fn fill_known_details(&self, process: &mut Process, fields: ProcessFields) {
        self.shared.lock().table.fill_known_details(process, fields);
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        let listed: Vec<u32> = self.listed.iter().copied().collect();
        self.shared.lock().table.remove_listings(&listed);
    }
}

// The threads that read processes: one for the first stage, which cannot block, and several for the
// second stage, which can.
//
// A second stage that takes longer than `HUNG_AFTER` counts as hung. Its thread cannot be stopped,
// so it is abandoned and replaced. Until the hung stage returns, no other processes of the same
// user are read: they would probably hang too, and one user can have any number of processes.
// Processes of other users are read as usual.

/// The time after which a second stage counts as hung. A stage normally takes 0.2 ms, or longer on
/// a busy machine or a network file system.
const HUNG_AFTER: Duration = Duration::from_millis(500);

/// The maximum number of threads for the second stage. Each thread serves a different user.
const MAX_DETAILS_THREADS: usize = 4;

/// The maximum number of abandoned threads. If more threads hang, they are not replaced.
const MAX_ABANDONED_THREADS: usize = 16;

/// The number of processes that are read in the first stage before threads for their second stage
/// are started.
const BATCH_SIZE: usize = 32;

/// The time after which an idle thread ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The state shared by the GPU threads and the threads that read processes.
struct SharedState {
    reader: ProcessReader,
    state: Mutex<ReaderState>,
    /// Signals that there are processes to read.
    work: Condvar,
    /// Signals that a process has been read.
    changed: Condvar,
}

#[derive(Default)]
struct ReaderState {
    table: Table,
    has_basics_thread: bool,
    /// The number of threads for the second stage, without abandoned threads.
    details_threads: usize,
    /// The number of second-stage threads that are waiting for work.
    idle_threads: usize,
    running: Vec<RunningTask>,
    next_id: u64,
}

struct RunningTask {
    id: u64,
    uid: Option<u32>,
    since: Instant,
    abandoned: bool,
}

impl RunningTask {
    fn is_hung(&self) -> bool {
        self.since.elapsed() > HUNG_AFTER
    }
}

impl ReaderState {
    /// Returns `true` if no more details of the process are expected soon: either both stages are
    /// complete, or the second stage of one of the user's processes hangs.
    fn are_details_settled(&self, pid: u32) -> bool {
        let uid = self.table.process_uid(pid);
        let is_held_up = || {
            self.running
                .iter()
                .any(|running| running.uid == uid && running.is_hung())
        };
        self.table.is_complete(pid) || (self.table.has_basics(pid) && is_held_up())
    }

    fn has_task_of_user(&self, uid: Option<u32>) -> bool {
        self.running.iter().any(|running| running.uid == uid)
    }

    fn abandon_hung(&mut self) {
        let mut abandoned = self
            .running
            .iter()
            .filter(|running| running.abandoned)
            .count();
        for running in self
            .running
            .iter_mut()
            .filter(|running| !running.abandoned && running.is_hung())
        {
            if abandoned < MAX_ABANDONED_THREADS {
                running.abandoned = true;
                abandoned += 1;
                self.details_threads -= 1;
            }
        }
    }
}

impl SharedState {
    fn new(reader: ProcessReader) -> Arc<Self> {
        Arc::new(Self {
            reader,
            state: Mutex::default(),
            work: Condvar::new(),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, but only briefly, because a thread that hangs does not signal.
    fn wait_for_change<'a>(
        &self,
        state: MutexGuard<'a, ReaderState>,
        most: Duration,
    ) -> MutexGuard<'a, ReaderState> {
        let waited = self
            .changed
            .wait_timeout(state, most.min(Duration::from_millis(10)));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Starts threads for all queued stages. If the machine cannot start a thread, stages remain
    /// queued.
    fn start_needed_threads(self: &Arc<Self>, state: &mut ReaderState) {
        state.abandon_hung();
        if state.table.has_basics_due() && !state.has_basics_thread {
            let shared = Arc::clone(self);
            state.has_basics_thread =
                thread::spawn("owner-basics", move || shared.run_basics()).is_ok();
        }
        let has_task = state
            .table
            .has_details_task(|uid| state.has_task_of_user(uid));
        // A thread is woken only if there is work. A thread that is woken without work would wake
        // the waiting callers, and the callers would call this function again.
        if !has_task && !state.table.has_basics_due() {
            return;
        }
        if has_task && state.idle_threads == 0 && state.details_threads < MAX_DETAILS_THREADS {
            let shared = Arc::clone(self);
            state.details_threads +=
                usize::from(thread::spawn("owner-details", move || shared.run_details()).is_ok());
        }
        self.work.notify_all();
    }

    /// Waits for work. Returns `false` if none arrived within [`IDLE_TIMEOUT`].
    fn wait_for_work<'a>(
        &self,
        state: MutexGuard<'a, ReaderState>,
    ) -> (MutexGuard<'a, ReaderState>, bool) {
        self.changed.notify_all();
        let (state, waited) = self
            .work
            .wait_timeout(state, IDLE_TIMEOUT)
            .unwrap_or_else(PoisonError::into_inner);
        (state, !waited.timed_out())
    }

    fn run_basics(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            let mut read = 0;
            while let Some(pid) = state.table.take_basics_pid() {
                drop(state);
                let basics = self.reader.read_basics(pid);
                state = self.lock();
                state.table.set_basics(pid, basics);
                read += 1;
                if read % BATCH_SIZE == 0 {
                    self.start_needed_threads(&mut state);
                }
            }
            self.start_needed_threads(&mut state);
            let goes_on;
            (state, goes_on) = self.wait_for_work(state);
            if !goes_on && !state.table.has_basics_due() {
                state.has_basics_thread = false;
                return;
            }
        }
    }

    fn run_details(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            let busy: Vec<_> = state.running.iter().map(|running| running.uid).collect();
            let Some(mut task) = state.table.take_details_task(|uid| busy.contains(&uid)) else {
                state.idle_threads += 1;
                let goes_on;
                (state, goes_on) = self.wait_for_work(state);
                state.idle_threads -= 1;
                if !goes_on {
                    state.details_threads -= 1;
                    return;
                }
                continue;
            };
            let id = state.next_id;
            state.next_id += 1;
            state.running.push(RunningTask {
                id,
                uid: task.uid(),
                since: Instant::now(),
                abandoned: false,
            });
            drop(state);
            if let Some(uid) = task.unnamed {
                let name = process_reader::user_name(uid);
                self.lock().table.store_user_name(uid, name);
            }
            let details = self
                .reader
                .read_details(task.pid, &task.basics, task.before.take());
            state = self.lock();
            state.table.set_details(&task, details);
            let was_abandoned = state
                .running
                .extract_if(.., |running| running.id == id)
                .any(|running| running.abandoned);
            if was_abandoned {
                // An abandoned thread ends here, because another thread has replaced it.
                self.start_needed_threads(&mut state);
                return;
            }
        }
    }
}

/// Access to internals for the tests of this module's parent.
#[cfg(test)]
mod test_access {
    use super::*;

    impl Finder {
        /// Creates a finder that behaves as if gpumon ran as the user `uid`.
        pub(in crate::owner) fn with_uid(
            root: impl Into<PathBuf>,
            commands: CommandLines,
            uid: u32,
        ) -> Self {
            Self(SharedState::new(
                ProcessReader::new(root.into(), commands).with_uid(uid),
            ))
        }

        /// Returns the number of processes in the table and the number of threads.
        pub(in crate::owner) fn process_and_thread_counts(&self) -> (usize, usize) {
            let state = self.0.lock();
            let running = state.running.iter();
            let abandoned = running.filter(|running| running.abandoned).count();
            let threads = usize::from(state.has_basics_thread) + state.details_threads + abandoned;
            (state.table.len(), threads)
        }
    }
}
