//! What one process holds.

use std::{
    fs::{self, File},
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::entry::{Entry, SUFFIX, holders};

/// Taken while the budget is looked at and changed, by one process at a time.
const LOCK: &str = "lock";

/// What one process holds, within a budget that it may share.
#[derive(Debug)]
pub struct Account {
    own: Entry,
    /// The folder, and the file in it; `None` for a process that shares with nobody.
    shared: Option<(PathBuf, PathBuf)>,
}

impl Account {
    /// An account in this folder, which is made where it is not there; one for itself without a
    /// folder.
    ///
    /// # Panics
    /// Where the folder cannot be made: a test that shares nothing tests nothing.
    pub fn open(folder: Option<PathBuf>) -> Self {
        /// A process may have several, as a test has that is its own neighbor.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let own = Entry::of_this_process();
        let shared = folder.map(|folder| {
            fs::create_dir_all(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let name = format!(
                "{}-{}.{SUFFIX}",
                process::id(),
                OPENED.fetch_add(1, Relaxed)
            );
            let file = folder.join(name);
            (folder, file)
        });
        Self { own, shared }
    }

    /// Takes so much of a device that has `total_bytes`, where there is so much that nobody holds.
    pub fn take(&mut self, device: &str, bytes: u64, total_bytes: u64) -> bool {
        let _lock = self.lock();
        let is_there = bytes <= self.unheld(device, total_bytes);
        if is_there {
            *self.own.held.entry(device.to_owned()).or_default() += bytes;
            self.write();
        }
        is_there
    }

    /// Gives so much of it back.
    ///
    /// # Panics
    /// Where it is more than was taken.
    pub fn give_back(&mut self, device: &str, bytes: u64) {
        let _lock = self.lock();
        let held = self.own.held.entry(device.to_owned()).or_default();
        *held = held
            .checked_sub(bytes)
            .expect("nobody gives back more than was taken");
        self.write();
    }

    /// What nobody holds.
    pub fn free_bytes(&self, device: &str, total_bytes: u64) -> u64 {
        let _lock = self.lock();
        self.unheld(device, total_bytes)
    }

    fn unheld(&self, device: &str, total_bytes: u64) -> u64 {
        let held = match &self.shared {
            Some((folder, _)) => holders(folder, device)
                .iter()
                .map(|holder| holder.bytes)
                .sum(),
            None => self.own.held.get(device).copied().unwrap_or(0),
        };
        total_bytes.saturating_sub(held)
    }

    /// It is given back when it is dropped, or the process ends.
    fn lock(&self) -> Option<File> {
        let (folder, _) = self.shared.as_ref()?;
        let file = File::create(folder.join(LOCK)).expect("the folder can be written to");
        file.lock().expect("the activity file can be locked");
        Some(file)
    }

    fn write(&self) {
        if let Some((_, file)) = &self.shared {
            self.own.write(file);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some((_, file)) = &self.shared {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shared_and_never_exceeded() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Account::open(Some(folder.path().to_owned()));
        let (mut one, mut other) = (open(), open());
        assert!(one.take("GPU-a", 60, 100) && other.take("GPU-a", 40, 100));
        assert!(!one.take("GPU-a", 1, 100) && other.take("GPU-b", 100, 100));
        one.give_back("GPU-a", 10);
        assert_eq!(
            (one.free_bytes("GPU-a", 100), other.free_bytes("GPU-a", 100)),
            (10, 10)
        );
        drop(one);
        assert_eq!(other.free_bytes("GPU-a", 100), 60);
    }

    #[test]
    fn who_shares_with_nobody_is_alone() {
        let (mut one, other) = (Account::open(None), Account::open(None));
        assert!(one.take("GPU-a", 60, 100));
        assert_eq!(
            (one.free_bytes("GPU-a", 100), other.free_bytes("GPU-a", 100)),
            (40, 100)
        );
    }
}
