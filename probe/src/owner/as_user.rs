//! Actions of root with the rights of another user.

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

/// Runs `action` on this thread with the rights of `user`, and without supplementary groups.
///
/// Only the effective IDs change. If the real or saved user ID changed, the user could send signals
/// to the thread, and a signal that ends a thread ends its process.
pub(super) fn run<T>(user: User, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let groups = getgroups()?;
    set_thread_groups(&[])?;
    // The guard is created after the first call, because if that is refused, as in containers
    // without the capability, there is nothing to restore.
    let _restore = Restore(&groups);
    set_thread_res_gid(None, Gid::from_raw(user.gid), None)?;
    set_thread_res_uid(None, Uid::from_raw(user.uid), None)?;
    action()
}

struct Restore<'a>(&'a [Gid]);

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        let restored = set_thread_res_uid(None, Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, Gid::ROOT, None))
            .and_then(|()| set_thread_groups(self.0));
        // The process is aborted, because this thread would continue with the wrong rights.
        if restored.is_err() {
            process::abort();
        }
    }
}

/// Returns `true` if the tests run as root and may act as another user, which some containers
/// forbid.
#[cfg(test)]
pub(super) fn is_possible() -> bool {
    let is_possible = rustix::process::geteuid().is_root()
        && run(
            User {
                uid: 65_533,
                gid: 65_533,
            },
            || Ok(()),
        )
        .is_ok();
    if !is_possible {
        eprintln!("skipped: only root can act as somebody else");
    }
    is_possible
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    #[test]
    fn only_the_effective_ids_of_one_thread_change_and_only_for_a_while() {
        if !is_possible() {
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
        let (uids, gids, groups, capabilities) = run(
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
        let elsewhere = run(
            User {
                uid: 65_533,
                gid: 65_532,
            },
            || Ok(thread::spawn(geteuid_of_process).join().unwrap()),
        );
        assert_eq!(elsewhere.unwrap(), "0", "the process stays root's");
    }

    fn geteuid_of_process() -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", process::id())).unwrap();
        let uids = status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .unwrap();
        uids.split_whitespace().nth(1).unwrap().to_owned()
    }
}
