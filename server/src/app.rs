//! What the endpoints share.

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

/// What clients may hold of one kind of answers, in KiB.
const QUOTA_KIB: usize = 64 * 1024;

/// Who writes what takes milliseconds. Each kind waits for its own turns and has its own room, so
/// that whoever asks for much history, or takes it slowly, keeps nobody from a hello or from
/// metrics.
pub(crate) struct Encoders {
    pub(crate) hellos: StreamEncoder,
    pub(crate) histories: StreamEncoder,
    pub(crate) responses: ResponseEncoder,
    /// Those with history.
    pub(crate) long_responses: ResponseEncoder,
    /// The same text for all who scrape at the same time.
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

    /// Lets go of what nobody asks for any more, and says how many KiB that was.
    pub(crate) fn trim(&self) -> usize {
        let encoders = self.hellos.trim()
            + self.histories.trim()
            + self.responses.trim()
            + self.long_responses.trim();
        encoders + self.metrics_pages.trim()
    }
}

/// Handed to every handler.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) hub: Arc<Hub>,
    /// What clients ask the collector for.
    pub(crate) sampling_interval: Arc<SamplingInterval>,
    /// Who watches.
    pub(crate) watching: Arc<Watching>,
    pub(crate) control: Arc<Control>,
    pub(crate) runs: Arc<Runs>,
    /// Where a recording is played in the place of a collector.
    pub(crate) replay: Option<Replay>,
    /// Whether there are readings of this machine, or of a recording.
    pub(crate) reads_gpus: bool,
    /// Which fleet is shown, where one is.
    pub(crate) fleet: Option<Arc<FleetSettings>>,
    pub(crate) alerts: Arc<Alerts>,
    /// Limits marks and cells of all users together.
    pub(crate) event_limit: Arc<RatePerClient<&'static str>>,
    pub(crate) encoders: Arc<Encoders>,
    pub(crate) live: watch::Receiver<Live>,
    pub(crate) doors: Arc<Doors>,
    /// What others see of processes.
    pub(crate) show_processes: ShowProcesses,
    pub(crate) stopped: watch::Receiver<bool>,
}
