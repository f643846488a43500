//! What the endpoints share.

use std::sync::Arc;

use tokio::sync::watch;

use crate::hub::Hub;

/// Handed to every handler.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) hub: Arc<Hub>,
    /// Becomes true when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}
