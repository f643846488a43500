//! A process with all that it has started, and what these have.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gpumon_probe::model::Process;

use crate::process_stat::{ProcessStat, booted_ms};

/// More generations than there are.
const DEEPEST: usize = 64;

/// Knows which processes that hold a GPU belong to one tree. A process stays in it also when its parent has ended.
pub(crate) struct ProcessTree {
    root: u32,
    proc_root: PathBuf,
    booted_ms: Option<u64>,
    /// By PID and start, since PIDs are used again.
    known: HashMap<(u32, Option<u64>), bool>,
}

impl ProcessTree {
    pub(crate) fn new(root: u32) -> Self {
        Self::below(Path::new("/proc"), root)
    }

    fn below(proc_root: &Path, root: u32) -> Self {
        let booted_ms = booted_ms(proc_root);
        let started_ms = ProcessStat::read_since_boot(proc_root, root, booted_ms).ok().and_then(|stat| stat.started_ms);
        let known = HashMap::from([((root, started_ms), true)]);
        Self { root, proc_root: proc_root.to_owned(), booted_ms, known }
    }

    pub(crate) fn contains(&mut self, process: &Process) -> bool {
        let key = (process.pid, process.started_ms.value().copied());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let found = self.find(process.pid).or_else(|| self.as_told(process));
        if let Some(is_inside) = found {
            self.known.insert(key, is_inside);
        }
        found.unwrap_or(false)
    }

    /// By its ancestors, as they are now; `None` where the process cannot be seen.
    fn find(&self, pid: u32) -> Option<bool> {
        let mut pid = pid;
        for _ in 0..DEEPEST {
            let stat = ProcessStat::read_since_boot(&self.proc_root, pid, self.booted_ms).ok()?;
            let mut members = self.known.iter().filter(|(_, is_inside)| **is_inside);
            if members.any(|((known, started_ms), _)| *known == pid && stat.began_at(*started_ms)) {
                return Some(true);
            }
            pid = stat.parent;
            if pid <= 1 {
                break;
            }
        }
        Some(false)
    }

    /// By its ancestors, as whoever has taken the sample saw them.
    fn as_told(&self, process: &Process) -> Option<bool> {
        let owner = process.owner.value().filter(|owner| !owner.partial)?;
        Some(process.pid == self.root || owner.parents.iter().any(|parent| parent.pid == self.root))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::model::{Absence, Ancestor, Owner, Reading};

    use super::*;
    use crate::table::examples;

    fn process(pid: u32) -> Process {
        Process { started_ms: Reading::Now(1_000_000), ..examples::process(pid, "ana", 1.0, "python") }
    }

    #[test]
    fn a_tree_has_whatever_descends_from_its_root_and_keeps_what_its_parent_leaves_behind() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |pid: u32, parent: u32, ticks: u32| {
            let place = folder.path().join(pid.to_string());
            fs::create_dir_all(&place).unwrap();
            let stat = format!("{pid} (a) b) S {parent} {}{ticks} {}", "0 ".repeat(17), "0 ".repeat(22));
            fs::write(place.join("stat"), stat).unwrap();
        };
        let add = |pid, parent| begin(pid, parent, 0);
        fs::write(folder.path().join("stat"), "btime 1000\n").unwrap();
        for (pid, parent) in [(10, 1), (20, 10), (30, 20), (40, 1)] {
            add(pid, parent);
        }
        let mut tree = ProcessTree::below(folder.path(), 10);
        assert_eq!([10, 20, 30, 40].map(|pid| tree.contains(&process(pid))), [true, true, true, false]);
        add(30, 1);
        add(31, 30);
        assert_eq!([30, 31].map(|pid| tree.contains(&process(pid))), [true, true]);
        begin(30, 40, 1_000_000);
        begin(32, 30, 1_000_000);
        let started_ms = 1_000_000 + 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let later = |pid| Process { started_ms: Reading::Now(started_ms), ..process(pid) };
        assert_eq!([30, 32].map(|pid| tree.contains(&later(pid))), [false, false], "a PID that was used again");
    }

    #[test]
    fn of_a_process_that_cannot_be_seen_the_sample_tells_the_ancestors() {
        let mut tree = ProcessTree::below(Path::new("/nowhere"), 10);
        let mut child = process(20);
        child.owner = Reading::Absent(Absence::NotReadYet);
        assert!(!tree.contains(&child), "not known yet");
        let parents = vec![Ancestor { pid: 10, name: "bash".to_owned() }];
        child.owner = Reading::Now(Owner { parents, ..Owner::default() });
        assert!(tree.contains(&child));
    }
}
