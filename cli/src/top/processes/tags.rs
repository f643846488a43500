//! Tagged processes, which receive signals together.

use gpumon_probe::model::Process;

use super::{ProcessKey, ProcessView, rows};
use crate::top::model::Model;

/// A process and all GPUs that it uses. `key` contains the first of these GPUs.
pub(in crate::top) struct Recipient<'a> {
    pub(in crate::top) key: ProcessKey,
    pub(in crate::top) process: &'a Process,
    pub(in crate::top) gpus: Vec<u32>,
    /// The memory that the process uses on all of these GPUs, or `None` if any amount is unknown.
    pub(in crate::top) memory_bytes: Option<u64>,
}

impl ProcessView {
    /// Tags a process on all its GPUs, or removes the tag.
    pub(in crate::top) fn toggle_tag(&mut self, key: ProcessKey) {
        if self.is_tagged(key) {
            self.tags.retain(|tag| *tag != key.process_id());
        } else {
            self.tags.push(key.process_id());
        }
    }

    pub(in crate::top) fn is_tagged(&self, key: ProcessKey) -> bool {
        self.tags.contains(&key.process_id())
    }

    /// Removes the tags of processes that no longer use a GPU.
    pub(in crate::top) fn drop_old_tags(&mut self, model: &Model) {
        if !self.tags.is_empty() {
            let there: Vec<_> = rows::list_rows(model)
                .iter()
                .filter_map(rows::Row::key)
                .map(ProcessKey::process_id)
                .collect();
            self.tags.retain(|tag| there.contains(tag));
        }
    }

    /// Returns the processes to signal: `only` if given, otherwise the tagged processes, including
    /// those that the list hides.
    pub(in crate::top) fn list_recipients<'a>(
        &self,
        model: &'a Model,
        only: Option<ProcessKey>,
    ) -> Vec<Recipient<'a>> {
        let is_one = |key: ProcessKey| {
            only.map_or(self.is_tagged(key), |only| {
                only.process_id() == key.process_id()
            })
        };
        let mut recipients: Vec<Recipient<'_>> = Vec::new();
        for row in rows::list_rows(model) {
            let (Some(key), rows::Subject::Process(process)) = (row.key(), &row.subject) else {
                continue;
            };
            match recipients
                .iter_mut()
                .find(|known| known.key.process_id() == key.process_id())
            {
                Some(known) => {
                    let more = process.memory_bytes.value();
                    known.memory_bytes = known
                        .memory_bytes
                        .zip(more)
                        .map(|(bytes, more)| bytes + more);
                    if !known.gpus.contains(&key.gpu) {
                        known.gpus.push(key.gpu);
                    }
                }
                None if is_one(key) => {
                    let memory_bytes = process.memory_bytes.value().copied();
                    recipients.push(Recipient {
                        key,
                        process,
                        gpus: vec![key.gpu],
                        memory_bytes,
                    });
                }
                None => {}
            }
        }
        recipients
    }
}
