//! Limits updates to the selected GPUs.

use std::collections::BTreeSet;

use gpumon_probe::model::{Event, Gpu, GpuRef, Inventory, Record, Sample};

use super::model::Update;
use crate::{device_id::GpuLookupError, shown_gpus::ShownGpus};

/// The selected GPUs, and their indices in the newest inventory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    shown: ShownGpus,
    indices: Option<BTreeSet<u32>>,
}

impl Selection {
    pub(crate) fn new(shown: ShownGpus) -> Self {
        Self {
            shown,
            indices: None,
        }
    }

    /// Removes all data of other GPUs from an update. Returns an error if a selected name matches
    /// no GPU.
    pub(super) fn retain_selected(&mut self, update: &mut Update) -> Result<(), GpuLookupError> {
        match update {
            Update::Hello(hello) => {
                if let Some(inventory) = &mut hello.inventory {
                    self.retain_inventory(inventory)?;
                }
                hello
                    .details
                    .retain(|details| self.includes_gpu(details.index));
                hello.events.retain(|event| self.includes_event(event));
                if let Some(sample) = &mut hello.sample {
                    self.retain_sample(sample);
                }
            }
            Update::Record(record) => match &mut **record {
                Record::Inventory(inventory) => self.retain_inventory(inventory)?,
                Record::Sample(sample) => self.retain_sample(sample),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if the update only concerns GPUs that are not selected.
    pub(super) fn is_irrelevant(&self, update: &Update) -> bool {
        let Update::Record(record) = update else {
            return false;
        };
        match &**record {
            Record::Details(details) => !self.includes_gpu(details.index),
            Record::Event(event) => !self.includes_event(event),
            _ => false,
        }
    }

    fn retain_inventory(&mut self, inventory: &mut Inventory) -> Result<(), GpuLookupError> {
        self.indices = self.shown.find_indices(&inventory.gpus)?;
        inventory
            .gpus
            .retain(|gpu: &Gpu| self.includes_gpu(gpu.index));
        inventory
            .topology
            .retain(|link| self.includes_gpu(link.a) && self.includes_gpu(link.b));
        Ok(())
    }

    fn retain_sample(&self, sample: &mut Sample) {
        sample.gpus.retain(|gpu| self.includes_gpu(gpu.index));
    }

    fn includes_event(&self, event: &Event) -> bool {
        event
            .gpu
            .as_ref()
            .is_none_or(|GpuRef { index, .. }| self.includes_gpu(*index))
    }

    fn includes_gpu(&self, index: u32) -> bool {
        match &self.indices {
            Some(indices) => indices.contains(&index),
            None => !self.shown.is_limited(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{model::Model, testing};

    #[test]
    fn updates_keep_only_selected_gpus() {
        let moment = testing::sample_simulated_gpus(4);
        let mut model = Model {
            selection: Selection::new(ShownGpus::with_names(&["3", "1"])),
            ..Model::default()
        };
        let mut ingest = |record| model.ingest(Update::Record(Box::new(record)));
        ingest(Record::Inventory(moment.inventory.clone()));
        for details in moment.details {
            ingest(Record::Details(details));
        }
        ingest(Record::Sample(moment.sample));
        let event = |index| Event {
            at_ms: 0,
            gpu: Some(GpuRef { index, uuid: None }),
            what: gpumon_probe::model::EventKind::MigChanged,
        };
        ingest(Record::Event(event(0)));
        ingest(Record::Event(event(3)));
        assert!(model.gpus().iter().map(|gpu| gpu.index).eq([1, 3]));
        assert!(model.details.iter().map(|details| details.index).eq([1, 3]));
        assert_eq!(
            (model.inventory.unwrap().gpus.len(), model.events.len()),
            (2, 1)
        );
        let mut none = Selection::new(ShownGpus::with_names(&["7"]));
        let mut update = Update::Record(Box::new(Record::Inventory(moment.inventory)));
        assert!(
            none.retain_selected(&mut update)
                .unwrap_err()
                .to_string()
                .contains("there is no GPU '7': 0 to 3 are available")
        );
    }
}
