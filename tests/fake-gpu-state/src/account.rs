//! The simulated memory of a device that one process has taken.

use std::{
    fs::{self, File},
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::entry::{AccountEntry, ENTRY_SUFFIX, list_holders};

/// The lock file, which a process holds while it checks and changes the budget.
const LOCK_FILE: &str = "lock";

/// The memory that a process has taken, within a budget that it may share with other processes.
#[derive(Debug)]
pub struct Account {
    own: AccountEntry,
    /// The shared folder, and the file in it that belongs to this process. `None` if the process
    /// shares nothing.
    shared: Option<(PathBuf, PathBuf)>,
}

impl Account {
    /// Opens an account in this folder, which is created if necessary. Without a folder, the
    /// account is not shared.
    ///
    /// # Panics
    /// Panics if the folder cannot be created, because a test without sharing would prove nothing.
    pub fn open(folder: Option<PathBuf>) -> Self {
        /// The number makes file names unique, because a test can open several accounts in one
        /// process.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let own = AccountEntry::new_for_this_process();
        let shared = folder.map(|folder| {
            fs::create_dir_all(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let name = format!(
                "{}-{}.{ENTRY_SUFFIX}",
                process::id(),
                OPENED.fetch_add(1, Relaxed)
            );
            let file = folder.join(name);
            (folder, file)
        });
        Self { own, shared }
    }

    /// Takes `bytes` of the memory of a device that has `total_bytes` in total. Returns `false` if
    /// less than `bytes` are free.
    pub fn take_memory(&mut self, device: &str, bytes: u64, total_bytes: u64) -> bool {
        let _lock = self.lock_budget();
        let is_there = bytes <= self.free_bytes_while_locked(device, total_bytes);
        if is_there {
            *self.own.held.entry(device.to_owned()).or_default() += bytes;
            self.write();
        }
        is_there
    }

    /// Gives back memory of a device.
    ///
    /// # Panics
    /// Panics if more is given back than was taken.
    pub fn give_back_memory(&mut self, device: &str, bytes: u64) {
        let _lock = self.lock_budget();
        let held = self.own.held.entry(device.to_owned()).or_default();
        *held = held
            .checked_sub(bytes)
            .expect("more memory was freed than allocated");
        self.write();
    }

    /// Returns the free memory of a device.
    pub fn free_bytes(&self, device: &str, total_bytes: u64) -> u64 {
        let _lock = self.lock_budget();
        self.free_bytes_while_locked(device, total_bytes)
    }

    fn free_bytes_while_locked(&self, device: &str, total_bytes: u64) -> u64 {
        let held = match &self.shared {
            Some((folder, _)) => list_holders(folder, device)
                .iter()
                .map(|holder| holder.bytes)
                .sum(),
            None => self.own.held.get(device).copied().unwrap_or(0),
        };
        total_bytes.saturating_sub(held)
    }

    /// Locks the budget. The lock is released when the file is dropped, or when the process ends.
    fn lock_budget(&self) -> Option<File> {
        let (folder, _) = self.shared.as_ref()?;
        let file = File::create(folder.join(LOCK_FILE)).expect("the folder can be written to");
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
    fn processes_sharing_gpu_never_exceed_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Account::open(Some(folder.path().to_owned()));
        let (mut one, mut other) = (open(), open());
        assert!(one.take_memory("GPU-a", 60, 100) && other.take_memory("GPU-a", 40, 100));
        assert!(!one.take_memory("GPU-a", 1, 100) && other.take_memory("GPU-b", 100, 100));
        one.give_back_memory("GPU-a", 10);
        assert_eq!(
            (one.free_bytes("GPU-a", 100), other.free_bytes("GPU-a", 100)),
            (10, 10)
        );
        drop(one);
        assert_eq!(other.free_bytes("GPU-a", 100), 60);
    }

    #[test]
    fn unshared_memory_accounts_are_independent() {
        let (mut one, other) = (Account::open(None), Account::open(None));
        assert!(one.take_memory("GPU-a", 60, 100));
        assert_eq!(
            (one.free_bytes("GPU-a", 100), other.free_bytes("GPU-a", 100)),
            (40, 100)
        );
    }
}
