//! The unix socket of a running server, by which programs on the same machine find it without a
//! port.

use std::{
    env, fs,
    io::{self, Read, Write},
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::geteuid;

use crate::listen::{ListenError, Listener};

const SOCKET: &str = "gpumon.sock";
/// The directory of root and of the system's service, which runs as a user of its own.
const SYSTEM: &str = "/run/gpumon";
/// The socket on which the system's service shares its readings with all users.
pub const SHARED: &str = "/run/gpumon/public.sock";

/// Returns the possible sockets of this user's server. A new one listens on the first.
pub fn paths() -> Vec<PathBuf> {
    paths_of(
        geteuid().as_raw(),
        env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    )
}

fn paths_of(uid: u32, runtime_dir: Option<PathBuf>) -> Vec<PathBuf> {
    if uid == 0 {
        return vec![Path::new(SYSTEM).join(SOCKET)];
    }
    // `su` keeps the variable, which then names another user's directory.
    let own = runtime_dir.filter(|folder| folder.is_absolute() && is_own_folder(folder, uid));
    let shared = PathBuf::from(format!("/tmp/gpumon-{uid}"));
    own.into_iter()
        .chain([shared])
        .map(|folder| folder.join(SOCKET))
        .collect()
}

/// Returns `true` if the directory of a socket belongs to this user, or, for root, to the system's
/// service. Anybody can create a socket in /tmp.
pub fn is_own(socket: &Path) -> bool {
    socket
        .parent()
        .is_some_and(|folder| is_trusted_folder(folder, geteuid().as_raw()))
}

/// Listens on the first of [`paths`], in a directory that only this user can write to.
///
/// # Errors
/// Returns [`ListenError::SocketInUse`] if another server of this user listens there, and another
/// error if the directory cannot be created or belongs to another user.
pub async fn listen() -> Result<Listener, ListenError> {
    let path = paths().swap_remove(0);
    if let Some(folder) = path.parent() {
        let address = || path.display().to_string();
        make_own_folder(folder).map_err(|cause| ListenError::Other {
            address: address(),
            cause,
        })?;
    }
    Listener::unix(&path).await
}

/// Creates the directory, or checks the owner of an existing one: in /tmp, anybody can have created
/// it.
fn make_own_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if is_trusted_folder(folder, geteuid().as_raw()) {
        return Ok(());
    }
    let folder = folder.display();
    Err(io::Error::other(format!(
        "{folder} is not a folder of this user's that nobody else may write to; remove it"
    )))
}

/// Returns `true` if only this user can write to the directory. For root, this includes the
/// directory of the system's service: only root can create directories in /run.
fn is_trusted_folder(folder: &Path, uid: u32) -> bool {
    is_own_folder(folder, uid) || (uid == 0 && folder == Path::new(SYSTEM))
}

fn is_own_folder(folder: &Path, uid: u32) -> bool {
    // Links are not followed, because they can belong to another user.
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

/// The response of a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// The initial capacity for a response in bytes, which is enough for a machine with several GPUs.
const ROOM: usize = 128 * 1024;

/// The maximum size of a response in bytes. It depends on the number of requested points.
const LONGEST: u64 = 256 << 20;

/// Sends a request, such as `GET /readyz`, and reads the response, without an async runtime.
/// HTTP/1.0 responses have no chunks, and end with the connection.
///
/// # Errors
/// Returns an error if the server does not respond in time, or not with HTTP.
pub fn send_request(
    mut stream: UnixStream,
    patience: Duration,
    request: &str,
    body: &str,
) -> io::Result<Answer> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // The request is written at once, so that the server does not have to wait for the rest.
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.0\r\nHost: localhost\r\nX-Gpumon: run\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::with_capacity(ROOM);
    stream.take(LONGEST).read_to_string(&mut answer)?;
    parse(&answer)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_the_users_own_folder_is_trusted() {
        let root = tempfile::tempdir().unwrap();
        let uid = geteuid().as_raw();
        let folder = root.path().join("own");
        make_own_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_own_folder(&folder).unwrap();
        assert!(!is_own_folder(&folder, uid + 1), "somebody else's");
        assert!(
            is_own(&folder.join(SOCKET)) && !is_own(Path::new("/tmp/gpumon.sock")),
            "everybody may write to /tmp"
        );
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(
            make_own_folder(&folder)
                .unwrap_err()
                .to_string()
                .contains("remove it")
        );
        let link = root.path().join("link");
        symlink(root.path(), &link).unwrap();
        assert!(make_own_folder(&link).is_err());
    }

    #[test]
    fn root_trusts_the_folder_of_the_systems_service_and_nobody_else_does() {
        assert!(
            is_trusted_folder(Path::new("/run/gpumon"), 0),
            "whoever owns it"
        );
        assert!(!is_trusted_folder(Path::new("/run/gpumon"), u32::MAX - 1));
        assert!(!is_trusted_folder(Path::new("/tmp/gpumon"), 0));
    }

    #[test]
    fn the_runtime_folder_comes_first_where_it_is_the_users_own() {
        let runtime = tempfile::tempdir().unwrap();
        fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let own = fs::metadata(runtime.path()).unwrap().uid();
        let shared = |uid: u32| PathBuf::from(format!("/tmp/gpumon-{uid}/gpumon.sock"));
        let of = |uid| paths_of(uid, Some(runtime.path().to_owned()));
        if own != 0 {
            assert_eq!(of(own), [runtime.path().join("gpumon.sock"), shared(own)]);
        }
        assert_eq!(of(own + 1), [shared(own + 1)]);
        assert_eq!(paths_of(7, Some("relative".into())), [shared(7)]);
        assert_eq!(of(0), [PathBuf::from("/run/gpumon/gpumon.sock")]);
    }

    #[test]
    fn answer_is_parsed() {
        let answer = parse("HTTP/1.0 403 Forbidden\r\ncontent-length: 3\r\n\r\nno\n").unwrap();
        assert_eq!(
            answer,
            Answer {
                status: 403,
                body: "no\n".to_owned()
            }
        );
        assert_eq!(parse("SSH-2.0-OpenSSH_9.7\r\n"), None);
    }
}
