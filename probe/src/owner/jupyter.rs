//! Detection of the notebook that a process belongs to.
//!
//! Every Jupyter kernel, regardless of its language, is started with the path of its connection
//! file, `kernel-<id>.json`, as an argument. Jupyter writes the notebook's path and the kernel's
//! name into that file.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::fd::{AsRawFd, OwnedFd},
    path::{Component, Path},
    thread,
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};
use serde::Deserialize;

use super::as_user::{self, User};
use crate::{
    bounded,
    model::{Absence, Notebook},
};

/// The fields that Jupyter adds to the connection file. They are missing if Jupyter did not start
/// the kernel.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConnectionFile {
    jupyter_session: String,
    kernel_name: String,
}

/// Returns the notebook of the kernel with these arguments, or `None` if the process is not a
/// kernel.
///
/// `read` reads the connection file. Its argument is the path below the process's root directory.
pub(super) fn read_notebook(
    pid: u32,
    arguments: &[String],
    read: impl FnOnce(&str) -> io::Result<Vec<u8>>,
) -> Option<Notebook> {
    let (path, kernel_id) = find_connection_file(arguments)?;
    let (connection, without): (ConnectionFile, _) = match read(path.trim_start_matches('/')) {
        Ok(bytes) => (
            serde_json::from_slice(&bytes).unwrap_or_default(),
            Absence::Unknown,
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (ConnectionFile::default(), Absence::Unknown)
        }
        Err(_) => (ConnectionFile::default(), Absence::NoPermission),
    };
    let reported = |text: String| (!text.is_empty()).then_some(text);
    Some(Notebook {
        kernel_id: super::clean_id(&kernel_id),
        kernel_name: reported(super::clean_name(&connection.kernel_name)),
        path: reported(super::clean_line(&connection.jupyter_session))
            .ok_or(without)
            .into(),
        kernel_pid: pid,
    })
}

/// Returns `true` if `arguments` are those of a Jupyter kernel.
pub(super) fn is_kernel(arguments: &[String]) -> bool {
    find_connection_file(arguments).is_some()
}

/// Returns the argument with the path of the connection file, and the kernel's ID.
fn find_connection_file(arguments: &[String]) -> Option<(&String, String)> {
    arguments
        .iter()
        .find_map(|argument| Some((argument, parse_kernel_id(argument)?)))
}

/// Returns the ID in `…/kernel-<id>.json`. An option such as `--connection-file=` may precede the
/// path.
fn parse_kernel_id(argument: &str) -> Option<String> {
    let file = argument.rsplit(['/', '=']).next()?;
    let id = file.strip_prefix("kernel-")?.strip_suffix(".json")?;
    let is_id = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then(|| id.to_owned())
}

// Safe opening of a file that a process names on its command line.
//
// The path is untrusted. It can lead to a pipe without a writer, to a device that acts when
// opened, to an endless device, or to a file that only root may read. The file is therefore opened
// below the process's own root directory with the rights of the process's user, must be a regular
// file, and is read only up to a limit.

/// The maximum number of bytes to read. Jupyter writes a few hundred bytes.
const MAX_BYTES: usize = 64 << 10;

/// Reads the file at `path` below `root`. Only root can open the root directory of another user's
/// process. If gpumon runs as root, `user` is the user with whose rights the file is read.
pub(super) fn read(root: &OwnedFd, path: &str, user: Option<User>) -> io::Result<Vec<u8>> {
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
        bounded::read_from(File::from(file), MAX_BYTES)
    };
    match user {
        // A separate thread is used, because while a thread acts as the user, the user can
        // permanently change the thread's priority.
        Some(user) => thread::scope(|scope| {
            let reading = scope.spawn(|| as_user::run_as_user(user, read));
            reading
                .join()
                .unwrap_or_else(|_| Err(ErrorKind::Other.into()))
        }),
        None => read(),
    }
}

