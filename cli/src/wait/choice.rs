//! Which GPUs are asked for by name: by index, UUID or PCI bus id.

use anyhow::anyhow;
use gpumon_probe::model::Inventory;

use super::{candidate::Candidate, visible::Visible};
use crate::{
    exit::Failure,
    place::{self, Place},
};

/// Those that were named with `--id`, of those that `CUDA_VISIBLE_DEVICES` leaves.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    named: Vec<String>,
    visible: Option<Visible>,
}

impl Choice {
    /// Those of these names, or all where there are none, of those that the environment leaves.
    pub(crate) fn new(named: Vec<String>) -> Self {
        Self { named, visible: Visible::from_environment() }
    }

    /// Leaves the candidates that may be taken.
    pub(super) fn retain(&self, inventory: &Inventory, candidates: &mut Vec<Candidate>) -> Result<(), Failure> {
        if let Some(visible) = &self.visible {
            let places = visible.places(&inventory.gpus).map_err(|why| Failure::usage(anyhow!(why)))?;
            candidates.retain(|candidate| places.iter().any(|place| holds(*place, candidate)));
        }
        if !self.named.is_empty() {
            let mut places = Vec::new();
            for name in self.named.iter().flat_map(|list| list.split(',')).map(str::trim) {
                places.extend(place::find(name, &inventory.gpus)?);
            }
            candidates.retain(|candidate| places.iter().any(|place| holds(*place, candidate)));
        }
        match (&self.visible, candidates.is_empty()) {
            (Some(visible), true) => {
                Err(Failure::usage(anyhow!("{visible} leaves no GPU to choose from: unset it, or name others")))
            }
            _ => Ok(()),
        }
    }
}

fn holds(place: Place, candidate: &Candidate) -> bool {
    place.gpu == candidate.gpu && (place.mig.is_none() || place.mig == candidate.mig)
}
