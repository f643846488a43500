//! Notifications for a service manager (`sd_notify(3)`): when the server is ready, its status, and
//! the watchdog. Without a service manager, nothing is sent.

use std::time::Duration;

use gpumon_probe::model::now_ms;
use sd_notify::NotifyState;
use tokio::time::{Instant, sleep};

use crate::{
    connections::ConnectionTable,
    frame::{CollectorState, CollectorStatus},
    hub::Hub,
};

/// The interval at which changes of the status are sent.
const INTERVAL: Duration = Duration::from_secs(2);

/// Reports that the server is ready.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Reports that the server is reloading its rules, until [`reloaded`] is called.
pub fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// Reports that the rules have been reloaded.
pub fn reloaded() {
    ready();
}

/// Reports that the server is shutting down.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Sends the status, and the watchdog notification while the server works. This function never
/// returns.
pub(crate) async fn report(hub: &Hub, connections: &ConnectionTable) {
    let watchdog = sd_notify::watchdog_enabled();
    let interval = watchdog.map_or(INTERVAL, |limit| (limit / 3).min(INTERVAL));
    let (mut told, mut well_at) = (String::new(), Instant::now());
    loop {
        let (collector, at_ms) = (hub.collector(), now_ms());
        let status = sentence(&collector, hub.gpus().len(), connections.count());
        if told != status {
            tell(&[NotifyState::Status(&status)]);
            told = status;
        }
        if is_well(&collector, hub.is_fresh(at_ms)) {
            well_at = Instant::now();
        }
        if watchdog.is_some_and(|limit| well_at.elapsed() < limit / 2) {
            tell(&[NotifyState::Watchdog]);
        }
        sleep(interval).await;
    }
}

/// Returns `true` if samples arrive, or if clients are informed why they do not. A driver that
/// hangs is not a defect of this process, and restarting it would not help. If the collector is
/// supposed to run but sends nothing, its supervisor has failed.
fn is_well(collector: &CollectorStatus, is_fresh: bool) -> bool {
    is_fresh || collector.state != CollectorState::Running
}

fn sentence(collector: &CollectorStatus, gpus: usize, connections: usize) -> String {
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

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!("the service manager cannot be told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: CollectorState, message: Option<&str>) -> CollectorStatus {
        CollectorStatus {
            state,
            since_ms: 0,
            message: message.map(str::to_owned),
            resumes_ms: None,
            joined: None,
        }
    }

    #[test]
    fn it_is_well_while_samples_come_or_it_is_said_why_not() {
        let running = status(CollectorState::Running, None);
        assert!(is_well(&running, true) && !is_well(&running, false));
        for state in [
            CollectorState::Paused,
            CollectorState::Restarting,
            CollectorState::Unavailable,
        ] {
            assert!(is_well(&status(state, Some("why")), false), "{state:?}");
        }
    }

    #[test]
    fn the_status_is_a_sentence() {
        let running = status(CollectorState::Running, None);
        assert_eq!(sentence(&running, 8, 1), "Monitoring 8 GPUs; 1 connection");
        let joined = CollectorStatus {
            joined: Some("/run/x".to_owned()),
            ..running
        };
        assert_eq!(
            sentence(&joined, 1, 0),
            "Monitoring 1 GPU, read by the server at /run/x; 0 connections"
        );
        let hangs = status(CollectorState::Restarting, Some("the collector hangs"));
        assert_eq!(sentence(&hangs, 8, 2), "the collector hangs; 2 connections");
    }
}
