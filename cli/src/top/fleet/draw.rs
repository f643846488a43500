//! Drawing of the whole fleet screen.

use gpumon_fleet::{Rows, model::FleetState};
use gpumon_probe::{model::now_ms, units::format_duration, untrusted::escape_untrusted};
use ratatui::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, NodeArrangement},
    keys::BINDINGS,
    list, map, node,
};
use crate::{
    fleet::nodes::Totals,
    terminal::glyphs::Glyphs,
    top::{
        painter::Painter,
        panel::last_line,
        text::{align_left, format_time},
    },
};

/// The minimum size of the screen, which has room for the title, one node, and the keys.
const MIN_SIZE: (u16, u16) = (40, 8);

pub(super) fn draw_screen(app: &mut FleetApp, buffer: &mut Buffer) {
    let screen = buffer.area;
    let theme = app.theme.clone();
    let shown = if app.is_outdated() {
        theme.to_faded()
    } else {
        theme.clone()
    };
    let mut painter = Painter {
        buffer,
        theme: &theme,
        glyphs: app.glyphs,
        hits: Vec::new(),
    };
    painter.highlight(screen, theme.plain);
    app.hits.clear();
    let (columns, lines) = MIN_SIZE;
    if screen.width < columns || screen.height < lines {
        let text = format!(
            "{columns}x{lines} needed, the terminal has {}x{}",
            screen.width, screen.height
        );
        painter.draw_text(screen.x, screen.y, screen.width, &text, theme.plain);
        drop(painter.finish());
        return;
    }
    let line = |at: u16| Rect {
        y: screen.y + at,
        height: 1,
        ..screen
    };
    let Some(fleet) = app.fleet.clone() else {
        painter.draw_text(
            screen.x,
            screen.y,
            screen.width,
            "gpumon fleet",
            theme.strong,
        );
        painter.draw_text(
            screen.x,
            screen.y + 2,
            screen.width,
            "Reading the fleet...",
            theme.dim,
        );
        draw_footer(&mut painter, line(screen.height - 1), app);
        drop(painter.finish());
        return;
    };
    let rows = Rows::new(&fleet);
    let filtered = app.filter.1.select_rows(&rows);
    let totals = Totals::new(&rows, filtered.as_deref());
    draw_title(&mut painter, line(0), &rows, &totals);
    let mut parts = totals.format_parts();
    // The parts are in order of importance. The last parts are omitted until the others fit.
    while parts.len() > 1 && parts.join("  ").width() > screen.width.into() {
        parts.pop();
    }
    painter.draw_text(
        screen.x,
        screen.y + 1,
        screen.width,
        &parts.join("  "),
        shown.plain,
    );
    let mut top = 2;
    let missing = || {
        fleet
            .missing
            .get(app.metric.id())
            .map(|why| escape_untrusted(why))
    };
    if let Some(problem) = describe_problem(&rows).or_else(missing) {
        painter.draw_text(
            screen.x,
            screen.y + top,
            screen.width,
            &problem,
            theme.notice,
        );
        top += 1;
    }
    draw_settings_line(&mut painter, line(top), app);
    top += 1;
    let body = Rect {
        y: screen.y + top,
        height: screen.height - top - 1,
        ..screen
    };
    painter.theme = &shown;
    let lines = app.list_nodes(&rows);
    if app.is_open && app.selected.is_some() {
        node::draw_node(&mut painter, body, &rows, app);
    } else if lines.is_empty() {
        let why = if app.filter.0.is_empty() {
            "No node is known yet."
        } else {
            "No GPU matches. Press esc for all."
        };
        painter.draw_text(body.x, body.y, body.width, why, theme.dim);
    } else if app.view == NodeArrangement::List {
        list::draw_list(&mut painter, body, &lines, app);
    } else {
        map::draw_map(&mut painter, body, &lines, app);
    }
    painter.theme = &theme;
    draw_footer(&mut painter, line(screen.height - 1), app);
    if app.has_help {
        draw_help(&mut painter, screen);
    }
    drop(painter.finish());
}

