//! The views of the nodes of a fleet, with one cell per GPU. The list has one line per node, with
//! the node's totals and problems. The map shows as many nodes as fit.

use gpumon_fleet::{
    Rows,
    model::{GpuState, MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION},
};
use ratatui::{layout::Rect, style::Style};
use unicode_width::UnicodeWidthStr;

use super::app::{FleetApp, NodeCapacity};
use crate::{
    fleet::{
        nodes::FleetLine,
        text::{format_memory, format_power, format_temperature, format_utilization},
    },
    terminal::{
        columns::{Part, choose_parts},
        screen::Glyphs,
        units::format_optional,
    },
    top::{
        painter::Painter,
        text::{ABSENT, align_left, align_right, cut},
        theme::Theme,
    },
};

/// The width of a GPU's cell in the list, including a gap of one column.
const LIST_CELL_WIDTH: usize = 4;

/// The minimum width for a node's problems and users. If less space remains, some numbers are
/// omitted.
const MIN_REMARKS_WIDTH: usize = 14;

/// The maximum width of a node's name in the list.
const MAX_NAME_WIDTH: usize = 28;

/// The maximum number of cells per node.
const MAX_CELLS: usize = 16;

/// The number of lines below the map with details of the selected node.
const MAP_DETAIL_LINES: u16 = 2;

/// The temperature of an idle board, which is drawn with the lightest shade. The constant below is
/// the temperature at which boards slow down, which is drawn with the darkest shade.
const COOL_CELSIUS: f64 = 25.0;
const HOT_CELSIUS: f64 = 90.0;

/// Draws the list, with as many lines as fit.
pub(super) fn draw_list(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[FleetLine<'_>],
    app: &mut FleetApp,
) {
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    app.room = NodeCapacity {
        nodes: room,
        in_a_row: 1,
    };
    let place = app.selected_position(lines);
    app.first = find_first_visible(app.first, place, room, lines.len());
    let shown = &lines[app.first..(app.first + room).min(lines.len())];
    let names = shown
        .iter()
        .map(|line| line.escaped_node_name().width())
        .max();
    let names = names.unwrap_or(4).clamp(4, MAX_NAME_WIDTH);
    let cells = count_cells_per_node(shown)
        .min(usize::from(area.width).saturating_sub(names + 2) / LIST_CELL_WIDTH)
        .max(1);
    let taken = names + 1 + cells * LIST_CELL_WIDTH;
    let numbers = count_fitting_numbers(
        usize::from(area.width).saturating_sub(taken + 2 + MIN_REMARKS_WIDTH),
    );
    draw_list_heading(
        painter,
        area,
        names,
        taken,
        numbers,
        (app.first, shown.len(), lines.len()),
    );
    for (y, line) in (area.y + 1..).zip(shown) {
        let is_selected = place.is_some_and(|place| lines[place].node == line.node);
        let style = if line.is_alarming() {
            painter.theme.alarm
        } else {
            painter.theme.plain
        };
        let name = align_left(&cut(&line.escaped_node_name(), names), names);
        painter.draw_text(area.x, y, area.width, &name, style);
        let rows = line.rows;
        for row in line
            .gpus
            .iter()
            .filter(|row| gpu_cell_index(rows, **row) < cells)
        {
            let x = area.x + (names + 1 + gpu_cell_index(rows, *row) * LIST_CELL_WIDTH) as u16;
            let (symbol, style) =
                choose_cell_symbol(rows, *row, app.metric, painter.theme, painter.glyphs);
            // For the selected node, the cells contain numbers instead of shades.
            let text = if is_selected {
                align_right(&app.metric.format_reading(rows, *row), LIST_CELL_WIDTH - 1)
            } else {
                symbol.to_string().repeat(LIST_CELL_WIDTH - 1)
            };
            painter.draw_text(x, y, LIST_CELL_WIDTH as u16 - 1, &text, style);
        }
        let x = area.x + taken as u16;
        if line
            .gpus
            .iter()
            .any(|row| gpu_cell_index(rows, *row) >= cells)
        {
            painter.draw_text(x.saturating_sub(1), y, 1, "+", painter.theme.dim);
        }
        let row = Rect {
            y,
            height: 1,
            ..area
        };
        let rest = Rect {
            x,
            width: area.right().saturating_sub(x),
            ..row
        };
        draw_numbers_and_remarks(painter, rest, line, numbers);
        if is_selected {
            let width = names as u16;
            painter.highlight(Rect { width, ..row }, painter.theme.selected);
        }
        let name = rows.node_name(line.node).to_owned();
        app.hits.push((row, name));
    }
}

type NumberColumn = (&'static str, usize, fn(&FleetLine<'_>) -> String);

