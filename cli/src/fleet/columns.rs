//! The columns of tables of nodes and GPUs.

use gpumon_fleet::model::GpuState;
use gpumon_probe::{model::Vendor, untrusted::escaped};
use unicode_width::UnicodeWidthStr;

use super::{
    nodes::Line,
    text::{
        format_conditions, format_memory, format_owners, format_power, format_state,
        format_temperature, format_utilization,
    },
};
use crate::{
    run::columns::{Align, Column, Columns, NONE},
    table::{
        Layout, line,
        style::{DIM, paint},
    },
};

/// The widest that a name may be.
const LONGEST_NAME: usize = 40;
const LONGEST_MODEL: usize = 24;

/// A column of a table.
pub(crate) struct TableColumn<T> {
    heading: &'static str,
    is_left: bool,
    /// Columns with the highest rank are left out first if there is no room; those with 0 stay.
    rank: u8,
    cell: fn(&T) -> String,
}

pub(crate) const fn left_column<T>(
    heading: &'static str,
    rank: u8,
    cell: fn(&T) -> String,
) -> TableColumn<T> {
    TableColumn {
        heading,
        is_left: true,
        rank,
        cell,
    }
}

pub(crate) const fn right_column<T>(
    heading: &'static str,
    rank: u8,
    cell: fn(&T) -> String,
) -> TableColumn<T> {
    TableColumn {
        is_left: false,
        ..left_column(heading, rank, cell)
    }
}

/// Returns the columns of a table of nodes.
pub(crate) fn node_columns<'a>() -> [TableColumn<Line<'a>>; 10] {
    [
        left_column("Node", 0, name),
        left_column("GPUs", 5, |line| {
            let mut models = line
                .gpus
                .iter()
                .filter_map(|row| line.rows.model_name(*row));
            let model = models.next().map(short_model).unwrap_or_default();
            format!("{} {model}", line.sum.gpus).trim_end().to_owned()
        }),
        right_column("Util %", 0, |line| format_utilization(&line.sum)),
        right_column("Memory GiB", 0, |line| format_memory(&line.sum)),
        right_column("Power", 3, |line| format_power(&line.sum)),
        right_column("Max C", 2, |line| format_temperature(&line.sum)),
        right_column("Busy", 4, |line| count(line, GpuState::Busy)),
        right_column("Idle", 4, |line| count(line, GpuState::Idle)),
        right_column("Free", 0, |line| count(line, GpuState::Free)),
        left_column("Users", 1, |line| match line.users().as_slice() {
            [] => NONE.to_owned(),
            [first, second, others @ ..] if others.len() > 1 => {
                format!("{first} {second} and {} more", others.len())
            }
            some => some.join(" "),
        }),
    ]
}

/// Returns the columns of a table of GPUs.
pub(crate) fn gpu_columns<'a>() -> [TableColumn<Line<'a>>; 10] {
    [
        left_column("Node", 0, name),
        right_column("GPU", 0, |line| {
            line.rows.fleet.gpus.index[line.gpus[0]].to_string()
        }),
        left_column("Model", 5, |line| {
            format_model(line.rows.model_name(line.gpus[0]))
        }),
        left_column("State", 0, |line| format_state(line.rows, line.gpus[0])),
        right_column("Util %", 0, |line| format_utilization(&line.sum)),
        right_column("Memory GiB", 0, |line| format_memory(&line.sum)),
        right_column("Power", 3, |line| format_power(&line.sum)),
        right_column("C", 4, |line| format_temperature(&line.sum)),
        left_column("Owner", 1, |line| {
            or_none(format_owners(line.rows, line.gpus[0]))
        }),
        left_column("Conditions", 2, |line| {
            or_none(format_conditions(line.rows, line.gpus[0]))
        }),
    ]
}

fn name(line: &Line<'_>) -> String {
    cut_text(&line.name(), LONGEST_NAME)
}

fn count(line: &Line<'_>, state: GpuState) -> String {
    if line.gpus.is_empty() {
        NONE.to_owned()
    } else {
        line.sum.in_state(state).to_string()
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// Returns the name of a GPU, or a dash.
pub(crate) fn format_model(name: Option<&str>) -> String {
    name.map_or_else(|| NONE.to_owned(), short_model)
}

/// `H100 80GB HBM3` of `NVIDIA H100 80GB HBM3`.
fn short_model(name: &str) -> String {
    cut_text(&escaped(Vendor::strip_from(name)), LONGEST_MODEL)
}

fn cut_text(text: &str, most: usize) -> String {
    let ascii = Layout {
        width: None,
        height: None,
        unicode: false,
    };
    line::cut(text, most, ascii)
}

/// Returns a table whose columns are as wide as their widest cells. `remark` returns what follows
/// the line of an item.
pub(crate) fn format_table<T>(
    columns: &[TableColumn<T>],
    items: &[T],
    terminal: Option<usize>,
    remark: impl Fn(&Columns, &T) -> String,
) -> String {
    let cells_of = |item: &T| columns.iter().map(|column| (column.cell)(item)).collect();
    let cells: Vec<Vec<String>> = items.iter().map(cells_of).collect();
    let layout = columns.iter().enumerate().map(|(at, column)| {
        let cells = cells.iter().map(|cells| cells[at].width());
        let width = cells.fold(column.heading.width(), usize::max);
        Column {
            heading: column.heading,
            align: if column.is_left {
                Align::Left(width)
            } else {
                Align::Right(width)
            },
            rank: column.rank,
        }
    });
    let layout = Columns::new(&layout.collect::<Vec<_>>(), terminal);
    let lines = items
        .iter()
        .zip(&cells)
        .map(|(item, cells)| format!("{}\n{}", layout.line(cells), remark(&layout, item)));
    std::iter::once(paint(DIM, &layout.headings()) + "\n")
        .chain(lines)
        .collect()
}
