//! What the endpoints share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::{
    control::Control, hub::Hub, respond::ResponseEncoder, runs::Runs, stream::StreamEncoder, watchers::Watchers,
};

/// Handed to every handler.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) hub: Arc<Hub>,
    /// What clients ask the collector for.
    pub(crate) watchers: Arc<Watchers>,
    /// Pause and resume.
    pub(crate) control: Arc<Control>,
    /// Runs of the workload runner.
    pub(crate) runs: Arc<Runs>,
    /// Writes what a stream's clients share.
    pub(crate) stream_encoder: Arc<StreamEncoder>,
    /// Writes answers over HTTP.
    pub(crate) response_encoder: Arc<ResponseEncoder>,
    /// Whether `/metrics` tells of processes, too.
    pub(crate) process_metrics: bool,
    /// Becomes true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}
