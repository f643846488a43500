//! The list of processes: its content, order, and selection.

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

/// The identity of one process on one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) gpu: u32,
    pub(super) pid: u32,
    /// The start time, which detects a reused PID.
    pub(super) started_ms: Option<u64>,
    pub(super) mig: Option<gpumon_probe::model::MigInstance>,
}

impl Key {
    /// Returns the identity of the process, regardless of the GPU.
    fn process(self) -> (u32, Option<u64>) {
        (self.pid, self.started_ms)
    }
}

/// The settings and the selection of the list.
#[derive(Debug, Clone)]
pub(super) struct ProcessView {
    pub(super) sort: Column,
    pub(super) descending: bool,
    pub(super) tree: bool,
    pub(super) columns: Vec<Column>,
    pub(super) filter: Filter,
    /// The user to whose processes the list is limited.
    pub(super) user: Option<String>,
    /// The processes that may be listed at all.
    pub(super) shown: ShownProcesses,
    /// The text of the last search.
    pub(super) search: String,
    pub(super) selected: Option<Key>,
    pub(super) tags: Vec<(u32, Option<u64>)>,
    /// The first visible row.
    pub(super) scroll: usize,
}

impl ProcessView {
    /// Returns the rows in order, for all GPUs or the selected one.
    pub(super) fn rows<'a>(&self, model: &'a Model, gpu: Option<u32>) -> Vec<Row<'a>> {
        let mut rows = rows::all(model);
        rows.retain(|row| {
            gpu.is_none_or(|gpu| row.gpu == gpu)
                && self.is_users(row)
                && self.is_shown(row)
                && self.filter.admits(row)
        });
        rows::sort(&mut rows, self.sort, self.descending);
        if self.tree { tree::grow(rows) } else { rows }
    }

    fn is_users(&self, row: &Row<'_>) -> bool {
        self.user
            .as_ref()
            .is_none_or(|user| matches!(row.subject, Subject::Process(process) if process.user.value() == Some(user)))
    }

    fn is_shown(&self, row: &Row<'_>) -> bool {
        matches!(row.subject, Subject::Process(process) if self.shown.is_shown(process))
    }

    /// Returns the position of the selected process.
    pub(super) fn position(&self, rows: &[Row<'_>]) -> Option<usize> {
        let selected = self.selected?;
        rows.iter().position(|row| row.key() == Some(selected))
    }

    /// Moves the selection. Without a selection, it starts above the first row.
    pub(super) fn step(&mut self, rows: &[Row<'_>], by: isize) {
        let places: Vec<usize> = (0..rows.len())
            .filter(|place| rows[*place].key().is_some())
            .collect();
        let Some(last) = places.len().checked_sub(1) else {
            return;
        };
        let now = self
            .position(rows)
            .and_then(|place| places.iter().position(|known| *known == place));
        let next = now
            .map_or(-1, usize::cast_signed)
            .saturating_add(by)
            .clamp(0, last.cast_signed());
        self.selected = rows[places[next.cast_unsigned()]].key();
    }

    /// Selects the next process in which `search` occurs, starting from the selected one. Returns
    /// `false` if there is none.
    pub(super) fn find(&mut self, rows: &[Row<'_>], forward: bool, or_here: bool) -> bool {
        let wanted = Filter::new(&self.search);
        let count = rows.len();
        let here = self
            .position(rows)
            .unwrap_or(if forward { count.saturating_sub(1) } else { 0 });
        let from = usize::from(!or_here || self.selected.is_none());
        let found =
            (from..=count).map(|by| if forward { here + by } else { here + count - by.min(count) } % count.max(1));
        let found = found
            .filter_map(|place| rows.get(place))
            .find(|row| row.key().is_some() && wanted.admits(row));
        if let Some(row) = found {
            self.selected = row.key();
        }
        found.is_some()
    }

    /// Scrolls so that the selection is visible in this many lines.
    pub(super) fn follow(&mut self, rows: &[Row<'_>], lines: usize) {
        if let Some(place) = self.position(rows) {
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
            columns: Column::usual(),
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
