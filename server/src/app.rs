//! The state that all endpoints share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    alerts::Alerts,
    auth::{AccessPolicy, RatePerClient},
    fleet::FleetSettings,
    hub::Hub,
    live_settings::LiveSettings,
    metrics::SharedPages,
    replay::Replay,
    responses::{Encoder, ResponseEncoder},
    runs::Runs,
    sampling::{SamplingInterval, ViewerCounter},
    stream::StreamEncoder,
    supervisor::PauseControl,
    view::ShowProcesses,
};

/// The memory quota of each encoder for responses that are waiting to be sent, in KiB.
const RESPONSE_QUOTA_KIB: usize = 64 * 1024;

/// The encoders of expensive responses. Each encoder has a separate queue and quota, so that
/// requests for long histories and slow clients do not delay hello frames and metrics.
pub(crate) struct Encoders {
    pub(crate) hellos: StreamEncoder,
    pub(crate) histories: StreamEncoder,
    pub(crate) responses: ResponseEncoder,
    /// The encoder of responses with history.
    pub(crate) long_responses: ResponseEncoder,
    /// The metrics pages. Simultaneous requests share one encoding of a page.
    pub(crate) metrics_pages: SharedPages,
}

impl Encoders {
    pub(crate) fn new() -> Self {
        Self {
            hellos: Encoder::new(RESPONSE_QUOTA_KIB),
            histories: Encoder::new(RESPONSE_QUOTA_KIB),
            responses: Encoder::new(RESPONSE_QUOTA_KIB),
            long_responses: Encoder::new(RESPONSE_QUOTA_KIB),
            metrics_pages: SharedPages::default(),
        }
    }

    /// Releases buffers that are no longer needed, and returns their size in KiB.
    pub(crate) fn release_unused_responses(&self) -> usize {
        let encoders = self.hellos.remove_old_responses()
            + self.histories.remove_old_responses()
            + self.responses.remove_old_responses()
            + self.long_responses.remove_old_responses();
        encoders + self.metrics_pages.remove_unused_pages()
    }
}

/// The state that every handler receives.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) hub: Arc<Hub>,
    /// The sampling interval that clients request from the collector.
    pub(crate) sampling_interval: Arc<SamplingInterval>,
    /// The viewers of the readings.
    pub(crate) watching: Arc<ViewerCounter>,
    pub(crate) control: Arc<PauseControl>,
    pub(crate) runs: Arc<Runs>,
    /// The replay, if the server plays a recording instead of running a collector.
    pub(crate) replay: Option<Replay>,
    /// Whether the server has readings from this machine or from a recording.
    pub(crate) reads_gpus: bool,
    /// The settings of the fleet, if the server shows one.
    pub(crate) fleet: Option<Arc<FleetSettings>>,
    pub(crate) alerts: Arc<Alerts>,
    /// The rate limit for marks and cells, shared by all users.
    pub(crate) event_limit: Arc<RatePerClient<&'static str>>,
    pub(crate) encoders: Arc<Encoders>,
    pub(crate) live: watch::Receiver<LiveSettings>,
    pub(crate) policy: Arc<AccessPolicy>,
    /// The setting that determines which processes users may see.
    pub(crate) show_processes: ShowProcesses,
    pub(crate) stopped: watch::Receiver<bool>,
}
