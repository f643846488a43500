//! A comparison for people.

use std::fmt::Write as _;

use gpumon_probe::{local_time::time_zone, model::Vendor, units::duration, untrusted::escaped};

use super::{
    super::figures::{FIGURES, Figures, divide, percent},
    Side, pairs,
};
use crate::{
    moment::shown,
    run::columns::{Align, Column, Columns, terminal_columns},
    table::style::{DIM, STRONG, paint},
};

pub(super) fn draw(sides: &[Side; 2]) -> String {
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
    let is_one = pairs(sides).count() == 1;
    let names: Vec<String> = pairs(sides)
        .map(|(gpu, _)| {
            let name = gpu
                .name
                .as_deref()
                .map(Vendor::strip_from)
                .unwrap_or_default();
            escaped(format!("GPU {} {name}", gpu.index).trim_end())
        })
        .collect();
    let widest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max("All GPUs".len());
    let mut all = vec![
        Column {
            heading: "",
            align: Align::Left(widest),
            rank: 0,
        },
        Column {
            heading: "",
            align: Align::Left(5),
            rank: 0,
        },
    ];
    all.extend(FIGURES.iter().map(|figure| Column {
        heading: figure.heading,
        align: Align::Right(figure.heading.len().max(9)),
        rank: figure.rank,
    }));
    let columns = Columns::new(&all, terminal_columns());
    let _ = write!(text, "\n{}\n", paint(DIM, &columns.headings()));
    if !is_one {
        text += &group(&columns, "All GPUs", [Some(&a.all), Some(&b.all)]);
    }
    for (name, (_, figures)) in names.iter().zip(pairs(sides)) {
        text += &group(&columns, name, figures);
    }
    text
}

/// The lines of A, of B, and of what B is beside A.
fn group(columns: &Columns, name: &str, figures: [Option<&Figures>; 2]) -> String {
    let line = |name: &str, side: &str, cells: Vec<String>| {
        let cells: Vec<String> = [name.to_owned(), side.to_owned()]
            .into_iter()
            .chain(cells)
            .collect();
        columns.line(&cells) + "\n"
    };
    let [a, b] = figures;
    let mut text = String::new();
    let mut name = name;
    for (side, figures) in [("A", a), ("B", b)] {
        if let Some(figures) = figures {
            text += &line(std::mem::take(&mut name), side, figures.cells().collect());
        }
    }
    if let (Some(a), Some(b)) = (a, b) {
        text += &line("", "B - A", b.compare_with(a).cells().collect());
    }
    text
}
