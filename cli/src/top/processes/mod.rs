//! The list of processes: its contents, order, and selection.

mod cells;
mod columns;
mod filter;
mod rows;
mod tags;
mod tree;

pub(super) use self::{
    cells::Cells,
    columns::Column,
    filter::Filter,
    rows::{Row, Subject},
    tags::Recipient,
};

use super::model::Model;
use crate::shown_processes::ShownProcesses;

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
    /// The limits on the listed processes that were set on the command line.
    pub(super) shown: ShownProcesses,
    /// The text of the last search.
    pub(super) search: String,
    pub(super) selected: Option<ProcessKey>,
    pub(super) tags: Vec<(u32, Option<u64>)>,
    /// The index of the first visible row.
    pub(super) scroll: usize,
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
            tree::arrange_as_tree(rows)
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

    /// Scrolls so that the selection is visible if the list has `lines` lines.
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

#[cfg(test)]
mod tests;