/// The flags for finding a file. With `O_PATH`, no device is opened, and pipes do not block.
const FIND_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reading;

    fn read_missing(_: &str) -> io::Result<Vec<u8>> {
        Err(ErrorKind::NotFound.into())
    }

    fn split_arguments(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn kernel_is_recognized_by_connection_file() {
        for line in [
            "/usr/bin/python3 -m ipykernel_launcher -f /tmp/none/kernel-1b2c.json",
            "R --slave -e IRkernel::main() --args /tmp/none/kernel-1b2c.json",
            "julia -i --color=yes kernel.jl /tmp/none/kernel-1b2c.json",
            "xcpp --connection-file=/tmp/none/kernel-1b2c.json",
        ] {
            assert_eq!(
                read_notebook(7, &split_arguments(line), read_missing)
                    .unwrap()
                    .kernel_id,
                "1b2c",
                "{line}"
            );
        }
        for line in [
            "python3 train.py kernel-.json",
            "vi kernel-1b2c.json.bak",
            "python3",
        ] {
            assert_eq!(
                read_notebook(7, &split_arguments(line), read_missing),
                None,
                "{line}"
            );
        }
    }

    #[test]
    fn connection_file_has_notebook_and_kernel() {
        let read = |path: &str| {
            assert_eq!(path, "run/kernel-1b2c.json");
            Ok(br#"{"key":"secret","kernel_name":"python3","jupyter_session":"/home/ana/train.ipynb"}"#.to_vec())
        };
        let known = read_notebook(
            7,
            &split_arguments("python3 -f /run/kernel-1b2c.json"),
            read,
        )
        .unwrap();
        assert_eq!(known.path, Reading::Now("/home/ana/train.ipynb".to_owned()));
        assert_eq!(known.kernel_name.as_deref(), Some("python3"));
        assert_eq!(known.kernel_pid, 7);
    }
    #[test]
    fn missing_path_has_reason() {
        for (read, reason) in [
            (Err(ErrorKind::NotFound), Absence::Unknown),
            (Err(ErrorKind::PermissionDenied), Absence::NoPermission),
            (Err(ErrorKind::InvalidInput), Absence::NoPermission),
            (Ok("{"), Absence::Unknown),
            (
                Ok(r#"{"kernel_name":"python3","jupyter_session":""}"#),
                Absence::Unknown,
            ),
        ] {
            let read = |_: &str| {
                read.map(|text| text.as_bytes().to_vec())
                    .map_err(io::Error::from)
            };
            let known = read_notebook(
                7,
                &split_arguments("python3 -f /run/kernel-1b2c.json"),
                read,
            )
            .unwrap();
            assert_eq!(known.path, Reading::Absent(reason));
        }
    }
}

#[cfg(test)]
mod connection_file_tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        path::PathBuf,
        sync::mpsc,
        thread,
        time::Duration,
    };

    use rustix::fs::{mkfifoat, open};

    use super::*;

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
                tell.send((name, read(&open_folder(&root), name, None).ok()))
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
    fn path_cannot_leave_root() {
        let folder = Folder::new("out");
        fs::write(folder.0.join("secret"), "secret").unwrap();
        symlink("/secret", folder.0.join("run/absolute")).unwrap();
        symlink("../secret", folder.0.join("run/relative")).unwrap();
        let root = folder.0.join("run");
        for name in ["../secret", "absolute", "relative", "/../secret"] {
            let root = open_folder(&root);
            assert!(read(&root, name, None).is_err(), "{name}");
            let found = open_step_by_step(&root, Path::new(name));
            let is_file =
                found.is_ok_and(|place| fstat(&place).unwrap().st_mode & 0o170_000 == 0o100_000);
            assert!(!is_file, "{name} step by step");
        }
    }

    #[test]
    fn file_is_read_up_to_limit() {
        let folder = Folder::new("long");
        fs::write(folder.0.join("run/long"), vec![b'x'; 3 * MAX_BYTES]).unwrap();
        let root = open_folder(&folder.0);
        assert_eq!(read(&root, "run/long", None).unwrap().len(), MAX_BYTES);
        let place = open_step_by_step(&root, Path::new("/run/./long")).unwrap();
        assert_eq!(
            usize::try_from(fstat(&place).unwrap().st_size),
            Ok(3 * MAX_BYTES)
        );
    }

    #[test]
    fn root_reads_with_the_rights_of_the_process() {
        if !as_user::can_act_as_user() {
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
                read(&open_folder(&folder.0), "run/file", user).is_ok(),
                may_read,
                "{mode:o}"
            );
        }
        assert!(read(&open_folder(&folder.0), "run/file", None).is_ok());
    }
}
