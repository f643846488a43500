//! What is known of which processes, and what is to be read next.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::looker::{Basics, Details};
use crate::model::{Absence, Process, Reading};

/// A process can become another program (exec) or rename itself, as workers of Ray and vLLM do.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// More users than any machine has; whoever can act as many must not fill memory with their names.
const MOST_USERS: usize = 1024;

#[derive(Default)]
pub(super) struct Table {
    entries: HashMap<u32, Entry>,
    /// Login names by number.
    users: HashMap<u32, String>,
    /// Whose first stage is due.
    to_look: VecDeque<u32>,
    /// Whose second stage is due.
    to_describe: VecDeque<u32>,
}

/// One process.
#[derive(Default)]
struct Entry {
    /// How many GPUs list it; where that is none, it is forgotten.
    listings: u32,
    /// When the first stage was last read.
    looked: Option<Instant>,
    /// `None` where there is no such process.
    basics: Option<Basics>,
    details: Option<Details>,
    /// Whether it waits for its first stage, or is in it.
    looking: bool,
    /// The same of the second.
    describing: bool,
}

/// How much of a process is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// Name, user and start: copying the rest of thousands of processes takes longer than everything else.
    Brief,
}

/// A process whose second stage is due.
pub(super) struct Task {
    pub(super) pid: u32,
    pub(super) basics: Basics,
    pub(super) before: Option<Details>,
    /// Whose login name is not known yet.
    pub(super) unnamed: Option<u32>,
}

impl Task {
    /// Whose process it is.
    pub(super) fn uid(&self) -> Option<u32> {
        self.basics.user.map(|user| user.uid)
    }
}

impl Table {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A GPU lists this process from now on.
    pub(super) fn list(&mut self, pid: u32) {
        self.entries.entry(pid).or_default().listings += 1;
    }

    /// A GPU lists these processes no longer.
    pub(super) fn unlist(&mut self, pids: &[u32]) {
        for pid in pids {
            if let Some(entry) = self.entries.get_mut(pid) {
                entry.listings -= 1;
            }
        }
        self.entries.retain(|_, entry| entry.listings > 0);
        for queue in [&mut self.to_look, &mut self.to_describe] {
            queue.retain(|pid| self.entries.contains_key(pid));
        }
    }

    /// Has a process read that never was, or not for a while.
    pub(super) fn refresh(&mut self, pid: u32) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        if !entry.looking && entry.looked.is_none_or(|looked| looked.elapsed() > LOOK_AGAIN) {
            entry.looking = true;
            self.to_look.push_back(pid);
        }
    }

    /// Whether a first stage is due.
    pub(super) fn is_anybody_to_look_at(&self) -> bool {
        !self.to_look.is_empty()
    }

    /// The next first stage.
    pub(super) fn next_to_look_at(&mut self) -> Option<u32> {
        self.to_look.pop_front()
    }

    /// What came of a first stage; the second is due then.
    pub(super) fn looked(&mut self, pid: u32, basics: Option<Basics>) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        (entry.looking, entry.looked) = (false, Some(Instant::now()));
        // The PID may be another process's by now: it takes a kernel longer than this to come round to it again.
        let birth = |basics: &Option<Basics>| basics.as_ref().map(|basics| basics.origin.birth);
        if birth(&entry.basics) != birth(&basics) {
            entry.details = None;
        }
        entry.basics = basics;
        self.describe(pid);
    }

    fn describe(&mut self, pid: u32) {
        let Some(entry) = self.entries.get_mut(&pid) else { return };
        if entry.basics.is_some() && !entry.describing {
            entry.describing = true;
            self.to_describe.push_back(pid);
        }
    }

    /// Whether a second stage is due of a user of whom none is under way.
    pub(super) fn has_task(&self, is_busy: impl Fn(Option<u32>) -> bool) -> bool {
        self.to_describe.iter().any(|pid| !is_busy(self.uid(*pid)))
    }

    /// The next second stage of a user of whom none is under way.
    pub(super) fn next_task(&mut self, is_busy: impl Fn(Option<u32>) -> bool) -> Option<Task> {
        loop {
            let at = self.to_describe.iter().position(|pid| !is_busy(self.uid(*pid)))?;
            let pid = self.to_describe.remove(at)?;
            let Some(entry) = self.entries.get_mut(&pid) else { continue };
            let Some(basics) = entry.basics.clone() else {
                entry.describing = false;
                continue;
            };
            let unnamed = basics.user.map(|user| user.uid).filter(|uid| !self.users.contains_key(uid));
            return Some(Task { pid, basics, before: entry.details.clone(), unnamed });
        }
    }

    /// What came of a second stage.
    pub(super) fn described(&mut self, task: &Task, details: Details) {
        let Some(entry) = self.entries.get_mut(&task.pid) else { return };
        entry.describing = false;
        if entry.basics.as_ref().is_some_and(|basics| basics.origin.birth == task.basics.origin.birth) {
            entry.details = Some(details);
        } else {
            self.describe(task.pid);
        }
    }

    pub(super) fn name_user(&mut self, uid: u32, name: String) {
        if self.users.len() >= MOST_USERS {
            self.users.clear();
        }
        self.users.insert(uid, name);
    }

    /// Whose process it is; `None` where that is not known.
    pub(super) fn uid(&self, pid: u32) -> Option<u32> {
        Some(self.entries.get(&pid)?.basics.as_ref()?.user?.uid)
    }

    /// Whether everything is known of a process that there is to know.
    pub(super) fn is_known(&self, pid: u32) -> bool {
        self.entries
            .get(&pid)
            .is_none_or(|entry| entry.looked.is_some() && (entry.basics.is_none() || entry.details.is_some()))
    }

    /// Whether the first stage is known.
    pub(super) fn is_looked_at(&self, pid: u32) -> bool {
        self.entries.get(&pid).is_none_or(|entry| entry.looked.is_some())
    }

    /// Fills in what is known of a process, or what its events tell.
    pub(super) fn fill(&self, process: &mut Process, how: Extent) {
        fn because<T>(reason: Absence) -> Reading<T> {
            Reading::Absent(reason)
        }
        let entry = self.entries.get(&process.pid).filter(|entry| entry.looked.is_some());
        let Some(basics) = entry.and_then(|entry| entry.basics.as_ref()) else {
            // It ended since the driver listed it, where it has been looked for.
            let reason = || if entry.is_some() { Absence::Unknown } else { Absence::NotReadYet };
            process.name = because(reason());
            process.command = because(reason());
            process.user = because(reason());
            process.started_ms = because(reason());
            process.owner = because(reason());
            return;
        };
        process.started_ms = basics.origin.birth.started_ms.map_or(because(Absence::Unknown), Reading::Now);
        process.user = match basics.user {
            Some(user) => self.users.get(&user.uid).cloned().map_or(because(Absence::NotReadYet), Reading::Now),
            None => because(Absence::Unknown),
        };
        match entry.and_then(|entry| entry.details.as_ref()) {
            Some(details) if how == Extent::Brief => process.name = details.name.clone(),
            Some(details) => {
                process.name = details.name.clone();
                process.command = details.command.clone();
                process.owner = Reading::Now(details.owner.clone());
            }
            None => {
                process.name = Reading::Now(basics.name.clone());
                process.command = because(if basics.hidden { Absence::Hidden } else { Absence::NotReadYet });
                process.owner = match how {
                    Extent::Whole => basics.owner.clone(),
                    Extent::Brief => because(Absence::NotReadYet),
                };
            }
        }
    }
}
