//! The GPUs that may be chosen: those that are named, or those of one vendor.

use anyhow::anyhow;
use gpumon_probe::model::Inventory;

use super::candidate::Candidate;
use crate::visible::Visible;
use crate::{
    device_id::{self, DeviceId},
    exit::Failure,
};

/// The GPUs that are named with `--id`, of those that the environment allows.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    named: Vec<String>,
    visible: Option<Visible>,
}

impl Choice {
    /// Returns the GPUs with these names; without a name, those of the first vendor.
    pub(crate) fn new(named: Vec<String>) -> Self {
        Self {
            named,
            visible: Visible::from_environment(),
        }
    }

    /// Leaves the candidates that may be taken.
    pub(super) fn retain(
        &self,
        inventory: &Inventory,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Failure> {
        if let Some(visible) = &self.visible {
            let ids = visible
                .list_allowed(&inventory.gpus)
                .map_err(|why| Failure::usage(anyhow!(why)))?;
            candidates.retain(|candidate| ids.iter().any(|id| holds(*id, candidate)));
        }
        if self.named.is_empty() {
            // Programs are built for one vendor.
            let first = inventory.gpus.iter().map(|gpu| gpu.vendor).min();
            candidates.retain(|candidate| Some(candidate.vendor) == first);
        } else {
            let mut ids = Vec::new();
            for name in self
                .named
                .iter()
                .flat_map(|list| list.split(','))
                .map(str::trim)
            {
                ids.extend(device_id::find(name, &inventory.gpus)?);
            }
            candidates.retain(|candidate| ids.iter().any(|id| holds(*id, candidate)));
        }
        match (&self.visible, candidates.is_empty()) {
            (Some(visible), true) => Err(Failure::usage(anyhow!(
                "{visible} leaves no GPU to choose from: unset it, or name others"
            ))),
            _ => Ok(()),
        }
    }
}

fn holds(id: DeviceId, candidate: &Candidate) -> bool {
    id.gpu == candidate.gpu && (id.mig.is_none() || id.mig == candidate.mig)
}
