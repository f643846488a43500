//! Reading of files that a process names on its command line, with the rights of the process's
//! user.
//!
//! The path is untrusted. It can lead to a pipe without a writer, to a device that acts when
//! opened, to an endless device, or to a file that only root may read. The file is therefore opened
//! below the process's own root directory with the rights of the process's user, must be a regular
//! file, and is read only up to a limit.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path},
    process, thread,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
    process::{Gid, Uid, getgroups},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};

use crate::bounded;

/// The maximum number of bytes to read. Jupyter writes a few hundred bytes.
const MAX_FILE_BYTES: usize = 64 << 10;

/// The flags for finding a file. `O_PATH` only locates the file, so finding a device does not open
/// it, and finding a pipe does not block.
const FIND_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Reads the file at `path` below `root`. Only root can open the root directory of another user's
/// process. If gpumon runs as root, `user` is the user with whose rights the file is read.
pub(super) fn read_untrusted_file(
    root: &OwnedFd,
    path: &str,
    user: Option<User>,
) -> io::Result<Vec<u8>> {
    let read = || {
        let place = open_path(root, Path::new(path))?;
        if FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::RegularFile {
            return Err(ErrorKind::InvalidInput.into());
        }
        // The file is opened through the checked file descriptor, because another file may now be
        // at the path.
        let file = openat(
            CWD,
            format!("/proc/self/fd/{}", place.as_raw_fd()),
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        bounded::read_from(File::from(file), MAX_FILE_BYTES)
    };
    match user {
        // A separate thread reads the file with the user's rights. While a thread has these rights,
        // the user can change its priority, and the change would be permanent.
        Some(user) => thread::scope(|scope| {
            let reading = scope.spawn(|| run_as_user(user, read));
            reading
                .join()
                .unwrap_or_else(|_| Err(ErrorKind::Other.into()))
        }),
        None => read(),
    }
}

fn open_path(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match openat2(root, path, FIND_FLAGS, Mode::empty(), resolve) {
        // `openat2` does not exist before Linux 5.6, and is forbidden in some sandboxes.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(root, path),
        found => Ok(found?),
    }
}

/// Opens a path component by component, without following links or going up to parent directories.
fn open_step_by_step(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let mut place = root.try_clone()?;
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => place = openat(&place, name, FIND_FLAGS, Mode::empty())?,
            Component::ParentDir | Component::Prefix(_) => {
                return Err(ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(place)
}

/// Runs `action` on this thread with the rights of `user`, without supplementary groups.
///
/// Only the effective IDs are changed. If the real or saved user ID were also changed, the user
/// could send signals to the thread, and a signal that ends a thread ends the whole process.
fn run_as_user<T>(user: User, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns `true` if the tests run as root and may act as another user, which some containers
    /// forbid.
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

    #[test]
    fn acting_as_user_changes_only_thread_effective_ids() {
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

#[cfg(test)]
mod file_tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        path::PathBuf,
        sync::mpsc,
        time::Duration,
    };

    use rustix::fs::{mkfifoat, open};

    use super::{tests::can_act_as_user, *};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir()
                .join(format!("gpumon-connection-{}-{name}", std::process::id()));
            fs::create_dir_all(root.join("run")).unwrap();
            Self(root)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn open_folder(root: &Path) -> OwnedFd {
        open(root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn only_regular_file_is_read() {
        let folder = Folder::new("kinds");
        let root = folder.0.clone();
        mkfifoat(CWD, root.join("run/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        symlink("/dev/zero", root.join("run/device")).unwrap();
        symlink("file", root.join("run/link")).unwrap();
        fs::write(root.join("run/file"), "{}").unwrap();
        let (tell, reported) = mpsc::channel();
        thread::spawn(move || {
            for name in [
                "run/pipe",
                "run/device",
                "run/link",
                "run",
                "run/none",
                "/run/file",
                "run/file",
            ] {
                tell.send((
                    name,
                    read_untrusted_file(&open_folder(&root), name, None).ok(),
                ))
                .unwrap();
            }
        });
        while let Ok((name, bytes)) = reported.recv_timeout(Duration::from_secs(20)) {
            assert_eq!(
                bytes,
                name.ends_with("/file").then(|| b"{}".to_vec()),
                "{name}"
            );
            if name == "run/file" {
                return;
            }
        }
        panic!("it hangs");
    }

    #[test]
    fn untrusted_path_cannot_leave_process_root() {
        let folder = Folder::new("out");
        fs::write(folder.0.join("secret"), "secret").unwrap();
        symlink("/secret", folder.0.join("run/absolute")).unwrap();
        symlink("../secret", folder.0.join("run/relative")).unwrap();
        let root = folder.0.join("run");
        for name in ["../secret", "absolute", "relative", "/../secret"] {
            let root = open_folder(&root);
            assert!(read_untrusted_file(&root, name, None).is_err(), "{name}");
            let found = open_step_by_step(&root, Path::new(name));
            let is_file =
                found.is_ok_and(|place| fstat(&place).unwrap().st_mode & 0o170_000 == 0o100_000);
            assert!(!is_file, "{name} step by step");
        }
    }

    #[test]
    fn file_is_read_up_to_limit() {
        let folder = Folder::new("long");
        fs::write(folder.0.join("run/long"), vec![b'x'; 3 * MAX_FILE_BYTES]).unwrap();
        let root = open_folder(&folder.0);
        assert_eq!(
            read_untrusted_file(&root, "run/long", None).unwrap().len(),
            MAX_FILE_BYTES
        );
        let place = open_step_by_step(&root, Path::new("/run/./long")).unwrap();
        assert_eq!(
            usize::try_from(fstat(&place).unwrap().st_size),
            Ok(3 * MAX_FILE_BYTES)
        );
    }

    #[test]
    fn root_reads_with_the_rights_of_the_process() {
        if !can_act_as_user() {
            return;
        }
        let folder = Folder::new("rights");
        let file = folder.0.join("run/file");
        fs::write(&file, "root's").unwrap();
        let user = Some(User {
            uid: 65_533,
            gid: 65_533,
        });
        for (mode, may_read) in [(0o600, false), (0o604, true)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                read_untrusted_file(&open_folder(&folder.0), "run/file", user).is_ok(),
                may_read,
                "{mode:o}"
            );
        }
        assert!(read_untrusted_file(&open_folder(&folder.0), "run/file", None).is_ok());
    }
}
