//! `/api/v1/answers`: what programs that speak the driver's own vocabulary are answered from.

use axum::{Extension, extract::State, http::HeaderMap, response::Response};
use gpumon_probe::{
    model::{GpuDetails, Inventory, Sample},
    question::{Recorded, Sheet},
};
use serde::{Deserialize, Serialize};

use crate::{
    app::AppState,
    frame::{CollectorState, CollectorStatus},
    peer::Peer,
    respond::{JSON, Subject, respond, to_json},
    view::View,
};

/// Everything known at one moment, with what has no place in the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// Whether samples are coming.
    pub collector: CollectorStatus,
    /// What is there; `None` until the collector has told it.
    pub inventory: Option<Inventory>,
    /// The newest sample; `None` until there is one.
    pub sample: Option<Sample>,
    /// What changes slowly.
    pub details: Vec<GpuDetails>,
    /// The rest.
    pub sheets: Vec<Sheet>,
}

impl Answers {
    /// Who answers from them, if they tell how things are at `now_ms`: the newest sample is one interval old and a half
    /// second late at most, and never older than one and a half seconds, for whoever asks means now.
    pub fn fresh(self, now_ms: u64) -> Option<Recorded> {
        let sample = self.sample.filter(|sample| {
            let patience = 500 + u64::from(sample.interval_ms).min(1000);
            now_ms.saturating_sub(sample.at_ms) <= patience
        })?;
        (self.collector.state == CollectorState::Running)
            .then(|| self.inventory.map(|inventory| Recorded::new(inventory, sample, self.details, self.sheets)))?
    }
}

/// From memory: it never waits for the driver.
pub(crate) async fn answers(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    let view = View::of(peer).await;
    respond(&app, &headers, peer.who(), view, Subject::Answers, JSON, move |hub| to_json(&hub.answers(view))).await
}
