//! A host and its state.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use gpumon_fleet::hosts::Host;
use gpumon_probe::model::now_ms;
use tokio::sync::watch;

use crate::{hub::Hub, lock, sampling::SamplingInterval};

/// The state of a host's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConnectionStatus {
    /// The connection is being established.
    Connecting { since_ms: u64 },
    /// The connection is established, and gpumon or nvidia-smi is running on the host.
    Connected,
    /// The connection has ended or could not be established, and will be retried.
    Failed {
        /// The reason and its remedy, as a sentence.
        reason: String,
        /// Whether the host responded before the failure.
        reached: bool,
    },
}

/// The number of failed connections to a host, and the time of the last one in milliseconds since
/// 1970.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outages {
    pub(super) count: u32,
    pub(super) last_ms: u64,
    pub(super) lasts: bool,
}

impl Outages {
    /// Returns `true` if a connection has failed since `from_ms`.
    pub(super) fn has_any_since(self, from_ms: u64) -> bool {
        self.count > 0 && self.last_ms >= from_ms
    }
}

/// The routes of one host. They are created at its first request.
pub(super) struct HostRoutes {
    pub(super) router: Router,
    /// The function that releases unused responses.
    pub(super) trim: Box<dyn Fn() + Send + Sync>,
}

/// A host of the fleet, its hub and its connection.
pub(super) struct HostNode {
    pub(super) host: Host,
    pub(super) hub: Arc<Hub>,
    pub(super) sampling_interval: Arc<SamplingInterval>,
    pub(super) nested: OnceLock<HostRoutes>,
    /// The time at which this server began to read the host, in milliseconds since 1970.
    pub(super) since_ms: u64,
    status: Mutex<(ConnectionStatus, Outages)>,
    /// Whether the connection to the host should end.
    ended: watch::Sender<bool>,
    has_process: AtomicBool,
}

impl HostNode {
    pub(super) fn new(host: Host, interval: Duration) -> Self {
        let connecting = ConnectionStatus::Connecting { since_ms: now_ms() };
        Self {
            host,
            hub: Arc::new(Hub::new()),
            sampling_interval: SamplingInterval::new(interval),
            nested: OnceLock::new(),
            since_ms: now_ms(),
            status: Mutex::new((connecting, Outages::default())),
            ended: watch::Sender::new(false),
            has_process: AtomicBool::new(false),
        }
    }

    pub(super) fn status(&self) -> ConnectionStatus {
        lock::lock(&self.status).0.clone()
    }

    pub(super) fn outages(&self) -> Outages {
        lock::lock(&self.status).1
    }

    /// Sets the state, and counts outages. An outage remains counted after the connection is
    /// established again.
    pub(super) fn set_status(&self, status: ConnectionStatus) {
        let (known, outages) = &mut *lock::lock(&self.status);
        let is_outage = matches!(status, ConnectionStatus::Failed { .. });
        if is_outage {
            outages.count += u32::from(!outages.lasts);
            outages.last_ms = now_ms();
        }
        outages.lasts = is_outage;
        *known = status;
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.status(), ConnectionStatus::Failed { .. })
    }

    /// Ends the connection to the host.
    pub(super) fn stop_reading(&self) {
        self.ended.send_replace(true);
    }

    pub(super) fn end_signal(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(super) fn has_process(&self) -> bool {
        self.has_process.load(Ordering::Acquire)
    }

    pub(super) fn set_has_process(&self, has: bool) {
        self.has_process.store(has, Ordering::Release);
    }
}
