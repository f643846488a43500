//! Listeners for clients: TCP ports, Unix sockets, and connections within the same process.

use std::{
    fs::{File, Permissions},
    future::pending,
    io,
    net::SocketAddr,
    os::{
        fd::AsRawFd,
        unix::{
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
            net,
        },
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, fchmod, open};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpSocket, UnixListener, UnixSocket, UnixStream},
    sync::{Mutex, mpsc},
};
use tokio_util::either::Either;

use crate::{
    auth::AccessPolicy,
    connections::Socket,
    guard::Access,
    peer::{self, Peer},
};

/// The maximum number of connections that are waiting to be accepted. The system's limit may be
/// lower.
const BACKLOG: u32 = 4096;

/// A listener for clients.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener, PortPurpose),
    /// A Unix socket. Its file is removed when the listener is dropped.
    Unix(UnixListener, SocketFile),
    /// Connections within the same process, opened by a [`Connector`].
    Within(Mutex<mpsc::UnboundedReceiver<net::UnixStream>>),
}

/// A connector to a server in the same process. Nobody else can reach the server, because there is
/// neither a port nor a file.
#[derive(Debug, Clone)]
pub struct Connector(mpsc::UnboundedSender<net::UnixStream>);

impl Connector {
    /// Opens a connection to the server.
    ///
    /// # Errors
    /// Returns an error if the server has ended, or if the system has no free file descriptor.
    pub fn connect(&self) -> io::Result<net::UnixStream> {
        let (near, far) = net::UnixStream::pair()?;
        far.set_nonblocking(true)?;
        self.0
            .send(far)
            .map_err(|_| io::Error::other("the server has ended"))?;
        Ok(near)
    }
}

/// The endpoints that a port serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortPurpose {
    /// All of the server's endpoints.
    Everything,
    /// The metrics, and the checks of whether the server is alive and ready.
    Metrics,
}

impl PortPurpose {
    fn option_name(self) -> &'static str {
        match self {
            Self::Everything => "--listen",
            Self::Metrics => "--metrics-listen",
        }
    }
}

/// The reason why a listener cannot be opened.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Other machines could reach the address without TLS or without signing in.
    #[error(
        "cannot listen on {address}: other machines could connect, and {}; or listen on 127.0.0.1 \
         and connect through ssh -L 9123:127.0.0.1:9123",
        describe_missing_protection(*has_tls, *asks)
    )]
    Unprotected {
        address: SocketAddr,
        /// Whether connections to the address use TLS.
        has_tls: bool,
        /// Whether clients have to sign in.
        asks: bool,
    },
    /// Another program is listening on the port.
    #[error(
        "cannot listen on {0}: the port is in use; choose another with {1}, or stop the program \
         that uses it"
    )]
    PortInUse(SocketAddr, &'static str),
    #[error(
        "cannot listen on {0}: another server listens on this socket; stop it, or choose another \
         path"
    )]
    SocketInUse(PathBuf),
    /// The path is an existing file that is not a socket.
    #[error(
        "cannot listen on {0}: the path exists and is not a socket; choose another path, or \
         remove it"
    )]
    NotASocket(PathBuf),
    /// Any other error from the system.
    #[error("cannot listen on {address}: {cause}{}", suggest_remedy(cause))]
    Other {
        /// The address or path that cannot be used.
        address: String,
        /// The system's error.
        cause: io::Error,
    },
}

fn describe_missing_protection(has_tls: bool, asks: bool) -> &'static str {
    let tls = "connections are not encrypted: set a certificate in a web configuration \
               (--web-config FILE)";
    let identity = "no sign-in is required: set tokens (--token-file FILE), or users or client \
                    certificates in the web configuration";
    match (has_tls, asks) {
        (false, false) => {
            "connections are not encrypted and no sign-in is required: set a certificate in a web \
             configuration (--web-config FILE) and tokens (--token-file FILE)"
        }
        (false, true) => tls,
        _ => identity,
    }
}

fn suggest_remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => {
            "; choose a port of 1024 or more, or a folder that you may write to"
        }
        io::ErrorKind::NotFound => "; create the socket's folder first",
        io::ErrorKind::InvalidInput => "; choose a shorter path for the socket",
        _ => "",
    }
}

