//! The hub's data for metrics.

use std::{borrow::Cow, sync::Arc};

use gpumon_probe::{
    model::{GpuDetails, Inventory, Sample},
    usage::Usage,
};

use super::XidCounts;
use crate::{
    frame::{CollectorStatus, is_fresh_sample},
    refused_credentials::RefusedCredentials,
    view::View,
};

/// The hub's data at one time, shared with the hub.
pub(crate) struct HubData {
    pub(crate) collector: CollectorStatus,
    pub(crate) inventory: Option<Arc<Inventory>>,
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) details: Vec<Arc<GpuDetails>>,
    /// The number of Xids by GPU and code since the server's start.
    pub(crate) xids: XidCounts,
    /// The usage by owner since the server's start.
    pub(crate) usage: Usage,
    /// The counts of wrong tokens and passwords; `None` if nobody has to sign in.
    pub(crate) refused: Option<Arc<RefusedCredentials>>,
}

impl HubData {
    /// Returns the data that a client with this view may see.
    pub(crate) fn filter_for(self, view: &View) -> Self {
        let seen_by = |sample: Arc<Sample>| match view.filter_sample(&sample) {
            Cow::Borrowed(_) => sample,
            Cow::Owned(seen) => Arc::new(seen),
        };
        let sample = self.sample.map(seen_by);
        Self {
            sample,
            usage: view.filter_usage(self.usage),
            ..self
        }
    }

    /// Returns the newest sample if it is recent enough to show the state at `now_ms`.
    pub(crate) fn fresh_sample(&self, now_ms: u64) -> Option<&Sample> {
        let is_fresh = |sample: &&Sample| {
            !self.is_from_recording() && is_fresh_sample(sample, &self.collector, now_ms)
        };
        self.sample.as_deref().filter(is_fresh)
    }

    /// Returns `true` if the data is from a recording, and does not show the current state.
    pub(crate) fn is_from_recording(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|inventory| inventory.playback.is_some())
    }
}
