//! Where clients come in: a TCP port or a unix socket.

use std::{
    fs::Permissions,
    io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, fchmod};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket, UnixStream};
use tokio_util::either::Either;

use crate::{connections::Socket, guard::Access, peer::Peer};

/// Clients that have connected and are not accepted yet; the system may allow fewer.
const BACKLOG: u32 = 4096;

/// An open door.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port on loopback.
    Tcp(TcpListener),
    /// A unix socket, which is removed at the end.
    Unix(UnixListener, OwnSocket),
}

/// Why the door stays shut.
#[derive(Debug, Error)]
pub enum ListenError {
    /// An address that other machines could reach.
    #[error(
        "cannot listen on {0}: other machines could reach it, and gpumon asks nobody for a password; listen on \
         127.0.0.1 and reach it by ssh -L 9123:127.0.0.1:9123"
    )]
    NotLoopback(SocketAddr),
    /// Somebody else listens there.
    #[error("cannot listen on {0}: the port is in use; choose another with --listen, or stop what listens there")]
    PortInUse(SocketAddr),
    /// Another server listens on this socket.
    #[error("cannot listen on {0}: another server listens on this socket; stop it, or choose another path")]
    SocketInUse(PathBuf),
    /// A file that is no socket.
    #[error("cannot listen on {0}: the path exists and is not a socket; choose another path, or remove it")]
    NotASocket(PathBuf),
    /// Anything else.
    #[error("cannot listen on {address}: {cause}{}", cure(cause))]
    Other {
        /// The address or path.
        address: String,
        /// What the system said.
        cause: io::Error,
    },
}

fn cure(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; choose a port of 1024 or more, or a folder that you may write to",
        io::ErrorKind::NotFound => "; create the socket's folder first",
        io::ErrorKind::InvalidInput => "; choose a shorter path for the socket",
        _ => "",
    }
}

impl Listener {
    /// Listens on a port of this machine's loopback, within a runtime. Port 0 takes any that is free.
    ///
    /// # Errors
    /// [`ListenError`] says what to do instead.
    pub fn tcp(address: SocketAddr) -> Result<Self, ListenError> {
        if !address.ip().to_canonical().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        bind_tcp(address).map(Self::Tcp).map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => ListenError::PortInUse(address),
            _ => ListenError::Other { address: address.to_string(), cause },
        })
    }

    /// Listens on a unix socket that only this user may open. A socket left over by a server that is gone is replaced.
    ///
    /// # Errors
    /// [`ListenError`] says what to do instead.
    pub async fn unix(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, false).await
    }

    /// The same that every user of this machine may open, who all may only read there.
    ///
    /// # Errors
    /// [`ListenError`] says what to do instead.
    pub async fn shared(path: &Path) -> Result<Self, ListenError> {
        Self::bind_unix(path, true).await
    }

    async fn bind_unix(path: &Path, is_shared: bool) -> Result<Self, ListenError> {
        let other = |cause| ListenError::Other { address: path.display().to_string(), cause };
        if let Ok(existing) = std::fs::symlink_metadata(path) {
            if !existing.file_type().is_socket() {
                return Err(ListenError::NotASocket(path.to_owned()));
            }
            match UnixStream::connect(path).await {
                // Nobody listens any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).map_err(other)?;
                }
                // Somebody does, of whatever kind and whoever may connect.
                Ok(_) | Err(_) => return Err(ListenError::SocketInUse(path.to_owned())),
            }
        }
        let socket = UnixSocket::new_stream().map_err(other)?;
        // The file gets the mode that the socket has when it is bound, so that nobody else can open it for a moment.
        fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(|error| other(error.into()))?;
        socket.bind(path).map_err(other)?;
        let file = OwnSocket::new(path, is_shared).map_err(other)?;
        if is_shared {
            std::fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(other)?;
        }
        Ok(Self::Unix(socket.listen(BACKLOG).map_err(other)?, file))
    }

    /// Whether every user of this machine may open it, so that nobody may do more than read.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Unix(_, socket) if socket.is_shared)
    }

    /// Where a browser or a program finds it.
    pub fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "?".to_owned(), |address| format!("http://{address}/"))
            }
            Self::Unix(_, socket) => socket.path.display().to_string(),
        }
    }

    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Tcp(_) => Access::Loopback,
            Self::Unix(..) => Access::Socket,
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, client) = listener.accept().await?;
                // A frame that is ready is not kept back until the one before has been acknowledged.
                let _ = socket.set_nodelay(true);
                let peer = Peer::of_port(client, socket.local_addr().ok());
                Ok((Either::Left(socket), peer))
            }
            Self::Unix(listener, _) => {
                let (socket, _) = listener.accept().await?;
                let peer = Peer::Socket { uid: socket.peer_cred().ok().map(|peer| peer.uid()) };
                Ok((Either::Right(socket), peer))
            }
        }
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port whose last connections have just ended is free.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The file of a socket, removed at the end, also where the serving is cut short, by whom it was made.
#[derive(Debug)]
pub struct OwnSocket {
    path: PathBuf,
    /// Of the file that was made here; none where somebody else has made it, who removes it.
    device_and_inode: Option<(u64, u64)>,
    is_shared: bool,
}

impl OwnSocket {
    fn new(path: &Path, is_shared: bool) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), device_and_inode: Some(device_and_inode(path)?), is_shared })
    }

    /// One that was made by somebody else, as a service manager.
    pub(crate) fn inherited(path: PathBuf, is_shared: bool) -> Self {
        Self { path, device_and_inode: None, is_shared }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Somebody may have removed it and put another in its place.
        if self.device_and_inode.is_some_and(|own| device_and_inode(&self.path).is_ok_and(|found| found == own)) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}
