//! The table of all listed processes, with a queue for each stage of reading.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::{
    ProcessName,
    process_reader::{Basics, Details},
};
use crate::model::{Absence, Owner, Process, Reading};

/// The interval between two readings of a process. It is read again because a process can start
/// another program (exec) or rename itself, as the workers of Ray and vLLM do.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

/// The maximum number of cached login names, so that a user with many IDs cannot fill the memory.
const MAX_USERS: usize = 1024;

#[derive(Default)]
pub(super) struct Table {
    entries: HashMap<u32, Entry>,
    /// Login names by user ID.
    users: HashMap<u32, String>,
    basics_due: VecDeque<u32>,
    details_due: VecDeque<u32>,
}

#[derive(Default)]
struct Entry {
    /// The number of GPUs that list the process. The entry is removed when this number becomes 0.
    listings: u32,
    basics_read: Option<Instant>,
    /// The result of the first stage; `None` if there is no such process.
    basics: Option<Basics>,
    /// The reason why the process is missing.
    why_missing: Option<Absence>,
    details: Option<Details>,
    /// Whether the process's first stage is queued or running.
    basics_queued: bool,
    /// Whether the process's second stage is queued or running.
    details_queued: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessFields {
    All,
    /// Only name, user and start time are filled in. Copying all details of thousands of processes
    /// would take longer than all other work.
    Brief,
}

pub(super) struct Task {
    pub(super) pid: u32,
    pub(super) basics: Basics,
    pub(super) before: Option<Details>,
    /// The process's user ID, if its login name is not known yet.
    pub(super) unnamed: Option<u32>,
}

impl Task {
    pub(super) fn uid(&self) -> Option<u32> {
        self.basics.user.map(|user| user.uid)
    }
}

impl Table {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn add_listing(&mut self, pid: u32) {
        self.entries.entry(pid).or_default().listings += 1;
    }

    pub(super) fn remove_listings(&mut self, pids: &[u32]) {
        for pid in pids {
            if let Some(entry) = self.entries.get_mut(pid) {
                entry.listings -= 1;
            }
        }
        self.entries.retain(|_, entry| entry.listings > 0);
        for queue in [&mut self.basics_due, &mut self.details_due] {
            queue.retain(|pid| self.entries.contains_key(pid));
        }
    }

    /// Queues the first stage for a process that has not been read for a while.
    pub(super) fn queue_outdated_basics(&mut self, pid: u32) {
        let Some(entry) = self.entries.get_mut(&pid) else {
            return;
        };
        if !entry.basics_queued
            && entry
                .basics_read
                .is_none_or(|basics_read| basics_read.elapsed() > REFRESH_AFTER)
        {
            entry.basics_queued = true;
            self.basics_due.push_back(pid);
        }
    }

    pub(super) fn has_basics_due(&self) -> bool {
        !self.basics_due.is_empty()
    }

    pub(super) fn take_basics_pid(&mut self) -> Option<u32> {
        self.basics_due.pop_front()
    }

    /// Stores the result of the first stage, and queues the second stage.
    pub(super) fn set_basics(&mut self, pid: u32, basics: Result<Basics, Absence>) {
        let Some(entry) = self.entries.get_mut(&pid) else {
            return;
        };
        (entry.basics_queued, entry.basics_read) = (false, Some(Instant::now()));
        let (basics, why_missing) = match basics {
            Ok(basics) => (Some(basics), None),
            Err(absence) => (None, Some(absence)),
        };
        entry.why_missing = why_missing;
        // A different start time means that the PID now belongs to another process. PIDs are not
        // reused so quickly that both processes could have the same start time.
        let birth = |basics: &Option<Basics>| basics.as_ref().map(|basics| basics.origin.birth);
        if birth(&entry.basics) != birth(&basics) {
            entry.details = None;
        }
        entry.basics = basics;
        self.queue_details(pid);
    }

    fn queue_details(&mut self, pid: u32) {
        let Some(entry) = self.entries.get_mut(&pid) else {
            return;
        };
        if entry.basics.is_some() && !entry.details_queued {
            entry.details_queued = true;
            self.details_due.push_back(pid);
        }
    }

    /// Returns `true` if a second stage is queued for a user who has no second stage running.
    pub(super) fn has_details_task(&self, is_busy: impl Fn(Option<u32>) -> bool) -> bool {
        self.details_due
            .iter()
            .any(|pid| !is_busy(self.process_uid(*pid)))
    }

