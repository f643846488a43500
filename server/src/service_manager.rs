//! Communication with the service manager. The server reports its readiness and status and notifies
//! the watchdog (`sd_notify(3)`), and takes over sockets that the service manager has opened.
//! Without a service manager, nothing is sent.

use std::{
    io,
    os::unix::{fs::PermissionsExt, net::UnixListener as StdListener},
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::model::now_ms;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use thiserror::Error;
use tokio::{
    net::UnixListener,
    time::{Instant, sleep},
};

use crate::{
    connections::ConnectionTable,
    frame::{CollectorState, CollectorStatus},
    hub::Hub,
    listen::{Listener, SocketFile},
};

/// The interval at which the status is sent if it has changed.
const STATUS_INTERVAL: Duration = Duration::from_secs(2);

/// Notifies the service manager that the server is ready.
pub(crate) fn notify_ready() {
    send_notification(&[NotifyState::Ready]);
}

/// Notifies the service manager that the server is reloading its rules, until [`notify_reloaded`]
/// is called.
pub fn notify_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        send_notification(&[NotifyState::Reloading, now]);
    }
}

/// Notifies the service manager that the rules have been reloaded.
pub fn notify_reloaded() {
    notify_ready();
}

/// Notifies the service manager that the server is shutting down.
pub(crate) fn notify_stopping() {
    send_notification(&[NotifyState::Stopping]);
}

/// Sends the status to the service manager and, as long as the server works, the watchdog
/// notification. This function never returns.
pub(crate) async fn report_status(hub: &Hub, connections: &ConnectionTable) {
    let watchdog = sd_notify::watchdog_enabled();
    let interval = watchdog.map_or(STATUS_INTERVAL, |limit| (limit / 3).min(STATUS_INTERVAL));
    let (mut reported, mut well_at) = (String::new(), Instant::now());
    loop {
        let (collector, at_ms) = (hub.collector_status(), now_ms());
        let status = format_status(&collector, hub.gpus().len(), connections.count());
        if reported != status {
            send_notification(&[NotifyState::Status(&status)]);
            reported = status;
        }
        if is_healthy(&collector, hub.is_fresh(at_ms)) {
            well_at = Instant::now();
        }
        if watchdog.is_some_and(|limit| well_at.elapsed() < limit / 2) {
            send_notification(&[NotifyState::Watchdog]);
        }
        sleep(interval).await;
    }
}

/// Returns `true` if samples arrive, or if the collector's state shows clients why they do not. A
/// hanging driver, for example, is not a fault of this process, and restarting this process would
/// not help. If the collector is supposed to run but no samples arrive, its supervisor has failed.
fn is_healthy(collector: &CollectorStatus, is_fresh: bool) -> bool {
    is_fresh || collector.state != CollectorState::Running
}

fn format_status(collector: &CollectorStatus, gpus: usize, connections: usize) -> String {
    let of =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let state = match (collector.state, &collector.message) {
        (CollectorState::Running, _) => format!("Monitoring {}", of(gpus, "GPU")),
        (CollectorState::Starting, _) => "Starting the collector".to_owned(),
        (_, Some(message)) => message.clone(),
        (state, None) => format!("{state:?}"),
    };
    let joined = collector
        .joined
        .as_ref()
        .map_or_else(String::new, |socket| {
            format!(", read by the server at {socket}")
        });
    format!("{state}{joined}; {}", of(connections, "connection"))
}

fn send_notification(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("cannot notify the service manager: {error}");
    }
}

// Sockets that a service manager has opened (socket activation). They exist before the server
// starts, and during its restarts.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn make_status(state: CollectorState, message: Option<&str>) -> CollectorStatus {
        CollectorStatus {
            state,
            since_ms: 0,
            message: message.map(str::to_owned),
            resumes_ms: None,
            joined: None,
        }
    }

    #[test]
    fn missing_samples_without_reason_are_unhealthy() {
        let running = make_status(CollectorState::Running, None);
        assert!(is_healthy(&running, true) && !is_healthy(&running, false));
        for state in [
            CollectorState::Paused,
            CollectorState::Restarting,
            CollectorState::Unavailable,
        ] {
            assert!(
                is_healthy(&make_status(state, Some("why")), false),
                "{state:?}"
            );
        }
    }

    #[test]
    fn service_status_names_gpus_and_connections() {
        let running = make_status(CollectorState::Running, None);
        assert_eq!(
            format_status(&running, 8, 1),
            "Monitoring 8 GPUs; 1 connection"
        );
        let joined = CollectorStatus {
            joined: Some("/run/x".to_owned()),
            ..running
        };
        assert_eq!(
            format_status(&joined, 1, 0),
            "Monitoring 1 GPU, read by the server at /run/x; 0 connections"
        );
        let hangs = make_status(CollectorState::Restarting, Some("the collector hangs"));
        assert_eq!(
            format_status(&hangs, 8, 2),
            "the collector hangs; 2 connections"
        );
    }
}
