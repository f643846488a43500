//! The state that all endpoints share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    alerts::Alerts,
    auth::{Doors, RatePerClient},
    control::Control,
    encoder::Encoder,
    fleet::FleetSettings,
    hub::Hub,
    live::Live,
    metrics::SharedPages,
    replay::Replay,
    respond::ResponseEncoder,
    runs::Runs,
    sampling_interval::SamplingInterval,
    stream::StreamEncoder,
    view::ShowProcesses,
    watching::Watching,
};

/// The maximum size of the responses of one kind that wait for clients, in KiB.
const QUOTA_KIB: usize = 64 * 1024;

/// The encoders of expensive responses. Each kind has a queue and a quota of its own, so that
/// requests for much history, or slow clients, do not delay hellos and metrics.
pub(crate) struct Encoders {
    pub(crate) hellos: StreamEncoder,
    pub(crate) histories: StreamEncoder,
    pub(crate) responses: ResponseEncoder,
    /// The encoder of responses with history.
    pub(crate) long_responses: ResponseEncoder,
    /// The metrics pages, which are encoded once for all simultaneous requests.
    pub(crate) metrics_pages: SharedPages,
}

impl Encoders {
    pub(crate) fn new() -> Self {
        Self {
            hellos: Encoder::new(QUOTA_KIB),
            histories: Encoder::new(QUOTA_KIB),
            responses: Encoder::new(QUOTA_KIB),
            long_responses: Encoder::new(QUOTA_KIB),
            metrics_pages: SharedPages::default(),
        }
    }

    /// Releases buffers that are no longer needed, and returns their size in KiB.
    pub(crate) fn trim(&self) -> usize {
        let encoders = self.hellos.trim()
            + self.histories.trim()
            + self.responses.trim()
            + self.long_responses.trim();
        encoders + self.metrics_pages.trim()
    }
}

/// The state that every handler receives.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) hub: Arc<Hub>,
    /// The sampling interval that clients request from the collector.
    pub(crate) sampling_interval: Arc<SamplingInterval>,
    /// The viewers of the readings.
    pub(crate) watching: Arc<Watching>,
    pub(crate) control: Arc<Control>,
    pub(crate) runs: Arc<Runs>,
    /// The replay, if a recording is played instead of running a collector.
    pub(crate) replay: Option<Replay>,
    /// Whether the server has readings of this machine or of a recording.
    pub(crate) reads_gpus: bool,
    /// The settings of the fleet, if the server shows one.
    pub(crate) fleet: Option<Arc<FleetSettings>>,
    pub(crate) alerts: Arc<Alerts>,
    /// The rate limit for marks and cells of all users together.
    pub(crate) event_limit: Arc<RatePerClient<&'static str>>,
    pub(crate) encoders: Arc<Encoders>,
    pub(crate) live: watch::Receiver<Live>,
    pub(crate) doors: Arc<Doors>,
    /// The processes that other users may see.
    pub(crate) show_processes: ShowProcesses,
    pub(crate) stopped: watch::Receiver<bool>,
}
