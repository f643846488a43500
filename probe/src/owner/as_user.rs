//! Execution of actions with another user's rights, for a process that runs as root.

use std::{io, process};

use rustix::{
    process::{Gid, Uid, getgroups},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Runs `action` on this thread with the rights of `user`, without supplementary groups.
///
/// Only the effective IDs are changed. If the real or saved user ID were also changed, the user
/// could send signals to the thread, and a signal that ends a thread ends the whole process.
pub(super) fn run_as_user<T>(user: User, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let groups = getgroups()?;
    set_thread_groups(&[])?;
    // The guard is created only after the groups have been set. If setting them is refused, as in
    // containers without the capability, there is nothing to restore.
    let _restore = RestoreRights(&groups);
    set_thread_res_gid(None, Gid::from_raw(user.gid), None)?;
    set_thread_res_uid(None, Uid::from_raw(user.uid), None)?;
    action()
}

struct RestoreRights<'a>(&'a [Gid]);

impl Drop for RestoreRights<'_> {
    fn drop(&mut self) {
        let restored = set_thread_res_uid(None, Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, Gid::ROOT, None))
            .and_then(|()| set_thread_groups(self.0));
        // If the rights cannot be restored, the process is aborted, because this thread would
        // continue with the wrong rights.
        if restored.is_err() {
            process::abort();
        }
    }
}

/// Returns `true` if the tests run as root and may act as another user. Some containers forbid
/// this.
#[cfg(test)]
pub(super) fn can_act_as_user() -> bool {
    let is_possible = rustix::process::geteuid().is_root()
        && run_as_user(
            User {
                uid: 65_533,
                gid: 65_533,
            },
            || Ok(()),
        )
        .is_ok();
    if !is_possible {
        eprintln!("skipped: only root can act as another user");
    }
    is_possible
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    #[test]
    fn only_effective_ids_of_thread_change() {
        if !can_act_as_user() {
            return;
        }
        let ids = || {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = |key: &str| {
                status
                    .lines()
                    .find_map(|line| line.strip_prefix(key))
                    .unwrap()
                    .trim()
                    .to_owned()
            };
            (line("Uid:"), line("Gid:"), line("Groups:"), line("CapEff:"))
        };
        let before = ids();
        let (uids, gids, groups, capabilities) = run_as_user(
            User {
                uid: 65_533,
                gid: 65_532,
            },
            || Ok(ids()),
        )
        .unwrap();
        assert_eq!(
            (uids.as_str(), gids.as_str()),
            ("0\t65533\t0\t65533", "0\t65532\t0\t65532")
        );
        assert_eq!((groups.as_str(), capabilities.trim_matches('0')), ("", ""));
        assert_eq!(ids(), before);
        let elsewhere = run_as_user(
            User {
                uid: 65_533,
                gid: 65_532,
            },
            || Ok(thread::spawn(read_process_euid).join().unwrap()),
        );
        assert_eq!(elsewhere.unwrap(), "0", "the process stays root's");
    }

    fn read_process_euid() -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", process::id())).unwrap();
        let uids = status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .unwrap();
        uids.split_whitespace().nth(1).unwrap().to_owned()
    }
}
