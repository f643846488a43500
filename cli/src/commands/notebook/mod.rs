//! `gpumon notebook`: reports the costs that are stored in notebooks.

mod file;

use std::path::PathBuf;

use clap::Subcommand;
use gpumon_probe::{
    model::StoredCost,
    units::{format_byte_size, round_to_three_digits},
    untrusted::escape_untrusted,
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
        units::{ABSENT, format_elapsed, format_joules_with_cost},
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
    /// Print what each cell cost in its last run
    ///
    /// JupyterLab stores the cost of each cell that held a GPU in the cell's metadata; so do
    /// papermill, nbconvert and nbclient with gpumon's hooks, without a browser. Peak memory of all
    /// cells is the maximum of one cell; duration, GPU time and energy are sums over the listed
    /// cells. A cost that does not belong to the cell's last run, because gpumon did not see that
    /// run or the cell was changed after it, is marked as an earlier run and is not included in the
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
        || to_json(&notebook),
        |terminal| format_report(&notebook, terminal),
    )
}

/// Fuzz target that reads a notebook and formats both reports.
#[cfg(any(fuzzing, test))]
pub(crate) fn read_and_format(file: &std::path::Path) {
    if let Ok(notebook) = Notebook::read(file) {
        to_json(&notebook);
        format_report(&notebook, None);
    }
}

/// The width of the code column if the output is not a terminal, and the column's minimum width on
/// a terminal.
const CODE_WIDTHS: (usize, usize) = (60, 20);

const COLUMNS: [Column; 7] = [
    Column::new_right_aligned("Cell", 0),
    Column::new_right_aligned("Run", 1),
    Column::new_left_aligned("Code", 0).shrink_to(CODE_WIDTHS.1),
    Column::new_right_aligned("Duration", 0),
    Column::new_right_aligned("GPU time", 0),
    Column::new_right_aligned("Peak memory", 0),
    Column::new_left_aligned("Energy", 0),
];

/// Returns the total cost of all cells' last runs, or `None` if all costs are from earlier runs.
fn sum_costs(cells: &[CellReport]) -> Option<StoredCost> {
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
            .map(round_to_three_digits)
    };
    Some(StoredCost {
        version: StoredCost::VERSION,
        duration_s: sum(|cost| Some(cost.duration_s))?,
        gpu_s: sum(|cost| cost.gpu_s),
        peak_memory_bytes: costs()
            .filter_map(|cost| cost.peak_memory_bytes)
            .reduce(f64::max),
        // A sum of memory changes would be misleading, because a cell may free memory that another
        // cell allocated in an earlier run.
        memory_change_bytes: None,
        energy_joules: sum(|cost| cost.energy_joules),
        shared: costs().any(|cost| cost.shared),
        gpus: list_gpus(costs()),
        run: None,
    })
}

/// Returns the distinct names of the GPUs in the costs.
fn list_gpus<'a>(costs: impl Iterator<Item = &'a StoredCost>) -> Vec<String> {
    let mut gpus: Vec<String> = Vec::new();
    for name in costs.flat_map(|cost| &cost.gpus) {
        if !gpus.contains(name) {
            gpus.push(name.clone());
        }
    }
    gpus
}

fn to_json(notebook: &Notebook) -> Value {
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
    json!({ "total": sum_costs(&notebook.cells), "cells": cells, "code_cells": notebook.code_cells })
}

