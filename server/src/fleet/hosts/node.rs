//! One host, and what is known of it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use gpumon_fleet::hosts::Host;
use gpumon_probe::model::now_ms;
use tokio::sync::watch;

use crate::{hub::Hub, sampling_interval::SamplingInterval};

/// How the connection to a host is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    /// It is made, since when.
    Connecting { since_ms: u64 },
    /// gpumon or nvidia-smi runs there.
    Connected,
    /// It ended, or was never made; it is tried again.
    Failed {
        /// Why, in a sentence with the cure.
        reason: String,
        /// Whether the host itself answered, and has nothing to read.
        reached: bool,
    },
}

/// How often a host could not be reached, and when last, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outages {
    pub(super) count: u32,
    pub(super) last_ms: u64,
    pub(super) lasts: bool,
}

/// The routes of one host, made when somebody first asks for it.
pub(super) struct Nested {
    pub(super) router: Router,
    /// Lets go of answers that nobody asks for any more.
    pub(super) trim: Box<dyn Fn() + Send + Sync>,
}

/// One host.
pub(super) struct HostNode {
    pub(super) host: Host,
    pub(super) hub: Arc<Hub>,
    pub(super) sampling_interval: Arc<SamplingInterval>,
    pub(super) nested: OnceLock<Nested>,
    /// Since when it is read, in milliseconds since 1970.
    pub(super) since_ms: u64,
    status: Mutex<(Status, Outages)>,
    /// Whether it is to be read no more.
    ended: watch::Sender<bool>,
    has_process: AtomicBool,
}

impl HostNode {
    pub(super) fn new(host: Host, interval: Duration) -> Self {
        let connecting = Status::Connecting { since_ms: now_ms() };
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

    pub(super) fn status(&self) -> Status {
        self.status
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .clone()
    }

    pub(super) fn outages(&self) -> Outages {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// What went wrong stays known while it is tried again.
    pub(super) fn set_status(&self, status: Status) {
        let (known, outages) = &mut *self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let is_outage = matches!(status, Status::Failed { .. });
        if is_outage {
            outages.count += u32::from(!outages.lasts);
            outages.last_ms = now_ms();
        }
        outages.lasts = is_outage;
        *known = status;
    }

    /// Whether its newest sample tells how things are.
    pub(super) fn is_fresh(&self, now_ms: u64) -> bool {
        self.hub.is_fresh(now_ms)
    }

    pub(super) fn failed(&self) -> bool {
        matches!(self.status(), Status::Failed { .. })
    }

    /// It is to be read no more.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(super) fn has_process(&self) -> bool {
        self.has_process.load(Ordering::Acquire)
    }

    pub(super) fn set_has_process(&self, has: bool) {
        self.has_process.store(has, Ordering::Release);
    }
}
