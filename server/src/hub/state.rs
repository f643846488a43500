//! The hub's current state, protected by one lock.

use std::{cmp::Reverse, collections::BTreeMap, path::PathBuf, sync::Arc};

use gpumon_probe::{
    model::{EnergyPrice, FiringAlert, GpuDetails, Inventory, Sample, now_ms},
    vendor::DriverAnswers,
};

use super::{EventLog, XidCounts};
use crate::{
    frame::{CollectorState, CollectorStatus},
    refused_credentials::RefusedCredentials,
    stream::TextFrame,
};

pub(super) struct HubState {
    pub(super) collector: CollectorStatus,
    pub(super) inventory: Option<Arc<Inventory>>,
    /// The inventory as written by the collector.
    pub(super) inventory_line: Option<TextFrame>,
    pub(super) sample: Option<Arc<Sample>>,
    pub(super) details: BTreeMap<u32, Arc<GpuDetails>>,
    pub(super) answers: DriverAnswers,
    pub(super) events: EventLog,
    /// The firing alerts of this server.
    pub(super) alerts: Vec<FiringAlert>,
    /// The firing alerts of the joined server.
    pub(super) alerts_there: Vec<FiringAlert>,
    /// The socket of the joined server, if the readings come from it.
    pub(super) joined: Option<PathBuf>,
    /// The number of Xids since the server's start.
    pub(super) xids: XidCounts,
    /// The counts of wrong tokens and passwords; `None` if nobody has to sign in.
    pub(super) refused: Option<Arc<RefusedCredentials>>,
    /// Whether this server also shows a fleet.
    pub(super) has_fleet: bool,
    pub(super) energy_price: Option<EnergyPrice>,
}

impl HubState {
    /// Returns the initial state, while the collector is starting.
    pub(super) fn new() -> Self {
        Self {
            collector: CollectorStatus {
                state: CollectorState::Starting,
                since_ms: now_ms(),
                message: None,
                resumes_ms: None,
                joined: None,
            },
            inventory: None,
            inventory_line: None,
            sample: None,
            details: BTreeMap::new(),
            answers: DriverAnswers::default(),
            events: EventLog::default(),
            alerts: Vec::new(),
            alerts_there: Vec::new(),
            joined: None,
            xids: XidCounts::default(),
            refused: None,
            has_fleet: false,
            energy_price: None,
        }
    }

    /// Returns the time of the newest sample if a recording is being played.
    pub(super) fn recording_time_ms(&self) -> Option<u64> {
        self.inventory.as_ref()?.playback?;
        Some(self.sample.as_ref().map_or(0, |sample| sample.at_ms))
    }

    /// Returns the firing alerts, most severe first.
    pub(super) fn firing_alerts(&self) -> Vec<FiringAlert> {
        let mut firing = [&self.alerts[..], &self.alerts_there].concat();
        firing.sort_by_key(|firing| Reverse(firing.alert.severity));
        firing
    }

    /// Sets the inventory. Details of a GPU that is gone or was replaced are removed. All others
    /// remain until newer details arrive.
    pub(super) fn set_inventory(&mut self, inventory: Inventory, line: TextFrame) {
        self.details.retain(|index, details| {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
            gpu.is_some_and(|gpu| gpu.uuid.is_none() || gpu.uuid == details.uuid)
        });
        self.inventory = Some(Arc::new(inventory));
        self.inventory_line = Some(line);
    }
}
