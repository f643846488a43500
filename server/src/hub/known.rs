//! The data for metrics.

use std::{borrow::Cow, sync::Arc};

use gpumon_probe::{
    model::{GpuDetails, Inventory, Sample},
    usage::Usage,
};

use super::XidCounts;
use crate::{
    frame::{CollectorStatus, is_fresh},
    refused_credentials::RefusedCredentials,
    view::View,
};

/// The data of one moment, shared with the hub.
pub(crate) struct Known {
    pub(crate) collector: CollectorStatus,
    pub(crate) inventory: Option<Arc<Inventory>>,
    pub(crate) sample: Option<Arc<Sample>>,
    pub(crate) details: Vec<Arc<GpuDetails>>,
    /// The number of Xids since the server's start.
    pub(crate) xids: XidCounts,
    /// The usage since the server's start.
    pub(crate) usage: Usage,
    /// The counts of wrong tokens and passwords; `None` if nobody has to sign in.
    pub(crate) refused: Option<Arc<RefusedCredentials>>,
}

impl Known {
    /// Returns the data as a client with this view may see it.
    pub(crate) fn seen_by(self, view: &View) -> Self {
        let seen_by = |sample: Arc<Sample>| match view.sample(&sample) {
            Cow::Borrowed(_) => sample,
            Cow::Owned(seen) => Arc::new(seen),
        };
        let sample = self.sample.map(seen_by);
        Self {
            sample,
            usage: view.usage(self.usage),
            ..self
        }
    }

    /// Returns the newest sample if it shows the state at `now_ms`.
    pub(crate) fn fresh_sample(&self, now_ms: u64) -> Option<&Sample> {
        let is_fresh =
            |sample: &&Sample| !self.is_played() && is_fresh(sample, &self.collector, now_ms);
        self.sample.as_deref().filter(is_fresh)
    }

    /// Returns `true` if the data is from a recording, and does not show the current state.
    pub(crate) fn is_played(&self) -> bool {
        self.inventory
            .as_ref()
            .is_some_and(|inventory| inventory.playback.is_some())
    }
}
