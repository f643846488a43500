//! Restricts all updates to the selected GPUs.

use std::collections::BTreeSet;

use gpumon_probe::model::{Event, Gpu, GpuRef, Inventory, Record, Sample};

use super::model::Update;
use crate::{device_id::NoSuchGpu, shown_gpus::ShownGpus};

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

    /// Removes everything about other GPUs. Returns an error if a selected name matches no GPU.
    pub(super) fn retain(&mut self, update: &mut Update) -> Result<(), NoSuchGpu> {
        match update {
            Update::Hello(hello) => {
                if let Some(inventory) = &mut hello.inventory {
                    self.inventory(inventory)?;
                }
                hello.details.retain(|details| self.has(details.index));
                hello.events.retain(|event| self.has_event(event));
                if let Some(sample) = &mut hello.sample {
                    self.sample(sample);
                }
            }
            Update::Record(record) => match &mut **record {
                Record::Inventory(inventory) => self.inventory(inventory)?,
                Record::Sample(sample) => self.sample(sample),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` if a record is only about GPUs that are not selected.
    pub(super) fn omits(&self, update: &Update) -> bool {
        let Update::Record(record) = update else {
            return false;
        };
        match &**record {
            Record::Details(details) => !self.has(details.index),
            Record::Event(event) => !self.has_event(event),
            _ => false,
        }
    }

    fn inventory(&mut self, inventory: &mut Inventory) -> Result<(), NoSuchGpu> {
        self.indices = self.shown.find(&inventory.gpus)?;
        inventory.gpus.retain(|gpu: &Gpu| self.has(gpu.index));
        inventory
            .topology
            .retain(|link| self.has(link.a) && self.has(link.b));
        Ok(())
    }

    fn sample(&self, sample: &mut Sample) {
        sample.gpus.retain(|gpu| self.has(gpu.index));
    }

    fn has_event(&self, event: &Event) -> bool {
        event
            .gpu
            .as_ref()
            .is_none_or(|GpuRef { index, .. }| self.has(*index))
    }

    fn has(&self, index: u32) -> bool {
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
    fn only_what_is_about_the_selected_gpus_is_kept() {
        let moment = testing::moment(4);
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
            none.retain(&mut update)
                .unwrap_err()
                .to_string()
                .contains("no GPU '7': there are 0 to 3")
        );
    }
}
