//! A line per node.

use anstyle::Style;
use gpumon_probe::untrusted::escaped;
use unicode_width::UnicodeWidthStr;

use crate::{
    fleet::{
        nodes::{NodeSum, Sort, nodes},
        rows::Rows,
        text::{memory, troubles, watts, whole},
    },
    run::columns::{Align, Column, Columns, NONE},
    table::style::{ALARM, DIM, NOTICE, paint},
};

/// The widest that a name may be.
pub(super) const LONGEST_NAME: usize = 40;

const COLUMNS: usize = 10;

pub(super) fn lines(
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    sort: Sort,
    terminal: Option<usize>,
) -> String {
    let sums = nodes(rows, shown, sort);
    if sums.is_empty() {
        return "No GPU matches.\n".to_owned();
    }
    let cells: Vec<[String; COLUMNS]> = sums.iter().map(|sum| cells(rows, sum)).collect();
    let headings: [(&str, bool, u8); COLUMNS] = [
        ("Node", true, 0),
        ("GPUs", true, 5),
        ("Util %", false, 0),
        ("Memory GiB", false, 0),
        ("Power", false, 3),
        ("Max C", false, 2),
        ("Busy", false, 4),
        ("Idle", false, 4),
        ("Free", false, 0),
        ("Users", true, 1),
    ];
    let columns = columns(&headings, &cells, terminal);
    let mut text = format!("{}\n", paint(DIM, &columns.headings()));
    for (sum, cells) in sums.iter().zip(&cells) {
        text += &columns.line(cells);
        text.push('\n');
        let troubles = troubles(rows, sum);
        if !troubles.is_empty() {
            text += &columns.remark(2, style(sum), &troubles.join("; "));
        }
    }
    text
}

/// As wide as their widest cells.
pub(super) fn columns<const N: usize>(
    headings: &[(&'static str, bool, u8); N],
    cells: &[[String; N]],
    terminal: Option<usize>,
) -> Columns {
    let column = |(at, (heading, is_left, rank)): (usize, &(&'static str, bool, u8))| {
        let width = cells
            .iter()
            .map(|cells| cells[at].width())
            .max()
            .unwrap_or(0)
            .max(heading.width());
        Column {
            heading,
            align: if *is_left {
                Align::Left(width)
            } else {
                Align::Right(width)
            },
            rank: *rank,
        }
    };
    let all: Vec<Column> = headings.iter().enumerate().map(column).collect();
    Columns::new(&all, terminal)
}

fn style(sum: &NodeSum) -> Style {
    if sum.rank <= 2 { ALARM } else { NOTICE }
}

fn cells(rows: &Rows<'_>, sum: &NodeSum) -> [String; COLUMNS] {
    let model = sum
        .rows
        .iter()
        .find_map(|row| rows.model(*row))
        .map(short_model)
        .unwrap_or_default();
    let users: Vec<String> = sum.users(rows).into_iter().map(escaped).collect();
    let users = match users.as_slice() {
        [] => NONE.to_owned(),
        [first, second, _, _, ..] => format!("{first} {second} and {} more", users.len() - 2),
        some => some.join(" "),
    };
    let many = |many: u32| {
        if sum.rows.is_empty() {
            NONE.to_owned()
        } else {
            many.to_string()
        }
    };
    [
        name(rows, sum.node),
        format!("{} {model}", sum.gpus).trim_end().to_owned(),
        whole(sum.utilization),
        memory(sum.memory_used, sum.memory_total),
        sum.power.map_or_else(|| NONE.to_owned(), watts),
        whole(sum.temperature),
        many(sum.busy),
        many(sum.idle),
        many(sum.free),
        users,
    ]
}

/// Names come from strangers.
pub(super) fn name(rows: &Rows<'_>, node: usize) -> String {
    shortened(
        &escaped(rows.fleet.nodes.name.get(node).map_or("", String::as_str)),
        LONGEST_NAME,
    )
}

pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if short.width() + 2 > most {
            break;
        }
        short.push(letter);
    }
    short + "~"
}

/// `H100 80GB HBM3` of `NVIDIA H100 80GB HBM3`.
pub(super) fn short_model(name: &str) -> String {
    shortened(&escaped(name.strip_prefix("NVIDIA ").unwrap_or(name)), 24)
}
