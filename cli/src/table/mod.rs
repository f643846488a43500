//! The table that `gpumon` prints: a head, one or two lines per GPU, a line per process; and
//! gpustat's view of it.
//!
//! The text carries ANSI styles; whoever prints it strips them where they are not wanted.

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
    /// The last minute, as far as it is known.
    pub(crate) past: &'a UtilizationHistory,
    /// Whether the sample stands for itself. Otherwise what lasts is among its conditions.
    pub(crate) is_one_shot: bool,
    pub(crate) thresholds: Thresholds,
    /// What is to be said about the whole of it, as that a server is paused.
    pub(crate) notice: Option<&'a str>,
    /// Whether a line says what all GPUs come to.
    pub(crate) with_total: bool,
    /// The processes that are listed; `None` for all.
    pub(crate) listed: Option<&'a ShownProcesses>,
}

impl<'a> View<'a> {
    fn find_board(&self, index: u32) -> Option<&'a Gpu> {
        let mut known = self.inventory.gpus.iter();
        known.find(|known| known.index == index)
    }
}

/// The whole table, each line ended. One that is shown in the place of the one before takes over
/// what that kept.
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

/// gpustat's view: a line per GPU, with who holds how much, and with these parts.
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

/// Cuts to the height, and says how much is missing.
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
