//! `gpumon notebook`: reports the costs that are stored in notebooks.

mod file;

use std::path::PathBuf;

use clap::Subcommand;
use gpumon_probe::{
    model::StoredCost,
    units::{byte_size, three_digits_of},
    untrusted::escaped,
};
use serde_json::{Value, json};

use self::file::{CellReport, Notebook};
use crate::{
    exit::Failure,
    terminal::{
        columns::{Column, Columns},
        output::print_report,
        style::{DIM, STRONG, paint},
        text::cut,
        units::{ABSENT, elapsed, priced_joules},
    },
};

/// Report the cost of a notebook's cells, as stored in its file
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct NotebookArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon notebook report train.ipynb
      Print what each cell cost: duration, GPU time, peak memory and energy, the total first.
  papermill --engine gpumon train.ipynb out.ipynb && gpumon notebook report out.ipynb
      Run a notebook without a browser, and report on it.
  gpumon notebook report out.ipynb --json | jq .total.energy_joules
      Print the energy of all cells in joules.

Exit codes: 0 success, 1 error or no costs in the file, 2 invalid argument or no notebook";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print what each cell cost when it was run last
    ///
    /// JupyterLab stores the cost of each cell that held a GPU in the cell's metadata; so do
    /// papermill, nbconvert and nbclient with gpumon's hooks, without a browser. Peak memory of all
    /// cells is the maximum of one cell; duration, GPU time and energy are sums over the cells that
    /// are listed. A cost that does not belong to the cell's last run, because gpumon did not see
    /// that run or the cell was changed after it, is marked as an earlier run and is not in the
    /// sums.
    Report {
        /// Notebook file to report
        file: PathBuf,

        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &NotebookArgs) -> Result<(), Failure> {
    let Action::Report { file, json } = &args.action;
    let notebook = Notebook::read(file)?;
    print_report(
        *json,
        || as_json(&notebook),
        |terminal| draw(&notebook, terminal),
    )
}

/// Reads a notebook and formats both reports, for fuzzing.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(file: &std::path::Path) {
    if let Ok(notebook) = Notebook::read(file) {
        as_json(&notebook);
        draw(&notebook, None);
    }
}

/// The width of the code column if the output is no terminal, and its minimum width on a terminal.
const CODE: (usize, usize) = (60, 20);

const COLUMNS: [Column; 7] = [
    Column::align_right("Cell", 0),
    Column::align_right("Run", 1),
    Column::align_left("Code", 0).cut_down_to(CODE.1),
    Column::align_right("Duration", 0),
    Column::align_right("GPU time", 0),
    Column::align_right("Peak memory", 0),
    Column::align_left("Energy", 0),
];

/// Returns the total cost of the last runs of all cells; `None` if all costs are from earlier runs.
fn total(cells: &[CellReport]) -> Option<StoredCost> {
    let costs = || {
        cells
            .iter()
            .filter(|cell| !cell.is_earlier)
            .map(|cell| &cell.cost)
    };
    let sum = |value: fn(&StoredCost) -> Option<f64>| {
        costs()
            .filter_map(value)
            .reduce(|first, next| first + next)
            .map(three_digits_of)
    };
    Some(StoredCost {
        version: StoredCost::VERSION,
        duration_s: sum(|cost| Some(cost.duration_s))?,
        gpu_s: sum(|cost| cost.gpu_s),
        peak_memory_bytes: costs()
            .filter_map(|cost| cost.peak_memory_bytes)
            .reduce(f64::max),
        // A sum would be misleading: a cell may free memory that another cell used in an earlier
        // run.
        memory_change_bytes: None,
        energy_joules: sum(|cost| cost.energy_joules),
        shared: costs().any(|cost| cost.shared),
        gpus: gpus_of(costs()),
        run: None,
    })
}

/// Returns the distinct names of the GPUs.
fn gpus_of<'a>(costs: impl Iterator<Item = &'a StoredCost>) -> Vec<String> {
    let mut gpus: Vec<String> = Vec::new();
    for name in costs.flat_map(|cost| &cost.gpus) {
        if !gpus.contains(name) {
            gpus.push(name.clone());
        }
    }
    gpus
}

fn as_json(notebook: &Notebook) -> Value {
    let cells: Vec<_> = notebook
        .cells
        .iter()
        .map(|cell| {
            json!({
                "cell": cell.place,
                "execution_count": cell.execution_count,
                "line": cell.line,
                "earlier_run": cell.is_earlier,
                "cost": cell.cost,
            })
        })
        .collect();
    json!({ "total": total(&notebook.cells), "cells": cells, "code_cells": notebook.code_cells })
}