    /// Returns the next queued second stage of a user who has no second stage running.
    pub(super) fn take_details_task(
        &mut self,
        is_busy: impl Fn(Option<u32>) -> bool,
    ) -> Option<Task> {
        loop {
            let at = self
                .details_due
                .iter()
                .position(|pid| !is_busy(self.process_uid(*pid)))?;
            let pid = self.details_due.remove(at)?;
            let Some(entry) = self.entries.get_mut(&pid) else {
                continue;
            };
            let Some(basics) = entry.basics.clone() else {
                entry.details_queued = false;
                continue;
            };
            let unnamed = basics
                .user
                .map(|user| user.uid)
                .filter(|uid| !self.users.contains_key(uid));
            return Some(Task {
                pid,
                basics,
                before: entry.details.clone(),
                unnamed,
            });
        }
    }

    pub(super) fn set_details(&mut self, task: &Task, details: Details) {
        let Some(entry) = self.entries.get_mut(&task.pid) else {
            return;
        };
        entry.details_queued = false;
        if entry
            .basics
            .as_ref()
            .is_some_and(|basics| basics.origin.birth == task.basics.origin.birth)
        {
            entry.details = Some(details);
        } else {
            self.queue_details(task.pid);
        }
    }

    pub(super) fn store_user_name(&mut self, uid: u32, name: String) {
        if self.users.len() >= MAX_USERS {
            self.users.clear();
        }
        self.users.insert(uid, name);
    }

    /// Returns the user ID of the process, or `None` if it is unknown.
    pub(super) fn process_uid(&self, pid: u32) -> Option<u32> {
        Some(self.entries.get(&pid)?.basics.as_ref()?.user?.uid)
    }

    /// Returns the name of the process, or `None` if it is unknown.
    pub(super) fn process_name(&self, pid: u32) -> Option<ProcessName> {
        let Entry {
            basics, details, ..
        } = self.entries.get(&pid)?;
        let reported = details.as_ref().map(|details| details.name.clone());
        let by_basics = || {
            Some(ProcessName {
                name: Reading::Now(basics.as_ref()?.name.clone()),
                program: None,
            })
        };
        reported.or_else(by_basics)
    }

    /// Returns the owners found in the process's cgroup, or `None` if there are none.
    pub(super) fn cgroup_owner(&self, pid: u32) -> Option<&Owner> {
        self.entries.get(&pid)?.basics.as_ref()?.owner.value()
    }

    /// Returns `true` if both stages are complete, or if no more stages will run.
    pub(super) fn is_complete(&self, pid: u32) -> bool {
        self.entries.get(&pid).is_none_or(|entry| {
            entry.basics_read.is_some() && (entry.basics.is_none() || entry.details.is_some())
        })
    }

    pub(super) fn has_basics(&self, pid: u32) -> bool {
        self.entries
            .get(&pid)
            .is_none_or(|entry| entry.basics_read.is_some())
    }

    /// Fills in the known details of a process.
    pub(super) fn fill_known_details(&self, process: &mut Process, fields: ProcessFields) {
        process.program = None;
        let entry = self
            .entries
            .get(&process.pid)
            .filter(|entry| entry.basics_read.is_some());
        let Some(basics) = entry.and_then(|entry| entry.basics.as_ref()) else {
            // If a process was read before and is missing now, it has ended since the driver listed
            // it.
            let reason = || {
                if entry.is_some() {
                    Absence::Unknown
                } else {
                    Absence::NotReadYet
                }
            };
            let missing = entry
                .and_then(|entry| entry.why_missing.clone())
                .unwrap_or(Absence::NotReadYet);
            process.host_memory_bytes = Reading::Absent(missing.clone());
            process.traced = Reading::Absent(missing);
            process.name = Reading::Absent(reason());
            process.command = Reading::Absent(reason());
            process.user = Reading::Absent(reason());
            process.started_ms = Reading::Absent(reason());
            process.owner = Reading::Absent(reason());
            return;
        };
        process.host_memory_bytes = basics.host_memory_bytes.clone();
        process.traced = basics.traced.clone();
        process.started_ms = basics
            .origin
            .birth
            .started_ms
            .map_or(Reading::Absent(Absence::Unknown), Reading::Now);
        process.user = match basics.user {
            Some(user) => self
                .users
                .get(&user.uid)
                .cloned()
                .map_or(Reading::Absent(Absence::NotReadYet), Reading::Now),
            None => Reading::Absent(Absence::Unknown),
        };
        if let Some(details) = entry.and_then(|entry| entry.details.as_ref()) {
            process.name.clone_from(&details.name.name);
            process.program.clone_from(&details.name.program);
            if fields == ProcessFields::All {
                process.command = details.command.clone();
                process.owner = Reading::Now(details.owner.clone());
            }
        } else {
            process.name = Reading::Now(basics.name.clone());
            process.command = Reading::Absent(if basics.hidden {
                Absence::Hidden
            } else {
                Absence::NotReadYet
            });
            process.owner = match fields {
                ProcessFields::All => basics.owner.clone(),
                ProcessFields::Brief => Reading::Absent(Absence::NotReadYet),
            };
        }
    }
}
