//! What one process holds, in a file of its own.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process,
};

use serde::{Deserialize, Serialize};

/// What the files of processes end in.
pub(crate) const SUFFIX: &str = "held";

/// What one process holds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pid: u32,
    /// When it started, in the kernel's ticks, since numbers of processes come again.
    started: u64,
    /// By the device's UUID.
    pub(crate) held: BTreeMap<String, u64>,
}

/// A process that holds memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// What it holds.
    pub bytes: u64,
}

/// Who holds memory of a device; processes that are gone hold nothing.
pub fn holders(folder: &Path, device: &str) -> Vec<Holder> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|file| Entry::read(&file.ok()?.path()));
    let mut by_pid = BTreeMap::<u32, u64>::new();
    for entry in entries.filter(Entry::is_alive) {
        *by_pid.entry(entry.pid).or_default() += entry.held.get(device).copied().unwrap_or(0);
    }
    by_pid
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(pid, bytes)| Holder { pid, bytes })
        .collect()
}

impl Entry {
    pub(crate) fn of_this_process() -> Self {
        let pid = process::id();
        Self {
            pid,
            started: started(pid).unwrap_or(0),
            held: BTreeMap::new(),
        }
    }

    /// `None` for any other file, and for one that has just gone.
    fn read(path: &Path) -> Option<Self> {
        let is_entry = path
            .extension()
            .is_some_and(|extension| extension == SUFFIX);
        serde_json::from_str(&fs::read_to_string(path).ok().filter(|_| is_entry)?).ok()
    }

    /// Whole or not at all: another process may be reading it.
    pub(crate) fn write(&self, file: &Path) {
        let text = serde_json::to_string(self).expect("numbers can be written");
        let part: PathBuf = file.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, file))
            .expect("the activity can be written");
    }

    fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// When a process started; `None` for one that is gone, or has ended and is only waited for.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, which may hold anything, ends with the last bracket.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    fields
        .nth(18)?
        .parse()
        .ok()
        .filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_process_held_is_free_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let held = BTreeMap::from([("GPU-a".to_owned(), 7)]);
        let entry = Entry {
            pid: child.id(),
            started: started(child.id()).unwrap(),
            held,
        };
        entry.write(&folder.path().join(format!("x.{SUFFIX}")));
        let found = [Holder {
            pid: child.id(),
            bytes: 7,
        }];
        assert_eq!(holders(folder.path(), "GPU-a"), found);
        assert_eq!(holders(folder.path(), "GPU-b"), []);
        child.kill().unwrap();
        // Nobody has asked yet how it ended, so that its number is still there.
        while started(child.id()).is_some() {}
        assert_eq!(holders(folder.path(), "GPU-a"), []);
        child.wait().unwrap();
        // Another process has its number by now.
        Entry {
            started: 1,
            ..Entry::of_this_process()
        }
        .write(&folder.path().join(format!("y.{SUFFIX}")));
        assert_eq!(holders(folder.path(), "GPU-a"), []);
    }
}
