//! Listeners for clients: TCP ports, unix sockets, and connections within the same process.

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
    auth::Doors,
    connections::Socket,
    guard::Access,
    peer::{self, Peer},
};

/// The maximum number of connections that wait to be accepted. The system may allow fewer.
const BACKLOG: u32 = 4096;

/// A listener for clients.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener, Purpose),
    /// A unix socket, whose file is removed at the end.
    Unix(UnixListener, OwnSocket),
    /// The connections of a [`Connector`].
    Within(Mutex<mpsc::UnboundedReceiver<net::UnixStream>>),
}

/// Connects to a server in the same process. Nobody else can reach it, because there is no port and
/// no file.
#[derive(Debug, Clone)]
pub struct Connector(mpsc::UnboundedSender<net::UnixStream>);

impl Connector {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns an error if the server has ended, or if the system has no free file descriptor.
    pub fn connect(&self) -> io::Result<net::UnixStream> {
        let (near, far) = net::UnixStream::pair()?;
        far.set_nonblocking(true)?;
        self.0
            .send(far)
            .map_err(|_| io::Error::other("it has ended"))?;
        Ok(near)
    }
}

/// The endpoints that a port serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// All endpoints of the server.
    Everything,
    /// The metrics, and whether the server is alive and ready.
    Metrics,
}

impl Purpose {
    fn option(self) -> &'static str {
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
        "cannot listen on {address}: other machines could reach it, and {}; or listen on 127.0.0.1 and reach it by \
         ssh -L 9123:127.0.0.1:9123",
        missing(*has_tls, *asks)
    )]
    Unprotected {
        address: SocketAddr,
        /// Whether connections would use TLS.
        has_tls: bool,
        /// Whether clients would have to sign in.
        asks: bool,
    },
    /// Another program listens on the port.
    #[error(
        "cannot listen on {0}: the port is in use; choose another with {1}, or stop what listens there"
    )]
    PortInUse(SocketAddr, &'static str),
    #[error(
        "cannot listen on {0}: another server listens on this socket; stop it, or choose another path"
    )]
    SocketInUse(PathBuf),
    /// The path is a file that is not a socket.
    #[error(
        "cannot listen on {0}: the path exists and is not a socket; choose another path, or remove it"
    )]
    NotASocket(PathBuf),
    /// Any other error from the system.
    #[error("cannot listen on {address}: {cause}{}", cure(cause))]
    Other {
        /// The address or path that cannot be used.
        address: String,
        /// The error from the system.
        cause: io::Error,
    },
}

fn missing(has_tls: bool, asks: bool) -> &'static str {
    let tls = "nothing is encrypted: name a certificate in a web configuration (--web-config FILE)";
    let identity = "nobody has to sign in: name tokens (--token-file FILE), or users or client certificates in the web \
                    configuration";
    match (has_tls, asks) {
        (false, false) => {
            "nothing is encrypted and nobody has to sign in: name a certificate in a web configuration (--web-config \
             FILE) and tokens (--token-file FILE)"
        }
        (false, true) => tls,
        _ => identity,
    }
}

