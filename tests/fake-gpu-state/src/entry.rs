//! The file with the memory that one process has taken.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process,
};

use serde::{Deserialize, Serialize};

/// The extension of the files with the memory that processes have taken.
pub(crate) const ENTRY_SUFFIX: &str = "held";

/// The memory that one process has taken.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AccountEntry {
    pid: u32,
    /// The start time of the process, in the kernel's ticks. It distinguishes the process from
    /// earlier and later processes with the same PID.
    started: u64,
    /// The bytes taken, by the UUID of the device.
    pub(crate) held: BTreeMap<String, u64>,
}

/// A process that has taken memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The bytes that the process has taken.
    pub bytes: u64,
}

/// Returns the running processes that have taken memory of a device.
pub fn list_holders(folder: &Path, device: &str) -> Vec<Holder> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|file| AccountEntry::read(&file.ok()?.path()));
    let mut by_pid = BTreeMap::<u32, u64>::new();
    for entry in entries.filter(AccountEntry::is_alive) {
        *by_pid.entry(entry.pid).or_default() += entry.held.get(device).copied().unwrap_or(0);
    }
    by_pid
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(pid, bytes)| Holder { pid, bytes })
        .collect()
}

impl AccountEntry {
    pub(crate) fn new_for_this_process() -> Self {
        let pid = process::id();
        Self {
            pid,
            started: read_start_time(pid).unwrap_or(0),
            held: BTreeMap::new(),
        }
    }

    /// Reads an entry. Returns `None` for other files, and for files that have just been removed.
    fn read(path: &Path) -> Option<Self> {
        let is_entry = path
            .extension()
            .is_some_and(|extension| extension == ENTRY_SUFFIX);
        serde_json::from_str(&fs::read_to_string(path).ok().filter(|_| is_entry)?).ok()
    }

    /// Writes the file atomically, because other processes may read it at the same time.
    pub(crate) fn write(&self, file: &Path) {
        let text = serde_json::to_string(self).expect("numbers can be written");
        let part: PathBuf = file.with_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, file))
            .expect("the activity file must be writable");
    }

    fn is_alive(&self) -> bool {
        read_start_time(self.pid) == Some(self.started)
    }
}

/// Returns the start time of a process in the kernel's ticks, or `None` if it has ended.
pub(crate) fn read_start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program can contain anything, even parentheses. It ends at the last closing
    // parenthesis.
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
    fn memory_is_freed_after_process_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let held = BTreeMap::from([("GPU-a".to_owned(), 7)]);
        let entry = AccountEntry {
            pid: child.id(),
            started: read_start_time(child.id()).unwrap(),
            held,
        };
        entry.write(&folder.path().join(format!("x.{ENTRY_SUFFIX}")));
        let found = [Holder {
            pid: child.id(),
            bytes: 7,
        }];
        assert_eq!(list_holders(folder.path(), "GPU-a"), found);
        assert_eq!(list_holders(folder.path(), "GPU-b"), []);
        child.kill().unwrap();
        // The child becomes a zombie, because it has not been waited for.
        while read_start_time(child.id()).is_some() {}
        assert_eq!(list_holders(folder.path(), "GPU-a"), []);
        child.wait().unwrap();
        // This entry has another start time, as if another process had reused the PID.
        AccountEntry {
            started: 1,
            ..AccountEntry::new_for_this_process()
        }
        .write(&folder.path().join(format!("y.{ENTRY_SUFFIX}")));
        assert_eq!(list_holders(folder.path(), "GPU-a"), []);
    }
}
