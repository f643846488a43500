//! The file of a notebook, as far as its costs are concerned.

use std::{fs, path::Path};

use anyhow::{Context as _, anyhow};
use gpumon_probe::model::StoredCost;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Failure;

/// The cells of a notebook that have kept what they cost.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    pub(super) cells: Vec<CellCost>,
    /// How many cells have code.
    pub(super) code_cells: usize,
    /// How many have kept something that this version does not know.
    pub(super) unknown: usize,
}

/// What one cell cost.
#[derive(Debug)]
pub(super) struct CellCost {
    /// Its place among all cells, from 1 on.
    pub(super) place: usize,
    /// As Jupyter shows it, `[3]`; `None` where the cell's outputs were cleared.
    pub(super) execution_count: Option<u64>,
    /// The first line of its code that says something.
    pub(super) line: String,
    pub(super) cost: StoredCost,
}

impl Notebook {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no notebook of format 4, or keeps no costs.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = fs::read(path).with_context(|| format!("cannot read {shown}")).map_err(Failure::usage)?;
        let notebook = Self::parse(&text).with_context(|| format!("{shown} is no notebook")).map_err(Failure::usage)?;
        match (notebook.cells.is_empty(), notebook.unknown) {
            (false, _) => Ok(notebook),
            (true, 0) => Err(anyhow!(
                "{shown} keeps no costs: none of its {} code cells held a GPU in a run that gpumon measured; run it in \
                 JupyterLab with gpumon, or by `papermill --engine gpumon IN.ipynb OUT.ipynb`",
                notebook.code_cells
            )
            .into()),
            (true, _) => Err(anyhow!(
                "{shown} keeps costs in a form that this version does not know: update gpumon, or run the notebook again"
            )
            .into()),
        }
    }

    fn parse(text: &[u8]) -> anyhow::Result<Self> {
        // Editors of Windows begin a file with a mark of its encoding.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let file: File = serde_json::from_slice(text)
            .map_err(|error| anyhow!("{error}; name a file that Jupyter has saved, which is JSON with cells"))?;
        if file.nbformat < 4 {
            return Err(anyhow!(
                "its format {} is older than 4: convert it with `jupyter nbconvert --to notebook --inplace`",
                file.nbformat
            ));
        }
        let mut notebook = Self::default();
        for (at, cell) in file.cells.into_iter().enumerate() {
            notebook.code_cells += usize::from(cell.kind == "code");
            let Some(stored) = cell.metadata.gpumon else { continue };
            match serde_json::from_value::<StoredCost>(stored) {
                Ok(cost) if cost.version == StoredCost::VERSION => notebook.cells.push(CellCost {
                    place: at + 1,
                    execution_count: cell.execution_count.as_u64(),
                    line: first_line(&cell.source),
                    cost,
                }),
                _ => notebook.unknown += 1,
            }
        }
        Ok(notebook)
    }
}

#[derive(Debug, Deserialize)]
struct File {
    nbformat: u64,
    #[serde(default)]
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    #[serde(rename = "cell_type")]
    kind: String,
    /// What is odd here is no reason not to tell of the cost.
    #[serde(default)]
    execution_count: Value,
    #[serde(default)]
    metadata: Metadata,
    /// Text, whole or in lines: the format allows both.
    #[serde(default)]
    source: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    gpumon: Option<Value>,
}

/// The first that is neither empty nor a comment, or else the first that is not empty.
fn first_line(source: &Value) -> String {
    let text = match source {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        whole => whole.as_str().unwrap_or_default().to_owned(),
    };
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines().find(|line| !line.starts_with('#')).or_else(|| lines().next()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: &str = r#"{"version": 1, "duration_s": 12.3, "gpu_s": 9.81, "peak_memory_bytes": 65498251264,
        "memory_change_bytes": null, "energy_joules": 6100, "shared": false, "gpus": ["NVIDIA H200"]}"#;

    fn notebook(cells: &str) -> String {
        format!(r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{cells}]}}"#)
    }

    fn code(source: &str, metadata: &str) -> String {
        format!(
            r#"{{"cell_type": "code", "execution_count": 3, "metadata": {metadata}, "outputs": [], "source": {source}}}"#
        )
    }

    fn why(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ipynb");
        fs::write(&path, text).unwrap();
        let failure = Notebook::read(&path).unwrap_err();
        failure.message().unwrap().replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn cells_are_read_with_their_place_and_their_first_line() {
        let metadata = format!(r#"{{"gpumon": {COST}, "tags": []}}"#);
        let cells = [
            r#"{"cell_type": "markdown", "metadata": {}, "source": "text"}"#.to_owned(),
            code(r##"["\n", "# the model\n", "  train(model)\n"]"##, &metadata),
            code(r##""# nothing else""##, &metadata),
            code(r#""x = 1""#, "{}"),
        ];
        let read = Notebook::parse(notebook(&cells.join(",")).as_bytes()).unwrap();
        let told: Vec<_> = read.cells.iter().map(|cell| (cell.place, cell.execution_count, &*cell.line)).collect();
        assert_eq!(told, [(2, Some(3), "train(model)"), (3, Some(3), "# nothing else")]);
        assert_eq!((read.code_cells, read.unknown), (3, 0));
        assert_eq!(read.cells[0].cost.energy_joules, Some(6100.0));
    }

    #[test]
    fn what_is_no_notebook_is_refused_with_its_cure() {
        assert!(why("PNG").contains("name a file that Jupyter has saved"), "{}", why("PNG"));
        assert!(Notebook::parse(format!("\u{feff}{}", notebook("")).as_bytes()).is_ok(), "with a mark of its encoding");
        assert!(why(r#"{"cells": []}"#).contains("missing field `nbformat`"));
        assert!(
            why(r#"{"nbformat": 3, "worksheets": []}"#).contains("format 3 is older than 4: convert it with `jupyter")
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
    fn one_without_costs_says_how_to_get_them() {
        let without = why(&notebook(&code(r#""x""#, "{}")));
        assert!(without.starts_with("a.ipynb keeps no costs: none of its 1 code cells held a GPU"), "{without}");
        assert!(without.contains("`papermill --engine gpumon IN.ipynb OUT.ipynb`"), "{without}");
        for other in [COST.replace("\"version\": 1", "\"version\": 2"), "7".to_owned()] {
            let newer = why(&notebook(&code(r#""x""#, &format!(r#"{{"gpumon": {other}}}"#))));
            assert!(newer.contains("does not know: update gpumon"), "{newer}");
        }
    }
}