/// The numbers shown for a node, with their widths, most important first.
const NUMBER_COLUMNS: [NumberColumn; 4] = [
    ("util", 5, |line| match format_utilization(&line.sum) {
        absent if absent == ABSENT => absent,
        percent => percent + "%",
    }),
    ("memory GiB", 12, |line| format_memory(&line.sum)),
    ("power", 8, |line| format_power(&line.sum)),
    ("max C", 6, |line| format_temperature(&line.sum)),
];

/// Returns how many of the numbers fit into `columns` columns.
fn count_fitting_numbers(columns: usize) -> usize {
    let parts = (0..)
        .zip(&NUMBER_COLUMNS)
        .map(|(rank, (_, width, _))| Part {
            width: *width,
            rank,
            rest: 0,
        });
    let fits = choose_parts(&parts.collect::<Vec<_>>(), 0, columns);
    fits.into_iter().filter(|fits| *fits).count()
}

fn draw_list_heading(
    painter: &mut Painter<'_>,
    area: Rect,
    names: usize,
    taken: usize,
    numbers: usize,
    (first, shown, all): (usize, usize, usize),
) {
    let dim = painter.theme.dim;
    painter.draw_text(area.x, area.y, area.width, "node", dim);
    painter.draw_text(
        area.x + names as u16 + 1,
        area.y,
        area.width,
        "GPU 0..",
        dim,
    );
    let mut x = area.x + taken as u16;
    for (text, width, _) in &NUMBER_COLUMNS[..numbers] {
        painter.draw_text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &align_right(text, *width),
            dim,
        );
        x += *width as u16;
    }
    let which = format!("{} to {} of {all}", first + 1, first + shown);
    let room = area.right().saturating_sub(x + 2);
    if all > shown && which.width() <= room.into() {
        painter.draw_text_right(x + 2, area.y, room, &which, dim);
    }
}

/// Draws the numbers of a node, followed by its problems and users.
fn draw_numbers_and_remarks(
    painter: &mut Painter<'_>,
    area: Rect,
    line: &FleetLine<'_>,
    numbers: usize,
) {
    let mut x = area.x;
    for (_, width, text) in &NUMBER_COLUMNS[..numbers] {
        let room = area.right().saturating_sub(x);
        let text = align_right(&text(line), *width);
        painter.draw_text(x, area.y, room, &text, painter.theme.plain);
        x += *width as u16;
    }
    x += 2;
    let troubles = line.format_problems();
    let gap = if troubles.is_empty() { "" } else { "  " };
    let style = if line.is_alarming() {
        painter.theme.alarm
    } else {
        painter.theme.notice
    };
    let users = line.list_users().join(" ");
    let parts = [
        (&*troubles, style),
        (gap, style),
        (&*users, painter.theme.dim),
    ];
    painter.draw_pieces(x, area.y, area.right().saturating_sub(x), &parts);
}