fn cure(cause: &io::Error) -> &'static str {
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
    /// Listens on a port, within an async runtime. Port 0 selects a free one. Addresses other than
    /// loopback require TLS and signing in.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message has the cure.
    pub fn tcp(address: SocketAddr, purpose: Purpose, doors: &Doors) -> Result<Self, ListenError> {
        peer::prepare();
        let (has_tls, asks) = (doors.has_tls(), doors.asks());
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
                io::ErrorKind::AddrInUse => ListenError::PortInUse(address, purpose.option()),
                _ => ListenError::Other {
                    address: address.to_string(),
                    cause,
                },
            })
    }

    /// Listens on a unix socket that only this user can open. A socket of a server that has ended
    /// is replaced.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message has the cure.
    pub async fn unix(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, false).await
    }

    /// Listens on a unix socket that all users of this machine can open. They can only read there.
    ///
    /// # Errors
    /// Returns a [`ListenError`], whose message has the cure.
    pub async fn shared(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, true).await
    }

    /// Listens for connections within the same process.
    pub fn within() -> (Self, Connector) {
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
                // No server listens on this socket any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(other)?;
                }
                // A server listens on this socket, even if this user may not connect to it.
                Ok(_) | Err(_) => return Err(ListenError::SocketInUse(path.to_owned())),
            }
        }
        let socket = UnixSocket::new_stream().map_err(other)?;
        // The file gets the mode of the socket when it is bound, so that no other user can open it
        // in between.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|error| other(error.into()))?;
        socket.bind(path).map_err(other)?;
        let file = OwnSocket::new(path, is_shared).map_err(other)?;
        if is_shared {
            file.open_to_all().map_err(other)?;
        }
        Ok(Self::Unix(socket.listen(BACKLOG).map_err(other)?, file))
    }

    /// Returns `true` for a socket that all users of this machine can open, on which everybody can
    /// only read.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Unix(_, socket) if socket.is_shared)
    }

    /// Returns the URL or path of the listener.
    pub fn address(&self, doors: &Doors) -> String {
        let scheme = if doors.has_tls() { "https" } else { "http" };
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

    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Tcp(_, purpose) => *purpose,
            Self::Unix(..) | Self::Within(_) => Purpose::Everything,
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener, _) => {
                let (socket, client) = listener.accept().await?;
                // A frame must not wait for the acknowledgment of the previous one.
                let _ = socket.set_nodelay(true);
                let peer = Peer::of_port(client, socket.local_addr().ok());
                Ok((Either::Left(socket), peer))
            }
            Self::Unix(listener, _) => Ok(of_socket(listener.accept().await?.0)),
            Self::Within(connections) => match connections.lock().await.recv().await {
                Some(socket) => Ok(of_socket(UnixStream::from_std(socket)?)),
                // The connector was dropped, so there will be no further connections.
                None => pending().await,
            },
        }
    }
}

fn of_socket(socket: UnixStream) -> (Socket, Peer) {
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
    // With this option, a port can be used again right after its last connections have ended.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The file of a socket, which is removed at the end by the process that created it.
#[derive(Debug)]
pub struct OwnSocket {
    path: PathBuf,
    /// The device and inode of the file that this process created. `None` if another process
    /// created it, which then removes it.
    device_and_inode: Option<(u64, u64)>,
    is_shared: bool,
}

impl OwnSocket {
    fn new(path: &Path, is_shared: bool) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            device_and_inode: Some(device_and_inode(path)?),
            is_shared,
        })
    }

    /// Allows all users to connect. In a directory that others can write to, another file may have
    /// taken the socket's name, which this checks.
    fn open_to_all(&self) -> io::Result<()> {
        let opened = File::from(open(
            &self.path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        let found = opened.metadata()?;
        if self.device_and_inode != Some((found.dev(), found.ino())) {
            return Err(io::Error::other("another file has taken its name"));
        }
        let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
        std::fs::set_permissions(itself, Permissions::from_mode(0o666))
    }

    /// Returns a socket that another process, such as a service manager, has created.
    pub(crate) fn inherited(path: PathBuf, is_shared: bool) -> Self {
        Self {
            path,
            device_and_inode: None,
            is_shared,
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Another file may have taken the socket's name.
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
    fn link_in_place_of_shared_socket_changes_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (
            folder.path().join("public.sock"),
            folder.path().join("victim"),
        );
        fs::write(&victim, "precious").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        let _listener = net::UnixListener::bind(&path).unwrap();
        let socket = OwnSocket::new(&path, true).unwrap();
        socket.open_to_all().unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o666);
        fs::remove_file(&path).unwrap();
        symlink(&victim, &path).unwrap();
        assert!(socket.open_to_all().is_err());
        assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
    }
}
