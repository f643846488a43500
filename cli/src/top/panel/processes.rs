//! The panel with the list of processes.

use gpumon_probe::untrusted::escape_untrusted;
use ratatui::{layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use crate::{
    describe,
    top::{
        model::Model,
        painter::{Hit, Painter, row_area},
        processes::{Column, ColumnLayout, Filter, Row, Subject},
        state::State,
        text::{cut, make_printable},
    },
};

/// Draws the list, scrolled so that the selected process is visible.
pub(in crate::top) fn draw_processes(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &mut State,
    rows: &[Row<'_>],
) {
    if area.height == 0 {
        return;
    }
    painter.add_clickable_area(area, Hit::Processes);
    let lines = usize::from(area.height - 1);
    state.processes.scroll_to_selection(rows, lines);
    let view = &state.processes;
    let gutter = if view.tags.is_empty() { 0 } else { 2 };
    let table = Rect {
        x: area.x + gutter,
        width: area.width - gutter,
        ..area
    };
    let cells = ColumnLayout::new(view, rows, table.width.into());
    let shown = model
        .gpus()
        .iter()
        .filter(|gpu| state.gpu.is_none_or(|shown| shown == gpu.index));
    let omitted = shown.map(|gpu| gpu.processes_omitted).sum();
    let count = rows.iter().filter(|row| row.key().is_some()).count();
    draw_headings(painter, row_area(table, 0), &cells, state, (count, omitted));
    let searched = Filter::new(&view.search);
    for (place, line) in rows.iter().skip(view.scroll).take(lines).enumerate() {
        let (place, cells_place) = (
            row_area(area, place as u16 + 1),
            row_area(table, place as u16 + 1),
        );
        draw_row(
            painter,
            cells_place,
            line,
            &cells,
            model.now_ms(),
            !searched.is_empty() && searched.is_match(line),
        );
        if let Some(key) = line.key() {
            painter.add_clickable_area(place, Hit::Process(key));
            if view.is_tagged(key) {
                painter.draw_text(place.x, place.y, 1, "*", painter.theme.strong);
            }
            if view.selected == Some(key) {
                painter.highlight(place, painter.theme.selected);
            }
        }
    }
    let mut below = area.y + 1 + rows.len().min(lines) as u16;
    let mut note = |text: &str| {
        if below < area.bottom() {
            painter.draw_text(area.x, below, area.width, text, painter.theme.dim);
            below += 1;
        }
    };
    for gpu in model.gpus() {
        for (place, holders) in describe::list_unused_allocations(gpu, None) {
            note(&format!(
                "GPU {place}: allocated to {}, no process",
                escape_untrusted(&holders)
            ));
        }
        if let Some(text) = describe::format_unlisted_processes(gpu) {
            note(&format!("GPU {}: {text}", gpu.index));
        }
        if let Some(reason) = gpu.processes.absence() {
            note(&format!("processes of GPU {}: {reason}", gpu.index));
        }
    }
    if rows.is_empty()
        && model.sample.is_some()
        && model
            .gpus()
            .iter()
            .all(|gpu| gpu.processes.value().is_some())
    {
        if !view.filter.is_empty() {
            note("no process matches; press esc to show all");
        } else if view.user.is_some() {
            note("no processes of this user");
        } else if model
            .gpus()
            .iter()
            .all(|gpu| gpu.unlisted_memory_bytes.is_none())
        {
            note("no processes");
        }
    }
}

/// Draws the headings. The last argument contains the number of listed processes and the number of
/// processes that the sample omits.
fn draw_headings(
    painter: &mut Painter<'_>,
    area: Rect,
    cells: &ColumnLayout,
    state: &State,
    (count, omitted): (usize, u32),
) {
    let view = &state.processes;
    for (column, at, width) in &cells.0 {
        let is_sorted = view.sort == *column;
        let arrow = match (is_sorted, view.descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        let text = format!(
            "{}{arrow}",
            cut(column.heading(), width.saturating_sub(arrow.width()))
        );
        let text = column.align(&text, *width);
        let style = if is_sorted {
            painter.theme.strong
        } else {
            painter.theme.dim
        };
        painter.draw_text(area.x + *at as u16, area.y, *width as u16, &text, style);
        painter.add_clickable_area(
            Rect {
                x: area.x + *at as u16,
                width: *width as u16,
                ..area
            },
            Hit::Heading(*column),
        );
    }
    let filter = if view.filter.is_empty() {
        String::new()
    } else {
        format!("filter: {}  ", view.filter.text)
    };
    let tree = if view.tree { "tree  " } else { "" };
    let count = if count == 1 {
        "1 process".to_owned()
    } else {
        format!("{count} processes")
    };
    let more = if omitted == 0 || view.user.is_some() {
        String::new()
    } else {
        format!(", {}", describe::format_omitted_processes(omitted))
    };
    let user = view.user.as_ref().map_or_else(String::new, |user| {
        format!("user {}  ", make_printable(user))
    });
    let tags = if view.tags.is_empty() {
        String::new()
    } else {
        format!("{} tagged  ", view.tags.len())
    };
    let about = format!("  {tags}{user}{filter}{tree}{count}{more}");
    let free = cells
        .0
        .last()
        .filter(|(column, ..)| *column == Column::What)
        .map_or(0, |(.., width)| width.saturating_sub(6));
    if about.width() <= free {
        let style = if view.filter.is_empty() {
            painter.theme.dim
        } else {
            painter.theme.notice
        };
        painter.draw_text_right(area.x, area.y, area.width, &about, style);
    }
}

fn draw_row(
    painter: &mut Painter<'_>,
    area: Rect,
    line: &Row<'_>,
    cells: &ColumnLayout,
    now_ms: u64,
    is_found: bool,
) {
    let is_parent = matches!(line.subject, Subject::Parents(_));
    for (column, at, width) in &cells.0 {
        let text = match (column, line.depth) {
            (Column::What, 0) => line.fit_label(*width),
            (Column::What, depth) => {
                format!(
                    "{}└ {}",
                    "  ".repeat(depth - 1),
                    line.fit_label(width.saturating_sub(2 * depth))
                )
            }
            _ => line.format_cell(*column, now_ms),
        };
        let text = column.align(&text, *width);
        let style = if is_parent {
            painter.theme.dim
        } else {
            cell_style(painter, *column, &text, is_found)
        };
        painter.draw_text(area.x + *at as u16, area.y, *width as u16, &text, style);
    }
}

fn cell_style(painter: &Painter<'_>, column: Column, text: &str, is_found: bool) -> Style {
    let theme = painter.theme;
    match column {
        Column::What if is_found => theme.found,
        _ if column.is_uninformative(text.trim()) => theme.dim,
        Column::Memory | Column::Share => theme.memory,
        Column::Sm | Column::MemoryBusy | Column::Encoder | Column::Decoder => theme.utilization,
        Column::Kind | Column::Time | Column::Threads => theme.dim,
        Column::Gpu
        | Column::Pid
        | Column::User
        | Column::Cpu
        | Column::HostMemory
        | Column::What => theme.plain,
    }
}
