//! The table that `gpumon` prints, with a first line, one or two lines per GPU, and a line per
//! process. Alternatively, the short view, which is similar to gpustat's output.
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
        line::{Line, make_printable},
        style::{DIM, NOTICE},
    },
};

pub(crate) use self::column_widths::ColumnWidths;
pub(crate) use self::history::{MAX_HISTORY_MS, METRIC, UtilizationHistory};
pub(crate) use self::processes::{GOOD_LABEL_WIDTH, MIN_LABEL_WIDTH};
pub(crate) use self::short::ShortPart;

#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) sample: &'a Sample,
    /// The known utilization values of the last minute.
    pub(crate) past: &'a UtilizationHistory,
    /// Whether there is only a single sample. With more samples, lasting states are included in its
    /// conditions.
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

/// Returns the table as complete lines. If the table is updated in place, `kept` contains the
/// column widths of the previous update.
pub(crate) fn render(
    view: &View<'_>,
    layout: Layout,
    mut kept: Option<&mut ColumnWidths>,
) -> String {
    let mut lines = vec![head::format_head_line(view, layout)];
    lines.extend(
        view.notice
            .map(|notice| Line::new(NOTICE, make_printable(notice, layout))),
    );
    lines.push(Line::default());
    lines.extend(gpus::format_lines(view, layout, kept.as_deref_mut()));
    lines.extend(view.with_total.then(|| total::format_total_line(view)));
    lines.push(Line::default());
    lines.extend(processes::format_lines(view, layout, kept));
    join_lines(lines, layout)
}

/// Returns the short view, similar to gpustat's output: one line per GPU with its users, the memory
/// of their processes, and the additional `parts`.
pub(crate) fn render_short(view: &View<'_>, layout: Layout, parts: &[ShortPart]) -> String {
    let total = view.with_total.then(|| total::format_total_line(view));
    join_lines(
        short::format_lines(view, layout, parts)
            .into_iter()
            .chain(total)
            .collect(),
        layout,
    )
}

/// Joins the lines. If they exceed the height of the terminal, the last lines are replaced by a
/// note with their number.
fn join_lines(mut lines: Vec<Line>, layout: Layout) -> String {
    if let Some(height) = layout.height.filter(|height| lines.len() > *height) {
        let shown = height.saturating_sub(1);
        let missing = lines.len() - shown;
        lines.truncate(shown);
        let rows = if missing == 1 { "row" } else { "rows" };
        lines.push(Line::new(
            DIM,
            format!("{missing} more {rows}: enlarge the window"),
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
