//! The list of processes: its contents, order, selection, and tags.

mod columns;
mod rows;

use gpumon_probe::model::Process;

use super::model::Model;
use crate::options::ShownProcesses;

pub(super) use self::{
    columns::{Column, ColumnLayout},
    rows::{Filter, Row, Subject},
};

/// The identity of a process on one GPU or MIG device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessKey {
    pub(super) gpu: u32,
    pub(super) pid: u32,
    /// The start time of the process, by which a reused PID is detected.
    pub(super) started_ms: Option<u64>,
    pub(super) mig: Option<gpumon_probe::model::MigInstance>,
}

impl ProcessKey {
    /// Returns the identity of the process, which is the same on all GPUs.
    fn process_id(self) -> (u32, Option<u64>) {
        (self.pid, self.started_ms)
    }
}

/// The settings and the selection of the list of processes.
#[derive(Debug, Clone)]
pub(super) struct ProcessView {
    pub(super) sort: Column,
    pub(super) descending: bool,
    pub(super) tree: bool,
    pub(super) columns: Vec<Column>,
    pub(super) filter: Filter,
    /// The user to whose processes the list is limited, if any.
    pub(super) user: Option<String>,
    /// The command line's restrictions on which processes are listed.
    pub(super) shown: ShownProcesses,
    /// The text of the last search.
    pub(super) search: String,
    pub(super) selected: Option<ProcessKey>,
    pub(super) tags: Vec<(u32, Option<u64>)>,
    /// The index of the first visible row.
    pub(super) scroll: usize,
}

impl Default for ProcessView {
    fn default() -> Self {
        Self {
            sort: Column::Memory,
            descending: true,
            tree: false,
            columns: Column::default_columns(),
            filter: Filter::default(),
            user: None,
            shown: ShownProcesses::default(),
            search: String::new(),
            selected: None,
            tags: Vec::new(),
            scroll: 0,
        }
    }
}

/// A process and all GPUs that it uses. `key` contains the first of these GPUs.
pub(super) struct Recipient<'a> {
    pub(super) key: ProcessKey,
    pub(super) process: &'a Process,
    pub(super) gpus: Vec<u32>,
    /// The memory that the process uses on all of these GPUs, or `None` if any amount is unknown.
    pub(super) memory_bytes: Option<u64>,
}

impl ProcessView {
    /// Returns the sorted rows for all GPUs, or only for the GPU `gpu`.
    pub(super) fn list_rows<'a>(&self, model: &'a Model, gpu: Option<u32>) -> Vec<Row<'a>> {
        let mut rows = rows::list_rows(model);
        rows.retain(|row| {
            gpu.is_none_or(|gpu| row.gpu == gpu)
                && self.belongs_to_user(row)
                && self.is_shown(row)
                && self.filter.is_match(row)
        });
        rows::sort_rows(&mut rows, self.sort, self.descending);
        if self.tree {
            rows::arrange_as_tree(rows)
        } else {
            rows
        }
    }

    fn belongs_to_user(&self, row: &Row<'_>) -> bool {
        self.user
            .as_ref()
            .is_none_or(|user| matches!(row.subject, Subject::Process(process) if process.user.value() == Some(user)))
    }

    fn is_shown(&self, row: &Row<'_>) -> bool {
        matches!(row.subject, Subject::Process(process) if self.shown.is_shown(process))
    }

    /// Returns the position of the selected process in `rows`.
    pub(super) fn selected_position(&self, rows: &[Row<'_>]) -> Option<usize> {
        let selected = self.selected?;
        rows.iter().position(|row| row.key() == Some(selected))
    }

    /// Moves the selection. If nothing is selected, the movement starts above the first row.
    pub(super) fn move_selection(&mut self, rows: &[Row<'_>], by: isize) {
        let places: Vec<usize> = (0..rows.len())
            .filter(|place| rows[*place].key().is_some())
            .collect();
        let Some(last) = places.len().checked_sub(1) else {
            return;
        };
        let now = self
            .selected_position(rows)
            .and_then(|place| places.iter().position(|known| *known == place));
        let next = now
            .map_or(-1, usize::cast_signed)
            .saturating_add(by)
            .clamp(0, last.cast_signed());
        self.selected = rows[places[next.cast_unsigned()]].key();
    }

    /// Selects the next process that matches the search, starting at the selected process. Returns
    /// `false` if no process matches.
    pub(super) fn select_next_match(
        &mut self,
        rows: &[Row<'_>],
        forward: bool,
        or_here: bool,
    ) -> bool {
        let wanted = Filter::new(&self.search);
        let count = rows.len();
        let here = self.selected_position(rows).unwrap_or(if forward {
            count.saturating_sub(1)
        } else {
            0
        });
        let from = usize::from(!or_here || self.selected.is_none());
        let found =
            (from..=count).map(|by| if forward { here + by } else { here + count - by.min(count) } % count.max(1));
        let found = found
            .filter_map(|place| rows.get(place))
            .find(|row| row.key().is_some() && wanted.is_match(row));
        if let Some(row) = found {
            self.selected = row.key();
        }
        found.is_some()
    }

    /// Scrolls so that the selected row is visible in a list with a height of `lines` lines.
    pub(super) fn scroll_to_selection(&mut self, rows: &[Row<'_>], lines: usize) {
        if let Some(place) = self.selected_position(rows) {
            self.scroll = self
                .scroll
                .min(place)
                .max((place + 1).saturating_sub(lines));
        }
        self.scroll = self.scroll.min(rows.len().saturating_sub(lines));
    }
}

// Tags. The tagged processes receive signals together.

impl ProcessView {
    /// Tags a process on all its GPUs, or removes the tag.
    pub(super) fn toggle_tag(&mut self, key: ProcessKey) {
        if self.is_tagged(key) {
            self.tags.retain(|tag| *tag != key.process_id());
        } else {
            self.tags.push(key.process_id());
        }
    }

    pub(super) fn is_tagged(&self, key: ProcessKey) -> bool {
        self.tags.contains(&key.process_id())
    }

    /// Removes the tags of processes that no longer use a GPU.
    pub(super) fn drop_old_tags(&mut self, model: &Model) {
        if !self.tags.is_empty() {
            let there: Vec<_> = rows::list_rows(model)
                .iter()
                .filter_map(Row::key)
                .map(ProcessKey::process_id)
                .collect();
            self.tags.retain(|tag| there.contains(tag));
        }
    }

    /// Returns the processes to signal: `only` if given, otherwise the tagged processes, including
    /// those that the list hides.
    pub(super) fn list_recipients<'a>(
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
            let (Some(key), Subject::Process(process)) = (row.key(), &row.subject) else {
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

#[cfg(test)]
mod tests;
