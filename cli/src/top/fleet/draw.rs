//! Drawing of the whole fleet screen.

use gpumon_fleet::{Rows, model::FleetState};
use gpumon_probe::{model::now_ms, units::duration, untrusted::escaped};
use ratatui::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, View},
    keys::BINDINGS,
    list, map, node,
};
use crate::{
    fleet::nodes::Totals,
    terminal::glyphs::Glyphs,
    top::{
        painter::Painter,
        panel::last_line,
        text::{align_left, clock},
    },
};

/// The size needed for a title, one node, and the keys.
const SMALLEST: (u16, u16) = (40, 8);

pub(super) fn draw(app: &mut FleetApp, buffer: &mut Buffer) {
    let screen = buffer.area;
    let theme = app.theme.clone();
    let shown = if app.is_outdated() {
        theme.faded()
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
    let (columns, lines) = SMALLEST;
    if screen.width < columns || screen.height < lines {
        let text = format!(
            "{columns}x{lines} needed, this is {}x{}",
            screen.width, screen.height
        );
        painter.text(screen.x, screen.y, screen.width, &text, theme.plain);
        drop(painter.finish());
        return;
    }
    let line = |at: u16| Rect {
        y: screen.y + at,
        height: 1,
        ..screen
    };
    let Some(fleet) = app.fleet.clone() else {
        painter.text(
            screen.x,
            screen.y,
            screen.width,
            "gpumon fleet",
            theme.strong,
        );
        painter.text(
            screen.x,
            screen.y + 2,
            screen.width,
            "Reading the fleet...",
            theme.dim,
        );
        footer(&mut painter, line(screen.height - 1), app);
        drop(painter.finish());
        return;
    };
    let rows = Rows::new(&fleet);
    let filtered = app.filter.1.shown(&rows);
    let totals = Totals::new(&rows, filtered.as_deref());
    title(&mut painter, line(0), &rows, &totals);
    let mut parts = totals.parts();
    // Parts that do not fit are omitted whole, the least important, which is last, first.
    while parts.len() > 1 && parts.join("  ").width() > screen.width.into() {
        parts.pop();
    }
    painter.text(
        screen.x,
        screen.y + 1,
        screen.width,
        &parts.join("  "),
        shown.plain,
    );
    let mut top = 2;
    let missing = || fleet.missing.get(app.metric.id()).map(|why| escaped(why));
    if let Some(problem) = problem(&rows).or_else(missing) {
        painter.text(
            screen.x,
            screen.y + top,
            screen.width,
            &problem,
            theme.notice,
        );
        top += 1;
    }
    settings_line(&mut painter, line(top), app);
    top += 1;
    let body = Rect {
        y: screen.y + top,
        height: screen.height - top - 1,
        ..screen
    };
    painter.theme = &shown;
    let lines = app.list_nodes(&rows);
    if app.is_open && app.selected.is_some() {
        node::draw(&mut painter, body, &rows, app);
    } else if lines.is_empty() {
        let why = if app.filter.0.is_empty() {
            "No node is known yet."
        } else {
            "No GPU matches. Press esc for all."
        };
        painter.text(body.x, body.y, body.width, why, theme.dim);
    } else if app.view == View::List {
        list::draw(&mut painter, body, &lines, app);
    } else {
        map::draw(&mut painter, body, &lines, app);
    }
    painter.theme = &theme;
    footer(&mut painter, line(screen.height - 1), app);
    if app.has_help {
        help(&mut painter, screen);
    }
    drop(painter.finish());
}

fn title(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, totals: &Totals) {
    let parts = [
        ("gpumon fleet  ".to_owned(), painter.theme.strong),
        (totals.sizes(), painter.theme.plain),
    ];
    let taken = painter.line(area.x, area.y, area.width, &parts);
    let time = clock(rows.fleet.at_ms);
    let source = format!("{}  {time}", escaped(&rows.fleet.source.name));
    let room = area.width.saturating_sub(taken + 2);
    let text = if source.width() <= room.into() {
        source
    } else {
        time
    };
    painter.text_right(area.x + taken + 2, area.y, room, &text, painter.theme.dim);
}

/// Returns the problem of the source, or the age of the data if it is outdated.
fn problem(rows: &Rows<'_>) -> Option<String> {
    let fleet = rows.fleet;
    let first = fleet.problems.first().map(|problem| escaped(problem));
    let more = match fleet.problems.len() {
        0 | 1 => String::new(),
        many => format!(" (and {} more)", many - 1),
    };
    match fleet.state {
        FleetState::Outdated => {
            let age = duration(now_ms().saturating_sub(fleet.at_ms));
            Some(format!(
                "Readings are {age} old: {}{more}",
                first.unwrap_or_default()
            ))
        }
        _ => first.map(|first| first + &more),
    }
}

/// Draws the metric of the cells, the order, and the filter.
fn settings_line(painter: &mut Painter<'_>, area: Rect, app: &FleetApp) {
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
    let taken = painter.line(area.x, area.y, area.width, &parts);
    let legend = if painter.glyphs == Glyphs::Ascii {
        ". none  -+*# full  x lost  ? unknown"
    } else {
        "· none  ░▒▓█ full  x lost  ? unknown"
    };
    let room = area.width.saturating_sub(taken + 2);
    if legend.width() <= room.into() {
        painter.text_right(area.x + taken + 2, area.y, room, legend, dim);
    }
}

fn footer(painter: &mut Painter<'_>, area: Rect, app: &FleetApp) {
    if let Some(prompt) = &app.prompt {
        return last_line::prompt(painter, area, prompt);
    }
    let keys = BINDINGS
        .iter()
        .filter_map(|binding| Some((binding.shown, binding.short?, ())));
    last_line::keys(painter, area, keys);
}

fn help(painter: &mut Painter<'_>, screen: Rect) {
    let width = 74.min(screen.width);
    // Keys with control are the same on all screens, and 24 lines have no room for them.
    let bindings: Vec<_> = BINDINGS.iter().filter(|binding| !binding.control).collect();
    let height = (bindings.len() as u16 + 2).min(screen.height);
    let area = Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    };
    for y in area.top()..area.bottom() {
        painter.text(
            area.x,
            y,
            width,
            &" ".repeat(width.into()),
            painter.theme.plain,
        );
    }
    painter.text(area.x + 1, area.y, width - 2, "Keys", painter.theme.strong);
    for (at, binding) in (1..height.saturating_sub(1)).zip(bindings) {
        let parts = [
            (align_left(binding.shown, 8), painter.theme.utilization),
            (binding.help.to_owned(), painter.theme.plain),
        ];
        painter.line(area.x + 1, area.y + at, width - 2, &parts);
    }
    painter.text(
        area.x + 1,
        area.bottom() - 1,
        width - 2,
        "Press any key to go back.",
        painter.theme.dim,
    );
}