/// Draws the map, and details of the selected node below it.
pub(super) fn draw_map(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[FleetLine<'_>],
    app: &mut FleetApp,
) {
    let cells = count_cells_per_node(lines);
    // Each node is preceded by one column for the selection mark, and the last node is also
    // followed by one column.
    let in_a_row = usize::from(area.width.saturating_sub(1)) / (cells + 1);
    let height = usize::from(area.height.saturating_sub(MAP_DETAIL_LINES));
    let (in_a_row, height) = (in_a_row.max(1), height.max(1));
    app.room = NodeCapacity {
        nodes: in_a_row * height,
        in_a_row,
    };
    let place = app.selected_position(lines);
    let many = lines.len().div_ceil(in_a_row);
    let top = find_first_visible(
        app.first / in_a_row,
        place.map(|place| place / in_a_row),
        height,
        many,
    );
    app.first = top * in_a_row;
    let shown = &lines[app.first.min(lines.len())..(app.first + app.room.nodes).min(lines.len())];
    for (at, line) in shown.iter().enumerate() {
        let rows = line.rows;
        let x = area.x + 1 + (at % in_a_row * (cells + 1)) as u16;
        let y = area.y + (at / in_a_row) as u16;
        for row in line
            .gpus
            .iter()
            .filter(|row| gpu_cell_index(rows, **row) < cells)
        {
            let (symbol, style) =
                choose_cell_symbol(rows, *row, app.metric, painter.theme, painter.glyphs);
            painter.draw_cell(x + gpu_cell_index(rows, *row) as u16, y, symbol, style);
        }
        if line.gpus.is_empty() {
            let unknown = "?".repeat(cells.min(line.sum.gpus.max(1) as usize));
            painter.draw_text(x, y, cells as u16, &unknown, painter.theme.alarm);
        }
        let node = Rect {
            x,
            y,
            width: cells as u16,
            height: 1,
        };
        if place == Some(app.first + at) {
            painter.draw_text(x - 1, y, 1, "[", painter.theme.strong);
            painter.draw_text(x + cells as u16, y, 1, "]", painter.theme.strong);
        }
        let name = rows.node_name(line.node).to_owned();
        app.hits.push((node, name));
    }
    let about = Rect {
        y: area.bottom().saturating_sub(MAP_DETAIL_LINES),
        height: MAP_DETAIL_LINES,
        ..area
    };
    if let Some(line) = place.and_then(|place| lines.get(place)) {
        draw_selected_node(painter, about, line, app);
    } else {
        let text = format!(
            "{} of {} nodes; select one with the arrow keys",
            shown.len(),
            lines.len()
        );
        painter.draw_text(about.x, about.y + 1, about.width, &text, painter.theme.dim);
    }
}

fn draw_selected_node(painter: &mut Painter<'_>, area: Rect, line: &FleetLine<'_>, app: &FleetApp) {
    let numbers = line.gpus.iter();
    let numbers: Vec<String> = numbers
        .map(|row| app.metric.format_reading(line.rows, *row))
        .collect();
    let parts = [
        (line.escaped_node_name(), painter.theme.strong),
        (
            format!("  {}: {}", app.metric.label(), numbers.join(" ")),
            painter.theme.plain,
        ),
        (
            format!("  {}", line.format_problems()),
            painter.theme.notice,
        ),
    ];
    painter.draw_pieces(area.x, area.y, area.width, &parts);
    let (memory, power) = (format_memory(&line.sum), format_power(&line.sum));
    let text = format!("{memory} GiB  {power}  {}", line.list_users().join(" "));
    painter.draw_text(area.x, area.y + 1, area.width, &text, painter.theme.dim);
}

/// Returns the index of the first visible node after scrolling. Scrolls from `before` only as far
/// as needed to make the node at `place` visible.
fn find_first_visible(before: usize, place: Option<usize>, room: usize, all: usize) -> usize {
    let last = all.saturating_sub(room);
    place
        .map_or(before, |place| {
            before.clamp((place + 1).saturating_sub(room), place)
        })
        .min(last)
}

// Cells. The shade and color of a cell show a metric; a letter shows a state that is more important
// than the metric.

/// The metric that cells show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Metric {
    #[default]
    Utilization,
    Memory,
    Power,
    Temperature,
    Conditions,
}

