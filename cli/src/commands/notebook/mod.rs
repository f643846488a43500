//! `gpumon notebook`: reports the costs that are stored in notebook files.

use std::{
    io::{BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    slice,
};

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use flate2::Crc;
use gpumon_probe::{
    bounded::open_regular,
    model::{CellRun, StoredCost},
    units::{format_byte_size, round_to_three_digits},
    untrusted::escape_untrusted,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::{
    exit::{Failure, Result, usage},
    terminal::{
        columns::{Column, Columns},
        line::{DIM, STRONG, paint},
        output::print_report,
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
      Print what each cell cost: duration, GPU time, peak memory and energy, with the total first.
  papermill --engine gpumon train.ipynb out.ipynb && gpumon notebook report out.ipynb
      Run a notebook without a browser, and report on it.
  gpumon notebook report out.ipynb --json | jq .total.energy_joules
      Print the energy of all cells in joules.

Exit codes: 0 success, 1 error or no costs in the file, 2 invalid argument or not a notebook";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print what each cell cost in its last run
    ///
    /// JupyterLab stores the cost of each cell that held a GPU in the cell's metadata; so do
    /// papermill, nbconvert and nbclient with gpumon's hooks, without a browser. In the totals,
    /// peak memory is the highest peak of any listed cell; duration, GPU time and energy are sums
    /// over the listed cells. A cost that does not belong to the cell's last run, because gpumon
    /// did not see that run or the cell was changed after it, is marked as an earlier run and is
    /// not included in the sums.
    Report {
        /// Notebook file to report
        file: PathBuf,

        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &NotebookArgs) -> Result {
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
    Column::new_left_aligned("Code", 0).shrinkable_down_to(CODE_WIDTHS.1),
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
    let (cells, code_cells) = (&notebook.cells, notebook.code_cells);
    json!({ "total": sum_costs(cells), "cells": cells, "code_cells": code_cells })
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

// Parser for notebook files, which reads only the cells' code and stored costs.

/// The maximum size of a notebook file in bytes. Larger files contain images and tables as outputs,
/// which the user can clear.
const MAX_NOTEBOOK_BYTES: u64 = 64 << 20;

/// A notebook's cells that have a stored cost.
#[derive(Debug, Default)]
struct Notebook {
    cells: Vec<CellReport>,
    /// The number of code cells in the notebook.
    code_cells: usize,
    /// The number of cells with a stored cost in an unknown format.
    unknown: usize,
}

/// A cell with its stored cost.
#[derive(Debug, Serialize)]
struct CellReport {
    /// The cell's position in the notebook, starting at 1.
    #[serde(rename = "cell")]
    place: usize,
    /// The execution count, which Jupyter shows as `[3]`; `None` if the outputs were cleared.
    execution_count: Option<u32>,
    /// The first meaningful line of the code.
    line: String,
    /// Whether the cost belongs to an earlier run, rather than to the run that produced the cell's
    /// outputs.
    #[serde(rename = "earlier_run")]
    is_earlier: bool,
    cost: StoredCost,
}

impl Notebook {
    /// Reads a notebook file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a notebook of format 4, or has no costs.
    fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = open_regular(path)
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::from_usage_error)?;
        let mut file = BufReader::new(file.take(MAX_NOTEBOOK_BYTES + 1));
        let notebook = Self::parse(&mut file).with_context(|| format!("{shown} is not a notebook"));
        if file.get_ref().limit() == 0 {
            return Err(usage!(
                "{shown} is larger than {} MiB: clear the outputs of the notebook",
                MAX_NOTEBOOK_BYTES >> 20
            ));
        }
        let notebook = notebook.map_err(Failure::from_usage_error)?;
        match (notebook.cells.is_empty(), notebook.unknown) {
            (false, _) => Ok(notebook),
            (true, 0) => Err(anyhow!(
                "{shown} contains no costs: 0 of {} code cells used a GPU in a run that gpumon \
                 measured; run the notebook in JupyterLab with gpumon, or with `papermill --engine \
                 gpumon IN.ipynb OUT.ipynb`",
                notebook.code_cells
            )
            .into()),
            (true, _) => Err(anyhow!(
                "{shown} contains costs in a format that this version does not support: update \
                 gpumon, or run the notebook again"
            )
            .into()),
        }
    }

    fn parse(mut text: impl BufRead) -> anyhow::Result<Self> {
        // Some editors on Windows write a byte order mark.
        if text.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            text.consume(3);
        }
        let file: NotebookFile = serde_json::from_reader(text).map_err(|error| {
            anyhow!(
                "{error}; choose a notebook that was saved by Jupyter, which is a JSON file with \
                 cells"
            )
        })?;
        if file.nbformat < 4 {
            return Err(anyhow!(
                "the notebook format {} is older than 4: convert the file with `jupyter nbconvert \
                 --to notebook --inplace`",
                file.nbformat
            ));
        }
        Ok(file.cells.into())
    }
}

#[derive(Debug, Deserialize)]
struct NotebookFile {
    nbformat: u64,
    /// The cells. Outputs are skipped, so that large outputs do not require memory.
    #[serde(default)]
    cells: Vec<Cell>,
}

impl From<Vec<Cell>> for Notebook {
    fn from(cells: Vec<Cell>) -> Self {
        let mut notebook = Self::default();
        for (place, cell) in (1..).zip(cells) {
            notebook.code_cells += usize::from(cell.kind == "code");
            match cell.metadata.gpumon {
                None => {}
                Some(StoredEntry(None)) => notebook.unknown += 1,
                Some(StoredEntry(Some(cost))) => {
                    let source = join_source(&cell.source);
                    let run =
                        read_current_run(&source, &cell.execution_count, &cell.metadata.execution);
                    notebook.cells.push(CellReport {
                        place,
                        execution_count: run.execution_count,
                        line: find_first_line(&source),
                        is_earlier: cost.run.as_ref() != Some(&run),
                        cost,
                    });
                }
            }
        }
        notebook
    }
}

#[derive(Debug, Deserialize)]
struct Cell {
    #[serde(rename = "cell_type")]
    kind: String,
    /// The execution count. A value that is not a number is ignored.
    #[serde(default)]
    execution_count: Value,
    #[serde(default)]
    metadata: Metadata,
    /// The source, which the format allows to be a string or a list of lines.
    #[serde(default)]
    source: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    gpumon: Option<StoredEntry>,
    #[serde(default)]
    execution: Value,
}

/// A stored cost, or `None` if the format is unknown or a number is out of range.
#[derive(Debug)]
struct StoredEntry(Option<StoredCost>);

/// Keys of a stored cost that must be present but can be `null`.
const NULLABLE_KEYS: [&str; 4] = [
    "gpu_s",
    "peak_memory_bytes",
    "memory_change_bytes",
    "energy_joules",
];

impl<'de> Deserialize<'de> for StoredEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut stored = Value::deserialize(deserializer)?;
        // If the format of `run` is unknown, `run` is ignored and the rest of the cost is used.
        let run = stored.get_mut("run").map(Value::take);
        let run = run.and_then(|run| serde_json::from_value(run).ok());
        let is_complete = NULLABLE_KEYS.iter().all(|key| stored.get(key).is_some());
        let cost = serde_json::from_value::<StoredCost>(stored).ok();
        let is_known =
            |cost: &StoredCost| cost.version == StoredCost::VERSION && cost.is_plausible();
        let cost = cost.filter(|cost| is_complete && is_known(cost));
        Ok(Self(cost.map(|cost| StoredCost { run, ..cost })))
    }
}

