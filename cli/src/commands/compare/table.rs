//! A comparison for people.

use std::fmt::Write as _;

use gpumon_probe::{local_time::time_zone, model::Vendor, units::duration, untrusted::escaped};

use super::{
    super::figures::{FIGURES, Figure, Figures, divide, percent},
    Side, pairs,
};
use crate::{
    moment::shown,
    terminal::{
        columns::{Column, Columns},
        style::{STRONG, paint},
    },
};

pub(super) fn draw(sides: &[Side; 2], terminal: Option<usize>) -> String {
    let [a, b] = sides;
    let zone = time_zone();
    let mut text = String::new();
    for (letter, side) in ["A", "B"].iter().zip(sides) {
        let [from, to] = [side.from_ms, side.to_ms].map(|ms| shown(ms, &zone));
        let time = duration(side.duration_ms());
        let longer =
            divide(a.duration_ms() as f64, b.duration_ms() as f64).filter(|_| *letter == "B");
        let longer = longer
            .map(|ratio| format!(", {}", percent(ratio)))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  {}  {from} to {to} ({time}{longer})",
            paint(STRONG, letter),
            escaped(&side.name)
        );
    }
    let mut rows = Vec::new();
    if pairs(sides).count() != 1 {
        rows.extend(group("All GPUs", [Some(&a.all), Some(&b.all)]));
    }
    for (gpu, figures) in pairs(sides) {
        let name = gpu.name.as_deref().map(Vendor::strip_from);
        let name = format!("GPU {} {}", gpu.index, name.unwrap_or_default());
        rows.extend(group(&escaped(name.trim_end()), figures));
    }
    let first = [Column::align_left("", 0), Column::align_left("", 0)].into_iter();
    let all: Vec<_> = first.chain(FIGURES.iter().map(Figure::column)).collect();
    let columns = Columns::new(&all, &rows, terminal);
    text += "\n";
    text += &columns.headings();
    for row in &rows {
        text += &(columns.line(row) + "\n");
    }
    text
}

/// Returns the rows of A, of B, and of B compared with A.
fn group(name: &str, figures: [Option<&Figures>; 2]) -> Vec<Vec<String>> {
    let row =
        |side: &str, cells: Vec<String>| [vec![String::new(), side.to_owned()], cells].concat();
    let mut rows = Vec::new();
    for (side, figures) in ["A", "B"].into_iter().zip(figures) {
        rows.extend(figures.map(|figures| row(side, figures.cells().collect())));
    }
    if let [Some(a), Some(b)] = figures {
        rows.push(row("B - A", b.compare_with(a).cells().collect()));
    }
    if let Some(first) = rows.first_mut() {
        name.clone_into(&mut first[0]);
    }
    rows
}