impl Listener {
    /// Listens on a port. This must be called within an async runtime. Port 0 selects a free port.
    /// Addresses other than loopback require TLS and signing in.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message contains the remedy.
    pub fn open_tcp(
        address: SocketAddr,
        purpose: PortPurpose,
        policy: &AccessPolicy,
    ) -> Result<Self, ListenError> {
        peer::detect_lookup_method();
        let (has_tls, asks) = (policy.has_tls(), policy.requires_sign_in());
        if !(address.ip().to_canonical().is_loopback() || (has_tls && asks)) {
            return Err(ListenError::Unprotected {
                address,
                has_tls,
                asks,
            });
        }
        bind_tcp(address)
            .map(|listener| Self::Tcp(listener, purpose))
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::AddrInUse => ListenError::PortInUse(address, purpose.option_name()),
                _ => ListenError::Other {
                    address: address.to_string(),
                    cause,
                },
            })
    }

    /// Listens on a Unix socket that only this user can open. If the path is the socket of a server
    /// that has ended, the socket is replaced.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message contains the remedy.
    pub async fn open_unix(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, false).await
    }

    /// Listens on a Unix socket that all users of this machine can open. Clients can only read
    /// through it.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message contains the remedy.
    pub async fn open_shared_unix(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, true).await
    }

    /// Returns a listener for connections within the same process, and the connector that opens
    /// them.
    pub fn open_in_process() -> (Self, Connector) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self::Within(Mutex::new(receiver)), Connector(sender))
    }

    async fn bind_unix(path: &Path, is_shared: bool) -> Result<Self, ListenError> {
        let other = |cause| ListenError::Other {
            address: path.display().to_string(),
            cause,
        };
        if let Ok(existing) = std::fs::symlink_metadata(path) {
            if !existing.file_type().is_socket() {
                return Err(ListenError::NotASocket(path.to_owned()));
            }
            match UnixStream::connect(path).await {
                // The server that created this socket is no longer listening.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(other)?;
                }
                // A server is listening on this socket, even if this user may not connect to it.
                Ok(_) | Err(_) => return Err(ListenError::SocketInUse(path.to_owned())),
            }
        }
        let socket = UnixSocket::new_stream().map_err(other)?;
        // When the socket is bound, its file gets the socket's mode. Setting the mode first ensures
        // that other users can never open the file.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|error| other(error.into()))?;
        socket.bind(path).map_err(other)?;
        let file = SocketFile::new(path, is_shared).map_err(other)?;
        if is_shared {
            file.allow_all_users().map_err(other)?;
        }
        Ok(Self::Unix(socket.listen(BACKLOG).map_err(other)?, file))
    }

    /// Returns `true` for a Unix socket that all users of this machine can open. Clients of such a
    /// socket can only read.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Unix(_, socket) if socket.is_shared)
    }

    /// Returns the listener's URL or path.
    pub fn display_address(&self, policy: &AccessPolicy) -> String {
        let scheme = if policy.has_tls() { "https" } else { "http" };
        match self {
            Self::Tcp(listener, _) => listener.local_addr().map_or_else(
                |_| "?".to_owned(),
                |address| format!("{scheme}://{address}/"),
            ),
            Self::Unix(_, socket) => socket.path.display().to_string(),
            Self::Within(_) => "this program".to_owned(),
        }
    }

    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Tcp(..) => Access::Port,
            Self::Unix(..) | Self::Within(_) => Access::Socket,
        }
    }

    pub(crate) fn purpose(&self) -> PortPurpose {
        match self {
            Self::Tcp(_, purpose) => *purpose,
            Self::Unix(..) | Self::Within(_) => PortPurpose::Everything,
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener, _) => {
                let (socket, client) = listener.accept().await?;
                // A frame must not be delayed until the previous one is acknowledged.
                let _ = socket.set_nodelay(true);
                let peer = Peer::from_tcp(client, socket.local_addr().ok());
                Ok((Either::Left(socket), peer))
            }
            Self::Unix(listener, _) => Ok(identify_peer(listener.accept().await?.0)),
            Self::Within(connections) => match connections.lock().await.recv().await {
                Some(socket) => Ok(identify_peer(UnixStream::from_std(socket)?)),
                // The connector was dropped. There will be no more connections.
                None => pending().await,
            },
        }
    }
}

fn identify_peer(socket: UnixStream) -> (Socket, Peer) {
    let peer = Peer::Socket {
        uid: socket.peer_cred().ok().map(|peer| peer.uid()),
    };
    (Either::Right(socket), peer)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // This option allows the port to be used again right after its last connections have ended.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The file of a Unix socket. If this process created it, dropping this value removes it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// The device and inode of the file, or `None` if another process created it and is responsible
    /// for removing it.
    device_and_inode: Option<(u64, u64)>,
    is_shared: bool,
}

impl SocketFile {
    fn new(path: &Path, is_shared: bool) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            device_and_inode: Some(device_and_inode(path)?),
            is_shared,
        })
    }

    /// Allows all users to connect. In a directory that other users can write to, another file may
    /// have taken the socket's name, which is an error.
    fn allow_all_users(&self) -> io::Result<()> {
        let opened = File::from(open(
            &self.path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        let found = opened.metadata()?;
        if self.device_and_inode != Some((found.dev(), found.ino())) {
            return Err(io::Error::other("another file has replaced the socket"));
        }
        let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
        std::fs::set_permissions(itself, Permissions::from_mode(0o666))
    }

    /// Returns the file of a socket that another process created, such as a service manager.
    pub(crate) fn from_inherited(path: PathBuf, is_shared: bool) -> Self {
        Self {
            path,
            device_and_inode: None,
            is_shared,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file is only removed if no other file has taken the socket's name.
        if self
            .device_and_inode
            .is_some_and(|own| device_and_inode(&self.path).is_ok_and(|found| found == own))
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn symlink_replacing_shared_socket_leaves_target_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (
            folder.path().join("public.sock"),
            folder.path().join("victim"),
        );
        fs::write(&victim, "precious").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        let _listener = net::UnixListener::bind(&path).unwrap();
        let socket = SocketFile::new(&path, true).unwrap();
        socket.allow_all_users().unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o666);
        fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
        assert!(socket.allow_all_users().is_err());
        assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
    }
}
