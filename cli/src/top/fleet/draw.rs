//! Drawing of the whole fleet screen, including the details of one node.

use gpumon_fleet::{
    Rows,
    model::{FleetState, UTILIZATION},
};
use gpumon_probe::{model::now_ms, units::format_duration, untrusted::escape_untrusted};
use ratatui::{buffer::Buffer, layout::Rect};
use unicode_width::UnicodeWidthStr;

use super::{
    app::{FleetApp, NodeArrangement},
    keys::BINDINGS,
    node_views,
};
use crate::{
    fleet::{
        nodes::{FleetLine, Sort, Totals, list_nodes},
        text::{
            format_conditions, format_memory, format_owners, format_power, format_state,
            format_temperature, format_utilization,
        },
    },
    terminal::screen::Glyphs,
    top::{
        painter::Painter,
        panel::{draw_keys, draw_prompt},
        text::{ABSENT, align_left, align_right, format_time, wrap},
    },
};

/// The minimum size of the screen, which has room for the title, one node, and the keys.
const MIN_SIZE: (u16, u16) = (40, 8);

/// The width of the bar that shows the utilization of a GPU.
const GPU_BAR_WIDTH: u16 = 12;

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
    if screen.width < MIN_SIZE.0 || screen.height < MIN_SIZE.1 {
        painter.draw_minimum_size(MIN_SIZE);
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
    let mut parts = totals.format_states_and_readings();
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
        draw_node(&mut painter, body, &rows, app);
    } else if lines.is_empty() {
        let why = if app.filter.0.is_empty() {
            "No node is known yet."
        } else {
            "No GPU matches. Press esc to show all."
        };
        painter.draw_text(body.x, body.y, body.width, why, theme.dim);
    } else if app.view == NodeArrangement::List {
        node_views::draw_list(&mut painter, body, &lines, app);
    } else {
        node_views::draw_map(&mut painter, body, &lines, app);
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
        (totals.format_node_and_gpu_counts(), painter.theme.plain),
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
        return draw_prompt(painter, area, prompt);
    }
    let keys = BINDINGS
        .iter()
        .filter_map(|binding| Some((binding.shown, binding.short?, ())));
    draw_keys(painter, area, keys);
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

/// Draws the fleet's data about the selected node, which is shown until the node's live screen is
/// ready. If the live screen cannot be shown, the reason is drawn too.
fn draw_node(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, app: &FleetApp) {
    // All GPUs of the node are shown, including those that the filter excludes.
    let selected = app.selected.as_deref().unwrap_or_default();
    let all = list_nodes(rows, None, Sort::Name);
    let mut all = all.iter();
    let (theme, name) = (painter.theme, escape_untrusted(selected));
    let Some(line) = all.find(|line| rows.node_name(line.node) == selected) else {
        let text = format!("{name} is no longer part of the fleet. Press esc to go back.");
        painter.draw_text(area.x, area.y, area.width, &text, theme.notice);
        return;
    };
    let troubles = line.format_problems();
    let style = if line.is_alarming() {
        theme.alarm
    } else {
        theme.notice
    };
    painter.draw_pieces(
        area.x,
        area.y,
        area.width,
        &[
            (&*name, theme.strong),
            ("  ", theme.plain),
            (&*troubles, style),
        ],
    );
    let opening = "Opening the node's live stream...".to_owned();
    let (text, style) = match &app.node {
        Some(_) => (opening, theme.dim),
        None => (escape_untrusted(&app.refusal), theme.notice),
    };
    let opened = wrap(&text, area.width.into());
    let mut y = area.y + 2;
    let last = area.bottom().saturating_sub(opened.len() as u16 + 1);
    for row in &line.gpus {
        if y >= last {
            break;
        }
        let place = Rect {
            y,
            height: 1,
            ..area
        };
        draw_gpu(painter, place, rows, *row);
        y += 1;
        let remarks = format_conditions(rows, *row);
        if !remarks.is_empty() && y < last {
            let room = area.width.saturating_sub(3);
            painter.draw_text(area.x + 3, y, room, &remarks, theme.notice);
            y += 1;
        }
    }
    if line.gpus.is_empty() {
        painter.draw_text(
            area.x,
            y,
            area.width,
            "No GPUs of this node are listed.",
            theme.dim,
        );
    }
    for (y, line) in (last + 1..area.bottom()).zip(&opened) {
        painter.draw_text(area.x, y, area.width, line, style);
    }
}

fn draw_gpu(painter: &mut Painter<'_>, area: Rect, rows: &Rows<'_>, row: usize) {
    let theme = painter.theme;
    let FleetLine { sum, .. } = FleetLine::from_gpu(rows, row);
    let with_unit = |text: String, unit: &str| {
        if text == ABSENT {
            text
        } else {
            format!("{text} {unit}")
        }
    };
    let index = if rows.has_gpu_rows() {
        rows.fleet.gpus.index[row].to_string()
    } else {
        "all".to_owned()
    };
    let mut x = area.x
        + painter.draw_text(
            area.x,
            area.y,
            area.width,
            &align_right(&index, 3),
            theme.strong,
        )
        + 1;
    let share = sum.value(UTILIZATION).map(|busy| busy / 100.0);
    painter.draw_bar(x, area.y, GPU_BAR_WIDTH, share, theme.utilization);
    x += GPU_BAR_WIDTH + 1;
    let parts = [
        (
            align_right(&with_unit(format_utilization(&sum), "%"), 6),
            theme.utilization,
        ),
        (
            align_right(&format!("{} GiB", format_memory(&sum)), 16),
            theme.memory,
        ),
        (align_right(&format_power(&sum), 8), theme.power),
        (
            align_right(&with_unit(format_temperature(&sum), "C"), 6),
            theme.temperature,
        ),
        (
            format!("  {}", align_left(&format_state(rows, row), 12)),
            theme.plain,
        ),
        (format!(" {}", format_owners(rows, row)), theme.dim),
    ];
    painter.draw_pieces(x, area.y, area.right().saturating_sub(x), &parts);
}
