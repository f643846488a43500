//! A line per GPU.

use super::nodes::{columns, name, short_model};
use crate::{
    fleet::{
        nodes::{Sort, gpus},
        rows::{Measured, Rows},
        text::{condition, memory, owner, use_of, watts, whole},
    },
    run::columns::NONE,
    table::style::{DIM, paint},
};

const COLUMNS: usize = 10;

pub(super) fn lines(
    rows: &Rows<'_>,
    shown: Option<&[bool]>,
    sort: Sort,
    terminal: Option<usize>,
) -> String {
    if !rows.is_by_gpu() {
        return "There are too many GPUs to list: nodes alone are read. Use --table, or --json for one node.\n"
            .to_owned();
    }
    let order = gpus(rows, shown, sort);
    if order.is_empty() {
        return "No GPU matches.\n".to_owned();
    }
    let cells: Vec<[String; COLUMNS]> = order.into_iter().map(|row| cells(rows, row)).collect();
    let headings: [(&str, bool, u8); COLUMNS] = [
        ("Node", true, 0),
        ("GPU", false, 0),
        ("Model", true, 5),
        ("State", true, 0),
        ("Util %", false, 0),
        ("Memory GiB", false, 0),
        ("Power", false, 3),
        ("C", false, 4),
        ("Owner", true, 1),
        ("Conditions", true, 2),
    ];
    let columns = columns(&headings, &cells, terminal);
    let lines = cells.iter().map(|cells| columns.line(cells) + "\n");
    std::iter::once(paint(DIM, &columns.headings()) + "\n")
        .chain(lines)
        .collect()
}

fn cells(rows: &Rows<'_>, row: usize) -> [String; COLUMNS] {
    let read = |measured| rows.reading(measured, row);
    let or_none = |text: String| {
        if text.is_empty() {
            NONE.to_owned()
        } else {
            text
        }
    };
    let owners: Vec<String> = rows.owners(row).map(owner).collect();
    let conditions: Vec<String> = rows
        .conditions(row)
        .iter()
        .map(|one| condition(&one.kind))
        .collect();
    [
        name(rows, rows.node(row)),
        rows.fleet.gpus.index[row].to_string(),
        rows.model(row).map_or_else(|| NONE.to_owned(), short_model),
        use_of(rows, row),
        whole(read(Measured::Utilization)),
        memory(read(Measured::MemoryUsed), read(Measured::MemoryTotal)),
        read(Measured::Power).map_or_else(|| NONE.to_owned(), watts),
        whole(read(Measured::Temperature)),
        or_none(owners.join(", ")),
        or_none(conditions.join(", ")),
    ]
}
