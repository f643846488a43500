//! The list of processes: what is in it, in which order, and which of them is selected.

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

/// One process on one GPU, as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) gpu: u32,
    pub(super) pid: u32,
    /// PIDs are used again.
    pub(super) started_ms: Option<u64>,
    pub(super) mig: Option<gpumon_probe::model::MigInstance>,
}

impl Key {
    /// What tells the process from others, on whichever GPU.
    fn process(self) -> (u32, Option<u64>) {
        (self.pid, self.started_ms)
    }
}

/// How the list is shown, and what is selected in it.
#[derive(Debug, Clone)]
pub(super) struct ProcessView {
    pub(super) sort: Column,
    pub(super) descending: bool,
    pub(super) tree: bool,
    pub(super) columns: Vec<Column>,
    pub(super) filter: Filter,
    /// Whose processes alone are there.
    pub(super) user: Option<String>,
    /// The processes that are listed at all.
    pub(super) shown: ShownProcesses,
    /// What was searched for last.
    pub(super) search: String,
    pub(super) selected: Option<Key>,
    pub(super) tags: Vec<(u32, Option<u64>)>,
    /// The first row that is shown.
    pub(super) scroll: usize,
}

impl ProcessView {
    /// The rows in their order. `gpu` is the one that the screen is about, where it is about one.
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

    /// Where the selected process is.
    pub(super) fn position(&self, rows: &[Row<'_>]) -> Option<usize> {
        let selected = self.selected?;
        rows.iter().position(|row| row.key() == Some(selected))
    }

    /// Moves the selection; with nothing selected, from above the first row.
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

    /// Selects the next process in which `search` occurs, from the selected one on; false where
    /// there is none.
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

    /// Scrolls so that the selection can be seen in so many lines.
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
