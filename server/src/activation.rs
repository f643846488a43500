//! Sockets that a service manager has opened (socket activation). They exist before the server
//! starts, and during its restarts.

use std::{
    io,
    os::unix::{fs::PermissionsExt, net::UnixListener as StdListener},
    path::{Path, PathBuf},
};

use listenfd::ListenFd;
use thiserror::Error;
use tokio::net::UnixListener;

use crate::listen::{Listener, SocketFile};

/// The error for a socket of the service manager that cannot be served.
#[derive(Debug, Error)]
#[error(
    "cannot serve socket {number} of the service manager: {cause}; use unix stream sockets with a \
     path (ListenStream=/run/...), and --listen for ports"
)]
pub struct BadSocket {
    number: usize,
    cause: io::Error,
}

/// The sockets that the service manager passed to this process, possibly none.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<(StdListener, PathBuf, bool)>);

impl InheritedSockets {
    /// Takes over the sockets. This must be called while the process has only one thread, so that
    /// child processes do not inherit the sockets.
    ///
    /// # Errors
    /// Returns an error if a socket is not a Unix socket.
    pub fn take() -> Result<Self, BadSocket> {
        let mut passed = ListenFd::from_env();
        let sockets = (0..passed.len()).map(|place| {
            let listener = passed.take_unix_listener(place).and_then(|listener| {
                let listener = listener.ok_or(io::ErrorKind::NotFound)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                let path = address
                    .as_pathname()
                    .ok_or_else(|| io::Error::other("the socket has no path"))?
                    .to_owned();
                let is_shared = is_shared(&path)?;
                Ok((listener, path, is_shared))
            });
            listener.map_err(|cause| BadSocket {
                number: place + 1,
                cause,
            })
        });
        sockets.collect::<Result<_, _>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Registers the sockets with the async runtime.
    ///
    /// # Errors
    /// Returns an error if the runtime cannot register a socket.
    pub fn into_listeners(self) -> io::Result<Vec<Listener>> {
        let listener = |(listener, path, is_shared)| {
            Ok(Listener::Unix(
                UnixListener::from_std(listener)?,
                SocketFile::from_inherited(path, is_shared),
            ))
        };
        self.0.into_iter().map(listener).collect()
    }
}

/// Returns `true` if users other than the owner may open the socket.
fn is_shared(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o022 != 0)
}
