//! The Unix sockets of running servers: the one through which a user's programs find their server
//! without a port, and the one that all users of the machine share.

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

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::{IntoResponse, Response},
};
use rustix::process::geteuid;

use crate::listen::{ListenError, Listener};

const SOCKET_NAME: &str = "gpumon.sock";
/// The socket directory for root and for the system's service, which runs as a separate user.
const SYSTEM_FOLDER: &str = "/run/gpumon";
/// The socket through which the system's service shares its readings with all users.
pub const SHARED_SOCKET: &str = "/run/gpumon/public.sock";

/// Returns the possible paths of this user's socket. A new server listens on the first path.
pub fn socket_paths() -> Vec<PathBuf> {
    socket_paths_of_user(
        geteuid().as_raw(),
        env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    )
}

fn socket_paths_of_user(uid: u32, runtime_dir: Option<PathBuf>) -> Vec<PathBuf> {
    if uid == 0 {
        return vec![Path::new(SYSTEM_FOLDER).join(SOCKET_NAME)];
    }
    // `su` keeps `XDG_RUNTIME_DIR` unchanged. The variable then names another user's directory.
    let own = runtime_dir.filter(|folder| folder.is_absolute() && is_folder_owned_by(folder, uid));
    let shared = PathBuf::from(format!("/tmp/gpumon-{uid}"));
    own.into_iter()
        .chain([shared])
        .map(|folder| folder.join(SOCKET_NAME))
        .collect()
}

/// Returns `true` if the socket's directory belongs to this user or, for root, to the system's
/// service. Anybody can create a socket in `/tmp`.
pub fn is_socket_of_current_user(socket: &Path) -> bool {
    socket
        .parent()
        .is_some_and(|folder| is_trusted_folder(folder, geteuid().as_raw()))
}

/// Listens on the first of [`socket_paths`]. Only this user can write to its directory.
///
/// # Errors
/// Returns [`ListenError::SocketInUse`] if another server of this user is listening there, and
/// another error if the directory cannot be created or belongs to another user.
pub async fn listen_on_user_socket() -> Result<Listener, ListenError> {
    let path = socket_paths().swap_remove(0);
    if let Some(folder) = path.parent() {
        make_private_folder(folder).map_err(|cause| ListenError::Other {
            address: path.display().to_string(),
            cause,
        })?;
    }
    Listener::open_unix(&path).await
}

/// Creates the directory. If it exists, checks its owner, because anybody could have created a
/// directory in `/tmp`.
fn make_private_folder(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    if is_trusted_folder(folder, geteuid().as_raw()) {
        return Ok(());
    }
    let folder = folder.display();
    Err(io::Error::other(format!(
        "{folder} is not a folder that belongs to this user, or other users can write to it; \
         remove it"
    )))
}

/// Returns `true` if only this user can write to the directory. For root, the directory of the
/// system's service is also trusted, because only root can create directories in `/run`.
fn is_trusted_folder(folder: &Path, uid: u32) -> bool {
    is_folder_owned_by(folder, uid) || (uid == 0 && folder == Path::new(SYSTEM_FOLDER))
}

fn is_folder_owned_by(folder: &Path, uid: u32) -> bool {
    // Symbolic links are not followed, because they can belong to another user.
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

/// A server's response to a local request.
#[derive(Debug, PartialEq, Eq)]
pub struct LocalResponse {
    pub status: u16,
    pub body: String,
}

/// The initial buffer capacity for a response in bytes, enough for a machine with several GPUs.
const RESPONSE_CAPACITY: usize = 128 * 1024;

/// The maximum size of a response in bytes. Long histories with many points are the largest
/// responses.
const MAX_RESPONSE_BYTES: u64 = 256 << 20;

/// Sends a request line, such as `GET /readyz`, and `body`, and reads the response, without an
/// async runtime. HTTP/1.0 is used, because its responses are not chunked and end with the
/// connection.
///
/// # Errors
/// Returns an error if the server does not respond in time, or if the response is not HTTP.
pub fn send_request(
    mut stream: UnixStream,
    patience: Duration,
    request: &str,
    body: &str,
) -> io::Result<LocalResponse> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // Head and body are written together, so that the server does not have to wait for the rest.
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.0\r\nHost: localhost\r\nX-Gpumon: run\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::with_capacity(RESPONSE_CAPACITY);
    stream
        .take(MAX_RESPONSE_BYTES)
        .read_to_string(&mut answer)?;
    parse_response(&answer)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the response is not HTTP"))
}

fn parse_response(answer: &str) -> Option<LocalResponse> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(LocalResponse {
        status,
        body: body.to_owned(),
    })
}

/// Refuses all requests that change something. It is used on the socket that all users of the
/// machine share, and applies even to clients that may make changes through another socket.
pub(crate) async fn refuse_changes(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let message = "this socket is shared by all users and read-only: use the server's control \
                   socket, as root\n";
    (StatusCode::FORBIDDEN, message).into_response()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_folder_of_user_is_trusted() {
        let root = tempfile::tempdir().unwrap();
        let uid = geteuid().as_raw();
        let folder = root.path().join("own");
        make_private_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_private_folder(&folder).unwrap();
        assert!(!is_folder_owned_by(&folder, uid + 1), "somebody else's");
        assert!(
            is_socket_of_current_user(&folder.join(SOCKET_NAME))
                && !is_socket_of_current_user(Path::new("/tmp/gpumon.sock")),
            "everybody may write to /tmp"
        );
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(
            make_private_folder(&folder)
                .unwrap_err()
                .to_string()
                .contains("remove it")
        );
        let link = root.path().join("link");
        symlink(root.path(), &link).unwrap();
        assert!(make_private_folder(&link).is_err());
    }

    #[test]
    fn only_root_trusts_folder_of_system_service() {
        assert!(
            is_trusted_folder(Path::new("/run/gpumon"), 0),
            "whoever owns it"
        );
        assert!(!is_trusted_folder(Path::new("/run/gpumon"), u32::MAX - 1));
        assert!(!is_trusted_folder(Path::new("/tmp/gpumon"), 0));
    }

    #[test]
    fn runtime_folder_of_user_comes_first() {
        let runtime = tempfile::tempdir().unwrap();
        fs::set_permissions(runtime.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let own = fs::metadata(runtime.path()).unwrap().uid();
        let shared = |uid: u32| PathBuf::from(format!("/tmp/gpumon-{uid}/gpumon.sock"));
        let of = |uid| socket_paths_of_user(uid, Some(runtime.path().to_owned()));
        if own != 0 {
            assert_eq!(of(own), [runtime.path().join("gpumon.sock"), shared(own)]);
        }
        assert_eq!(of(own + 1), [shared(own + 1)]);
        assert_eq!(
            socket_paths_of_user(7, Some("relative".into())),
            [shared(7)]
        );
        assert_eq!(of(0), [PathBuf::from("/run/gpumon/gpumon.sock")]);
    }

    #[test]
    fn http_response_of_local_socket_is_parsed() {
        let answer =
            parse_response("HTTP/1.0 403 Forbidden\r\ncontent-length: 3\r\n\r\nno\n").unwrap();
        assert_eq!(
            answer,
            LocalResponse {
                status: 403,
                body: "no\n".to_owned()
            }
        );
        assert_eq!(parse_response("SSH-2.0-OpenSSH_9.7\r\n"), None);
    }
}
