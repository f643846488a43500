//! Tagged processes, which receive signals together.

use gpumon_probe::model::Process;

use super::{Key, ProcessView, rows};
use crate::top::model::Model;

/// A process and all GPUs that it uses. The key contains the first GPU.
pub(in crate::top) struct Recipient<'a> {
    pub(in crate::top) key: Key,
    pub(in crate::top) process: &'a Process,
    pub(in crate::top) gpus: Vec<u32>,
    /// The memory used on all of these GPUs, or `None` if it is unknown for one of them.
    pub(in crate::top) memory_bytes: Option<u64>,
}

impl ProcessView {
    /// Tags a process on all its GPUs, or removes the tag.
    pub(in crate::top) fn toggle_tag(&mut self, key: Key) {
        if self.is_tagged(key) {
            self.tags.retain(|tag| *tag != key.process());
        } else {
            self.tags.push(key.process());
        }
    }

    pub(in crate::top) fn is_tagged(&self, key: Key) -> bool {
        self.tags.contains(&key.process())
    }

    /// Removes the tags of processes that have ended.
    pub(in crate::top) fn drop_old_tags(&mut self, model: &Model) {
        if !self.tags.is_empty() {
            let there: Vec<_> = rows::all(model)
                .iter()
                .filter_map(rows::Row::key)
                .map(Key::process)
                .collect();
            self.tags.retain(|tag| there.contains(tag));
        }
    }

    /// Returns the processes to signal: `only` if given, otherwise the tagged ones, even if the
    /// list hides them.
    pub(in crate::top) fn recipients<'a>(
        &self,
        model: &'a Model,
        only: Option<Key>,
    ) -> Vec<Recipient<'a>> {
        let is_one =
            |key: Key| only.map_or(self.is_tagged(key), |only| only.process() == key.process());
        let mut recipients: Vec<Recipient<'_>> = Vec::new();
        for row in rows::all(model) {
            let (Some(key), rows::Subject::Process(process)) = (row.key(), &row.subject) else {
                continue;
            };
            match recipients
                .iter_mut()
                .find(|known| known.key.process() == key.process())
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