fn draw_title(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, totals: &Totals) {
    let parts = [
        ("gpumon fleet  ".to_owned(), painter.theme.strong),
        (totals.format_sizes(), painter.theme.plain),
    ];
    let taken = painter.draw_pieces(area.x, area.y, area.width, &parts);
    let time = format_time(rows.fleet.at_ms);
    let source = format!("{}  {time}", escape_untrusted(&rows.fleet.source.name));
    let room = area.width.saturating_sub(taken + 2);
    let text = if source.width() <= room.into() {
        source
    } else {
        time
    };
    painter.draw_text_right(area.x + taken + 2, area.y, room, &text, painter.theme.dim);
}

/// Returns the problem with the source, or the age of the data if it is outdated.
fn describe_problem(rows: &Rows<'_>) -> Option<String> {
    let fleet = rows.fleet;
    let first = fleet
        .problems
        .first()
        .map(|problem| escape_untrusted(problem));
    let more = match fleet.problems.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    match fleet.state {
        FleetState::Outdated => {
            let age = format_duration(now_ms().saturating_sub(fleet.at_ms));
            Some(format!(
                "Readings are {age} old: {}{more}",
                first.unwrap_or_default()
            ))
        }
        _ => first.map(|first| first + &more),
    }
}

/// Draws the line with the metric of the cells, the order of the nodes, and the filter.
fn draw_settings_line(painter: &mut Painter<'_>, area: Rect, app: &FleetApp) {
    let (dim, strong) = (painter.theme.dim, painter.theme.strong);
    let mut parts = vec![
        ("cells ", dim),
        (app.metric.label(), strong),
        ("  sorted by ", dim),
        (app.sort.label(), strong),
    ];
    if !app.filter.0.is_empty() {
        parts.extend([("  filter ", dim), (&*app.filter.0, strong)]);
    }
    let taken = painter.draw_pieces(area.x, area.y, area.width, &parts);
    let legend = if painter.glyphs == Glyphs::Ascii {
        ". none  -+*# full  x lost  ? unknown"
    } else {
        "· none  ░▒▓█ full  x lost  ? unknown"
    };
    let room = area.width.saturating_sub(taken + 2);
    if legend.width() <= room.into() {
        painter.draw_text_right(area.x + taken + 2, area.y, room, legend, dim);
    }
}

fn draw_footer(painter: &mut Painter<'_>, area: Rect, app: &FleetApp) {
    if let Some(prompt) = &app.prompt {
        return last_line::draw_prompt(painter, area, prompt);
    }
    let keys = BINDINGS
        .iter()
        .filter_map(|binding| Some((binding.shown, binding.short?, ())));
    last_line::draw_keys(painter, area, keys);
}

fn draw_help(painter: &mut Painter<'_>, screen: Rect) {
    let width = 74.min(screen.width);
    // Keys with Ctrl are the same on all screens, and a screen of 24 lines has no room to list
    // them.
    let bindings: Vec<_> = BINDINGS.iter().filter(|binding| !binding.control).collect();
    let height = (bindings.len() as u16 + 2).min(screen.height);
    let area = Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    };
    for y in area.top()..area.bottom() {
        painter.draw_text(
            area.x,
            y,
            width,
            &" ".repeat(width.into()),
            painter.theme.plain,
        );
    }
    painter.draw_text(area.x + 1, area.y, width - 2, "Keys", painter.theme.strong);
    for (at, binding) in (1..height.saturating_sub(1)).zip(bindings) {
        let parts = [
            (align_left(binding.shown, 8), painter.theme.utilization),
            (binding.help.to_owned(), painter.theme.plain),
        ];
        painter.draw_pieces(area.x + 1, area.y + at, width - 2, &parts);
    }
    painter.draw_text(
        area.x + 1,
        area.bottom() - 1,
        width - 2,
        "Press any key to go back.",
        painter.theme.dim,
    );
}