impl Metric {
    pub(super) const ALL: [Self; 5] = [
        Self::Utilization,
        Self::Memory,
        Self::Power,
        Self::Temperature,
        Self::Conditions,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Utilization => "utilization",
            Self::Memory => "memory",
            Self::Power => "power",
            Self::Temperature => "temperature",
            Self::Conditions => "conditions",
        }
    }

    /// Returns the ID of the metric. Readings, and the reasons for missing readings, are recorded
    /// under this ID.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Utilization => UTILIZATION,
            Self::Memory => MEMORY_USED,
            Self::Power => POWER,
            Self::Temperature => TEMPERATURE,
            Self::Conditions => "conditions",
        }
    }

    /// Returns the value as a fraction from 0 to 1, or `None` if the value is unknown.
    fn read_fraction(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        let value = rows.value(self.id(), row);
        let share = match self {
            Self::Utilization => value? / 100.0,
            Self::Memory => value? / rows.value(MEMORY_TOTAL, row)?,
            Self::Power => value? / rows.value(POWER_LIMIT, row)?,
            Self::Temperature => (value? - COOL_CELSIUS) / (HOT_CELSIUS - COOL_CELSIUS),
            Self::Conditions => {
                let worst = rows
                    .list_conditions(row)
                    .first()
                    .map_or(0, |condition| condition.severity);
                f64::from(worst.min(3)) / 3.0
            }
        };
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// Formats the value in the metric's unit, with at most three characters.
    fn format_reading(self, rows: &Rows<'_>, row: usize) -> String {
        match self {
            Self::Utilization | Self::Temperature | Self::Power => {
                let value = rows.value(self.id(), row);
                format_optional(value, |value| format!("{value:.0}"))
            }
            Self::Memory => {
                let share = self.read_fraction(rows, row);
                format_optional(share, |share| format!("{:.0}", share * 100.0))
            }
            Self::Conditions => match rows.list_conditions(row).len() {
                0 => "-".to_owned(),
                many => many.to_string(),
            },
        }
    }

    fn style(self, theme: &Theme, share: f64) -> Style {
        match self {
            Self::Utilization => theme.utilization,
            Self::Memory => theme.memory,
            Self::Power => theme.power,
            Self::Temperature => theme.temperature,
            Self::Conditions if share > 0.9 => theme.alarm,
            Self::Conditions => theme.notice,
        }
    }
}

/// Returns the number of cells per node, which is the same for all nodes: the highest GPU index
/// plus one, but at most [`MAX_CELLS`].
fn count_cells_per_node(lines: &[FleetLine<'_>]) -> usize {
    let of_line = |line: &FleetLine<'_>| {
        let places = line
            .gpus
            .iter()
            .map(|row| gpu_cell_index(line.rows, *row) + 1);
        places.max()
    };
    let all = lines.iter().filter_map(of_line).max();
    all.unwrap_or(1).clamp(1, MAX_CELLS)
}

/// Returns the position of a GPU's cell within its node. Hiding other GPUs does not change the
/// position.
fn gpu_cell_index(rows: &Rows<'_>, row: usize) -> usize {
    rows.fleet.gpus.index[row] as usize
}

/// Returns the character that fills a cell, and its style.
fn choose_cell_symbol(
    rows: &Rows<'_>,
    row: usize,
    metric: Metric,
    theme: &Theme,
    glyphs: Glyphs,
) -> (char, Style) {
    match rows.state(row) {
        GpuState::Lost => return ('x', theme.alarm),
        GpuState::Unknown => return ('?', theme.dim),
        _ => {}
    }
    match metric.read_fraction(rows, row) {
        None => ('?', theme.dim),
        // An idle GPU is drawn as a dot to distinguish it from a GPU with a low load.
        Some(share) if share <= 0.005 => {
            (if glyphs == Glyphs::Ascii { '.' } else { '·' }, theme.dim)
        }
        Some(share) => (
            choose_shade_character(share, glyphs),
            metric.style(theme, share),
        ),
    }
}

fn choose_shade_character(share: f64, glyphs: Glyphs) -> char {
    let shades = if glyphs == Glyphs::Ascii {
        ['-', '+', '*', '#']
    } else {
        ['░', '▒', '▓', '█']
    };
    shades[((share * 4.0) as usize).min(3)]
}
