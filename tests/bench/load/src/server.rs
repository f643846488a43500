//! The server's address, and connections to it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr,
        connect, setsockopt, socket, sockopt,
    },
};

#[derive(Debug, Clone)]
pub(crate) enum Server {
    Port(SocketAddr),
    Socket(PathBuf),
}

/// A blocking connection to the server.
pub(crate) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

impl Server {
    /// Returns the value of the `Host` header.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Port(address) => address.to_string(),
            Self::Socket(_) => "localhost".to_owned(),
        }
    }

    /// Returns whether the connection is TCP. The kernel can then discard received bytes without
    /// copying them, and reports arrival times.
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Self::Port(_))
    }

    /// Starts a nonblocking connection.
    ///
    /// # Errors
    /// Returns an error if the server refuses the connection immediately, and `EAGAIN` if too many
    /// connections are pending at a unix socket.
    pub(crate) fn start_connection(&self) -> nix::Result<OwnedFd> {
        match self {
            Self::Port(address) => {
                let connection = match address {
                    SocketAddr::V4(address) => {
                        start_connecting(AddressFamily::Inet, &SockaddrIn::from(*address))
                    }
                    SocketAddr::V6(address) => {
                        start_connecting(AddressFamily::Inet6, &SockaddrIn6::from(*address))
                    }
                }?;
                setsockopt(&connection, sockopt::ReceiveTimestampns, &true)?;
                Ok(connection)
            }
            Self::Socket(path) => start_connecting(AddressFamily::Unix, &UnixAddr::new(path)?),
        }
    }

    /// Opens a blocking connection with `patience` as its timeout.
    pub(crate) fn connect(&self, patience: Duration) -> io::Result<Box<dyn Connection>> {
        match self {
            Self::Port(address) => {
                let connection = TcpStream::connect_timeout(address, patience)?;
                connection.set_read_timeout(Some(patience))?;
                Ok(Box::new(connection))
            }
            Self::Socket(path) => {
                let connection = UnixStream::connect(path)?;
                connection.set_read_timeout(Some(patience))?;
                Ok(Box::new(connection))
            }
        }
    }
}

fn start_connecting(family: AddressFamily, address: &dyn SockaddrLike) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let connection = socket(family, SockType::Stream, flags, None)?;
    match connect(connection.as_raw_fd(), address) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(connection),
        Err(error) => Err(error),
    }
}