fn format_report(notebook: &Notebook, terminal: Option<usize>) -> String {
    let total = sum_costs(&notebook.cells);
    let mut lines: Vec<_> = total
        .iter()
        .map(|total| format_cells(String::new(), String::new(), "All cells", total, false))
        .collect();
    let totals = lines.len();
    lines.extend(notebook.cells.iter().map(|cell| {
        let run = cell
            .execution_count
            .map_or_else(|| ABSENT.to_owned(), |count| format!("[{count}]"));
        format_cells(
            cell.place.to_string(),
            run,
            &cell.line,
            &cell.cost,
            cell.is_earlier,
        )
    }));
    if terminal.is_none() {
        for line in &mut lines {
            line[2] = cut(&line[2], CODE_WIDTHS.0);
        }
    }
    let columns = Columns::new(&COLUMNS, &lines, terminal);
    let mut text = format!("{}\n\n{}", format_heading(notebook), columns.headings());
    for (at, line) in lines.iter().enumerate() {
        let line = columns.format_row(line);
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
            "earlier run: the cell was changed, cleared or run again after this measurement. The \
             cost of the earlier run is not included in the total.",
        );
    }
    if notebook.cells.iter().any(|cell| cell.cost.shared) {
        text += &columns.format_remark(
            0,
            DIM,
            "shared: other processes used a GPU at the same time, and the energy includes their \
             part.",
        );
    }
    if notebook.unknown > 0 {
        let cells = if notebook.unknown == 1 {
            "1 more cell has".to_owned()
        } else {
            format!("{} more cells have", notebook.unknown)
        };
        let remark = format!(
            "{cells} a cost in a format that this version does not support: update gpumon."
        );
        text += &columns.format_remark(0, DIM, &remark);
    }
    text
}

fn format_heading(notebook: &Notebook) -> String {
    let names = list_gpus(notebook.cells.iter().map(|cell| &cell.cost));
    let names: Vec<_> = names.iter().map(|name| escape_untrusted(name)).collect();
    format!(
        "{} of {} code cells used a GPU: {}",
        notebook.cells.len(),
        notebook.code_cells,
        names.join(", ")
    )
}

fn format_cells(
    place: String,
    run: String,
    line: &str,
    cost: &StoredCost,
    is_earlier: bool,
) -> [String; COLUMNS.len()] {
    let known = |value: Option<f64>, format: fn(f64) -> String| {
        value.map_or_else(|| ABSENT.to_owned(), format)
    };
    let energy = known(cost.energy_joules, format_joules_with_cost);
    [
        place,
        run,
        escape_untrusted(line),
        format_elapsed(cost.duration_s),
        known(cost.gpu_s, format_elapsed),
        known(cost.peak_memory_bytes, format_byte_size),
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
    use crate::terminal::style::strip_styles;

    use super::*;

    fn make_cell_report(place: usize, line: &str, cost: StoredCost) -> CellReport {
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
                make_cell_report(2, "import torch", little),
                make_cell_report(5, long, cost),
                make_cell_report(12, "evil \u{1b}[31m", shared),
            ],
            code_cells: 9,
            unknown: 1,
        }
    }

    #[test]
    fn total_comes_first_and_unknown_is_dash() {
        insta::assert_snapshot!(strip_styles(&format_report(&make_notebook(), None)));
    }

    #[test]
    fn narrow_terminal_cuts_code_and_counts() {
        insta::assert_snapshot!(strip_styles(&format_report(&make_notebook(), Some(70))));
    }

    #[test]
    fn earlier_runs_are_marked_and_not_summed() {
        let mut notebook = make_notebook();
        notebook.cells[1].is_earlier = true;
        insta::assert_snapshot!(strip_styles(&format_report(&notebook, None)));
        let json = to_json(&notebook);
        assert_eq!(json["total"]["duration_s"], 240.0);
        assert_eq!(json["cells"][1]["earlier_run"], true);
        assert_eq!(json["cells"][2]["earlier_run"], false);

        notebook
            .cells
            .iter_mut()
            .for_each(|cell| cell.is_earlier = true);
        assert_eq!(to_json(&notebook)["total"], Value::Null);
        assert!(
            !strip_styles(&format_report(&notebook, None)).contains("All cells  "),
            "there is no line for the total"
        );
    }

    #[test]
    fn json_has_same_values_as_table() {
        let json = to_json(&make_notebook());
        assert_eq!(json["total"]["duration_s"], 252.0);
        assert_eq!(json["total"]["energy_joules"], 6440.0);
        assert_eq!(json["total"]["shared"], true);
        assert_eq!(json["cells"][0]["cost"]["gpu_s"], Value::Null);
        assert_eq!(json["cells"][2]["cell"], 12);
    }
}
