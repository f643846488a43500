//! The table that `gpumon` prints: a first line, one or two lines per GPU, and a line per process,
//! or a view like that of gpustat.
//!
//! The text contains ANSI styles, which the caller removes if necessary.

mod column_widths;
mod gpus;
mod head;
mod history;
pub(crate) mod process_label;
mod processes;
mod short;
mod total;

use gpumon_probe::model::{Gpu, Inventory, Sample};

use crate::{
    describe::Thresholds,
    shown_processes::ShownProcesses,
    terminal::{
        Layout,
        line::{Line, printable},
        style::{DIM, NOTICE},
    },
};

pub(crate) use self::column_widths::ColumnWidths;
pub(crate) use self::history::{METRIC, REACH_MS, UtilizationHistory};
pub(crate) use self::processes::{GOOD_WHAT, SHORTEST_WHAT};
pub(crate) use self::short::ShortPart;

#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) sample: &'a Sample,
    /// The utilization of the last minute, as far as it is known.
    pub(crate) past: &'a UtilizationHistory,
    /// Whether there is only this sample. Otherwise, lasting states are among its conditions.
    pub(crate) is_one_shot: bool,
    pub(crate) thresholds: Thresholds,
    /// A notice about the whole table, such as a paused server.
    pub(crate) notice: Option<&'a str>,
    /// Whether the table has a line of totals.
    pub(crate) with_total: bool,
    /// The processes to list, or `None` for all.
    pub(crate) listed: Option<&'a ShownProcesses>,
}

impl<'a> View<'a> {
    fn find_board(&self, index: u32) -> Option<&'a Gpu> {
        let mut known = self.inventory.gpus.iter();
        known.find(|known| known.index == index)
    }
}

/// Returns the table as complete lines. `kept` contains the column widths of the previous update,
/// if the table is updated in place.
pub(crate) fn render(
    view: &View<'_>,
    layout: Layout,
    mut kept: Option<&mut ColumnWidths>,
) -> String {
    let mut lines = vec![head::line(view, layout)];
    lines.extend(
        view.notice
            .map(|notice| Line::new(NOTICE, printable(notice, layout))),
    );
    lines.push(Line::default());
    lines.extend(gpus::lines(view, layout, kept.as_deref_mut()));
    lines.extend(view.with_total.then(|| total::line(view)));
    lines.push(Line::default());
    lines.extend(processes::lines(view, layout, kept));
    finish(lines, layout)
}

/// Returns the view like that of gpustat: a line per GPU with its users and their memory, and with
/// these parts.
pub(crate) fn render_short(view: &View<'_>, layout: Layout, parts: &[ShortPart]) -> String {
    let total = view.with_total.then(|| total::line(view));
    finish(
        short::lines(view, layout, parts)
            .into_iter()
            .chain(total)
            .collect(),
        layout,
    )
}

/// Cuts the lines to the height of the terminal, with a note about the number of missing ones.
fn finish(mut lines: Vec<Line>, layout: Layout) -> String {
    if let Some(height) = layout.height.filter(|height| lines.len() > *height) {
        let shown = height.saturating_sub(1);
        let missing = lines.len() - shown;
        lines.truncate(shown);
        let rows = if missing == 1 { "row" } else { "rows" };
        lines.push(Line::new(
            DIM,
            format!("{missing} more {rows}: make the window higher"),
        ));
    }
    lines
        .into_iter()
        .map(|line| line.paint(layout) + "\n")
        .collect()
}

#[cfg(test)]
pub(crate) mod examples;

#[cfg(test)]
mod tests;