/// Returns the data that identifies the cell's current run: a checksum of the source, the execution
/// count, and the start time.
fn read_current_run(source: &str, execution_count: &Value, execution: &Value) -> CellRun {
    let mut crc = Crc::new();
    crc.update(source.as_bytes());
    CellRun {
        source_crc32: crc.sum(),
        execution_count: u32::deserialize(execution_count).ok(),
        started: execution
            .get("iopub.execute_input")
            .and_then(Value::as_str)
            .map(str::to_owned),
    }
}

/// Returns the source of a cell as one string.
fn join_source(source: &Value) -> String {
    let lines = source
        .as_array()
        .map_or(slice::from_ref(source), |lines| lines);
    let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
    lines.unwrap_or_default().concat()
}

/// Returns the first line that is neither empty nor a comment. If there is no such line, returns
/// the first non-empty line.
fn find_first_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines()
        .find(|line| !line.starts_with('#'))
        .or_else(|| lines().next())
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use crate::terminal::line::strip_styles;

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

#[cfg(test)]
mod file_tests {
    use std::fs;

    use super::*;

    const COST: &str = r#"{"version": 1, "duration_s": 12.3, "gpu_s": 9.81, "peak_memory_bytes": 65498251264,
        "memory_change_bytes": null, "energy_joules": 6100, "shared": false, "gpus": ["NVIDIA H200"]}"#;

    fn make_notebook(cells: &str) -> String {
        format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cells}]}}"#)
    }

    fn make_code_cell(source: &str, metadata: &str) -> String {
        format!(
            r#"{{"cell_type": "code", "execution_count": 3, "metadata": {metadata}, "outputs": [], "source": {source}}}"#
        )
    }

    fn find_error(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ipynb");
        fs::write(&path, text).unwrap();
        let failure = Notebook::read(&path).unwrap_err();
        failure
            .message()
            .unwrap()
            .replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn notebook_cells_have_position_and_first_code_line() {
        let metadata = format!(r#"{{"gpumon": {COST}, "tags": []}}"#);
        let cells = [
            r#"{"cell_type": "markdown", "metadata": {}, "source": "text"}"#.to_owned(),
            make_code_cell(
                r##"["\n", "# the model\n", "  train(model)\n"]"##,
                &metadata,
            ),
            make_code_cell(r##""# nothing else""##, &metadata),
            make_code_cell(r#""x = 1""#, "{}"),
        ];
        let read = Notebook::parse(make_notebook(&cells.join(",")).as_bytes()).unwrap();
        let reported: Vec<_> = read
            .cells
            .iter()
            .map(|cell| (cell.place, cell.execution_count, &*cell.line))
            .collect();
        assert_eq!(
            reported,
            [(2, Some(3), "train(model)"), (3, Some(3), "# nothing else")]
        );
        assert_eq!((read.code_cells, read.unknown), (3, 0));
        assert_eq!(read.cells[0].cost.energy_joules, Some(6100.0));
    }

    #[test]
    fn cost_of_previous_run_is_marked_as_earlier() {
        #[derive(Deserialize)]
        struct Case {
            name: String,
            cell: Value,
            run: Value,
            fits: bool,
        }
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../../../tests/stored-cost-runs.json")).unwrap();
        for Case {
            name,
            mut cell,
            run,
            fits,
        } in cases
        {
            let mut cost: Value = serde_json::from_str(COST).unwrap();
            cost["run"] = run;
            cell["metadata"]["gpumon"] = cost;
            let read = Notebook::parse(make_notebook(&cell.to_string()).as_bytes()).unwrap();
            assert_eq!(read.cells[0].is_earlier, !fits, "{name}");
        }
        // Older versions store costs without a run. Costs with a run in an unknown format are
        // treated the same way.
        let odd = [
            "7",
            "{}",
            r#"{"source_crc32": -1, "execution_count": 3, "started": null}"#,
        ]
        .map(|run| {
            let cost = COST.replace("\"version\"", &format!("\"run\": {run}, \"version\""));
            make_code_cell(r#""x""#, &format!(r#"{{"gpumon": {cost}}}"#))
        });
        let cells = [
            &[make_code_cell(
                r#""x""#,
                &format!(r#"{{"gpumon": {COST}}}"#),
            )],
            &odd[..],
        ]
        .concat();
        let read = Notebook::parse(make_notebook(&cells.join(",")).as_bytes()).unwrap();
        assert_eq!(
            read.cells
                .iter()
                .map(|cell| cell.is_earlier)
                .collect::<Vec<_>>(),
            [true; 4]
        );
    }

    #[test]
    fn invalid_notebook_error_names_the_fix() {
        assert!(
            find_error("PNG").contains("choose a notebook that was saved by Jupyter"),
            "{}",
            find_error("PNG")
        );
        assert!(
            Notebook::parse(format!("\u{feff}{}", make_notebook("")).as_bytes()).is_ok(),
            "with a mark of its encoding"
        );
        assert!(find_error(r#"{"cells": []}"#).contains("missing field `nbformat`"));
        assert!(
            find_error(r#"{"nbformat": 3, "worksheets": []}"#)
                .contains("format 3 is older than 4: convert the file with `jupyter")
        );
        assert!(
            Notebook::read(Path::new("/nowhere/a.ipynb"))
                .unwrap_err()
                .message()
                .unwrap()
                .contains("cannot read /nowhere")
        );
    }

    #[test]
    fn stored_cost_with_absurd_numbers_is_rejected() {
        for (known, absurd) in [
            ("12.3", "1e300"),
            ("12.3", "-1"),
            ("9.81", "1e308"),
            ("65498251264", "1e17"),
            ("6100", "1e200"),
            ("null", "-1e300"),
            ("\"version\": 1", "\"version\": 1e30"),
            (
                "[\"NVIDIA H200\"]",
                &format!("[{}\"x\"]", "\"x\",".repeat(1024)),
            ),
            ("[\"NVIDIA H200\"]", "[1]"),
        ] {
            let cost = COST.replace(known, absurd);
            let cells = [
                make_code_cell(r#""x""#, &format!(r#"{{"gpumon": {cost}}}"#)),
                make_code_cell(r#""y""#, &format!(r#"{{"gpumon": {COST}}}"#)),
            ];
            let read = Notebook::parse(make_notebook(&cells.join(",")).as_bytes()).unwrap();
            assert_eq!((read.cells.len(), read.unknown), (1, 1), "{absurd:.40}");
        }
    }

    #[test]
    fn malformed_cell_metadata_does_not_prevent_report() {
        let metadata = format!(r#"{{"gpumon": {COST}}}"#);
        let cells = [
            make_code_cell(r#"[1, ["x"], {"a": 2}]"#, &metadata),
            make_code_cell(r#"{"a": {"b": []}}"#, &metadata)
                .replace("\"execution_count\": 3", "\"execution_count\": [3]"),
            make_code_cell(
                r#""x""#,
                r#"{"gpumon": {"version": {"a": [1, {}]}, "gpus": [[]]}}"#,
            ),
        ];
        let read = Notebook::parse(make_notebook(&cells.join(",")).as_bytes()).unwrap();
        let reported: Vec<_> = read
            .cells
            .iter()
            .map(|cell| (cell.execution_count, &*cell.line))
            .collect();
        assert_eq!(
            (reported, read.unknown),
            (vec![(Some(3), ""), (None, "")], 1)
        );
    }

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, large) = (
            folder.path().join("pipe.ipynb"),
            folder.path().join("large.ipynb"),
        );
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [&*pipe, Path::new("/dev/zero")] {
            let why = Notebook::read(path).unwrap_err().message().unwrap();
            assert!(why.contains("use a regular file"), "{why}");
        }
        fs::write(&large, " ".repeat(MAX_NOTEBOOK_BYTES as usize + 1)).unwrap();
        let why = Notebook::read(&large).unwrap_err().message().unwrap();
        assert!(
            why.contains("is larger than 64 MiB: clear the outputs of the notebook"),
            "{why}"
        );
    }

    #[test]
    fn error_for_notebook_without_costs_explains_measuring() {
        let without = find_error(&make_notebook(&make_code_cell(r#""x""#, "{}")));
        assert!(
            without.starts_with("a.ipynb contains no costs: 0 of 1 code cells used a GPU"),
            "{without}"
        );
        assert!(
            without.contains("`papermill --engine gpumon IN.ipynb OUT.ipynb`"),
            "{without}"
        );
        for other in [
            COST.replace("\"version\": 1", "\"version\": 2"),
            "7".to_owned(),
        ] {
            let newer = find_error(&make_notebook(&make_code_cell(
                r#""x""#,
                &format!(r#"{{"gpumon": {other}}}"#),
            )));
            assert!(newer.contains("does not support: update gpumon"), "{newer}");
        }
    }
}