fn draw(notebook: &Notebook, terminal: Option<usize>) -> String {
    let total = total(&notebook.cells);
    let mut lines: Vec<_> = total
        .iter()
        .map(|total| cells_of(String::new(), String::new(), "All cells", total, false))
        .collect();
    let totals = lines.len();
    lines.extend(notebook.cells.iter().map(|cell| {
        let run = cell
            .execution_count
            .map_or_else(|| ABSENT.to_owned(), |count| format!("[{count}]"));
        cells_of(
            cell.place.to_string(),
            run,
            &cell.line,
            &cell.cost,
            cell.is_earlier,
        )
    }));
    if terminal.is_none() {
        for line in &mut lines {
            line[2] = cut(&line[2], CODE.0);
        }
    }
    let columns = Columns::new(&COLUMNS, &lines, terminal);
    let mut text = format!("{}\n\n{}", head(notebook), columns.headings());
    for (at, line) in lines.iter().enumerate() {
        let line = columns.line(line);
        text += &if at < totals {
            paint(STRONG, &line)
        } else {
            line
        };
        text += "\n";
    }
    if notebook.cells.iter().any(|cell| cell.is_earlier) {
        text += &columns.format_remark(
            0,
            DIM,
            "earlier run: the cell was changed, cleared or run again after this was measured. It \
             is not in the sum of all cells.",
        );
    }
    if notebook.cells.iter().any(|cell| cell.cost.shared) {
        text += &columns.format_remark(
            0,
            DIM,
            "shared: others held a GPU at the same time, and the energy has what they used, too.",
        );
    }
    if notebook.unknown > 0 {
        let cells = if notebook.unknown == 1 {
            "1 more cell keeps".to_owned()
        } else {
            format!("{} more cells keep", notebook.unknown)
        };
        let remark =
            format!("{cells} a cost in a form that this version does not know: update gpumon.");
        text += &columns.format_remark(0, DIM, &remark);
    }
    text
}

fn head(notebook: &Notebook) -> String {
    let names = gpus_of(notebook.cells.iter().map(|cell| &cell.cost));
    let names: Vec<_> = names.iter().map(|name| escaped(name)).collect();
    format!(
        "{} of {} code cells used a GPU: {}",
        notebook.cells.len(),
        notebook.code_cells,
        names.join(", ")
    )
}

fn cells_of(
    place: String,
    run: String,
    line: &str,
    cost: &StoredCost,
    is_earlier: bool,
) -> [String; COLUMNS.len()] {
    let known = |value: Option<f64>, format: fn(f64) -> String| {
        value.map_or_else(|| ABSENT.to_owned(), format)
    };
    let energy = known(cost.energy_joules, priced_joules);
    [
        place,
        run,
        escaped(line),
        elapsed(cost.duration_s),
        known(cost.gpu_s, elapsed),
        known(cost.peak_memory_bytes, byte_size),
        [
            Some(&*energy),
            cost.shared.then_some("shared"),
            is_earlier.then_some("earlier run"),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" "),
    ]
}

#[cfg(test)]
mod tests {
    use crate::terminal::style::plain;

    use super::*;

    fn cell_with(place: usize, line: &str, cost: StoredCost) -> CellReport {
        CellReport {
            place,
            execution_count: Some(place as u32 + 10),
            line: line.to_owned(),
            cost,
            is_earlier: false,
        }
    }

    fn make_notebook() -> Notebook {
        let cost = StoredCost {
            version: 1,
            duration_s: 12.3,
            gpu_s: Some(9.81),
            peak_memory_bytes: Some(65_498_251_264.0),
            memory_change_bytes: Some(0.0),
            energy_joules: Some(6100.0),
            shared: false,
            gpus: vec!["NVIDIA H200".to_owned()],
            run: None,
        };
        let little = StoredCost {
            duration_s: 0.053,
            gpu_s: None,
            peak_memory_bytes: None,
            energy_joules: None,
            ..cost.clone()
        };
        let shared = StoredCost {
            duration_s: 240.0,
            energy_joules: Some(340.0),
            shared: true,
            ..cost.clone()
        };
        let long = "losses = [train_one_epoch(model, optimizer, loader, device) for epoch in \
                    range(EPOCHS)]  # slow";
        Notebook {
            cells: vec![
                cell_with(2, "import torch", little),
                cell_with(5, long, cost),
                cell_with(12, "evil \u{1b}[31m", shared),
            ],
            code_cells: 9,
            unknown: 1,
        }
    }

    #[test]
    fn total_comes_first_and_unknown_is_dash() {
        insta::assert_snapshot!(plain(&draw(&make_notebook(), None)));
    }

    #[test]
    fn narrow_terminal_cuts_code_and_counts() {
        insta::assert_snapshot!(plain(&draw(&make_notebook(), Some(70))));
    }

    #[test]
    fn earlier_runs_are_marked_and_not_summed() {
        let mut notebook = make_notebook();
        notebook.cells[1].is_earlier = true;
        insta::assert_snapshot!(plain(&draw(&notebook, None)));
        let json = as_json(&notebook);
        assert_eq!(json["total"]["duration_s"], 240.0);
        assert_eq!(json["cells"][1]["earlier_run"], true);
        assert_eq!(json["cells"][2]["earlier_run"], false);

        notebook
            .cells
            .iter_mut()
            .for_each(|cell| cell.is_earlier = true);
        assert_eq!(as_json(&notebook)["total"], Value::Null);
        assert!(
            !plain(&draw(&notebook, None)).contains("All cells  "),
            "there is no line for the total"
        );
    }

    #[test]
    fn programs_get_the_same() {
        let json = as_json(&make_notebook());
        assert_eq!(json["total"]["duration_s"], 252.0);
        assert_eq!(json["total"]["energy_joules"], 6440.0);
        assert_eq!(json["total"]["shared"], true);
        assert_eq!(json["cells"][0]["cost"]["gpu_s"], Value::Null);
        assert_eq!(json["cells"][2]["cell"], 12);
    }
}
