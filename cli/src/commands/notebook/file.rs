//! The file of a notebook, as far as its costs are concerned.

use std::{
    collections::BTreeMap,
    fmt,
    io::{BufRead, BufReader, Read as _},
    path::Path,
};

use anyhow::{Context as _, anyhow};
use flate2::Crc;
use gpumon_probe::{
    bounded::open_regular,
    model::{CellRun, StoredCost},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::exit::Failure;

/// In bytes. Larger ones have images and tables as outputs, which can be cleared.
const LARGEST: u64 = 64 << 20;

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
    pub(super) execution_count: Option<u32>,
    /// The first line of its code that says something.
    pub(super) line: String,
    pub(super) cost: StoredCost,
    /// Whether the cost belongs to another run than the one whose count and outputs the cell has.
    pub(super) is_earlier: bool,
}

impl Notebook {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no notebook of format 4, or keeps no costs.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let file = open_regular(path)
            .with_context(|| format!("cannot read {shown}"))
            .map_err(Failure::usage)?;
        let mut file = BufReader::new(file.take(LARGEST + 1));
        let notebook = Self::parse(&mut file).with_context(|| format!("{shown} is no notebook"));
        if file.get_ref().limit() == 0 {
            let why = anyhow!(
                "{shown} has more than {} MiB: clear its outputs",
                LARGEST >> 20
            );
            return Err(Failure::usage(why));
        }
        let notebook = notebook.map_err(Failure::usage)?;
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

    fn parse(mut text: impl BufRead) -> anyhow::Result<Self> {
        // Editors of Windows begin a file with a mark of its encoding.
        if text.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            text.consume(3);
        }
        let file: File = serde_json::from_reader(text).map_err(|error| {
            anyhow!("{error}; name a file that Jupyter has saved, which is JSON with cells")
        })?;
        if file.nbformat < 4 {
            return Err(anyhow!(
                "its format {} is older than 4: convert it with `jupyter nbconvert --to notebook --inplace`",
                file.nbformat
            ));
        }
        Ok(file.cells)
    }
}

#[derive(Debug, Deserialize)]
struct File {
    nbformat: u64,
    /// Each cell is read and dropped, so that the memory needed does not depend on outputs.
    #[serde(default)]
    cells: Notebook,
}

impl<'de> Deserialize<'de> for Notebook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CellsVisitor)
    }
}

struct CellsVisitor;

impl<'de> Visitor<'de> for CellsVisitor {
    type Value = Notebook;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cells")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<Notebook, A::Error> {
        let (mut notebook, mut place) = (Notebook::default(), 0);
        while let Some(cell) = cells.next_element::<Cell>()? {
            place += 1;
            notebook.code_cells += usize::from(cell.kind == "code");
            match cell.metadata.gpumon {
                None => {}
                Some(Stored(None)) => notebook.unknown += 1,
                Some(Stored(Some(cost))) => {
                    let source = text_of(cell.source);
                    let run = run_of(&source, &cell.execution_count, cell.metadata.execution);
                    notebook.cells.push(CellCost {
                        place,
                        execution_count: run.execution_count,
                        line: first_line(&source),
                        is_earlier: cost.run.as_ref() != Some(&run),
                        cost,
                    });
                }
            }
        }
        Ok(notebook)
    }
}

#[derive(Debug, Deserialize)]
struct Cell {
    #[serde(rename = "cell_type")]
    kind: String,
    /// A value of another type does not prevent the report.
    #[serde(default)]
    execution_count: Loose,
    #[serde(default)]
    metadata: Metadata,
    /// Text, whole or in lines: the format allows both.
    #[serde(default)]
    source: Loose,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    gpumon: Option<Stored>,
    #[serde(default)]
    execution: Loose,
}

/// A stored cost; `None` if its form or a number in it is unknown.
#[derive(Debug)]
struct Stored(Option<StoredCost>);

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Loose::Fields(mut fields) = Loose::deserialize(deserializer)? else {
            return Ok(Self(None));
        };
        let mut number = |name: &str| match fields.remove(name) {
            Some(Loose::Number(number)) => Some(Some(number)),
            Some(Loose::Null) => Some(None),
            _ => None,
        };
        let numbers = (
            number("version"),
            number("duration_s"),
            number("gpu_s"),
            number("peak_memory_bytes"),
        );
        let (change, energy) = (number("memory_change_bytes"), number("energy_joules"));
        let mut cost = || {
            let (Some(Loose::Bool(shared)), Some(Loose::Texts(names))) =
                (fields.remove("shared"), fields.remove("gpus"))
            else {
                return None;
            };
            let (Some(Some(version)), Some(Some(duration_s)), Some(gpu_s), Some(peak_memory_bytes)) =
                numbers
            else {
                return None;
            };
            let is_known = version.to_bits() == f64::from(StoredCost::VERSION).to_bits();
            let cost = StoredCost {
                version: StoredCost::VERSION,
                duration_s,
                gpu_s,
                peak_memory_bytes,
                memory_change_bytes: change?,
                energy_joules: energy?,
                shared,
                gpus: names,
                run: fields.remove("run").and_then(stored_run),
            };
            (is_known && cost.is_possible()).then_some(cost)
        };
        Ok(Self(cost()))
    }
}

/// Reads the run of a stored cost; `None` if its form is unknown.
fn stored_run(run: Loose) -> Option<CellRun> {
    let Loose::Fields(mut fields) = run else {
        return None;
    };
    Some(CellRun {
        source_crc32: whole_number(fields.get("source_crc32")?)?,
        execution_count: match fields.get("execution_count")? {
            Loose::Null => None,
            count => Some(whole_number(count)?),
        },
        started: match fields.remove("started")? {
            Loose::Null => None,
            Loose::Text(started) => Some(started),
            _ => return None,
        },
    })
}

/// Returns the run that a cell has, as [`CellRun`] describes it.
fn run_of(source: &str, execution_count: &Loose, execution: Loose) -> CellRun {
    let mut crc = Crc::new();
    crc.update(source.as_bytes());
    let started = match execution {
        Loose::Fields(mut times) => times.remove("iopub.execute_input"),
        _ => None,
    };
    CellRun {
        source_crc32: crc.sum(),
        execution_count: whole_number(execution_count),
        started: match started {
            Some(Loose::Text(started)) => Some(started),
            _ => None,
        },
    }
}

fn whole_number(value: &Loose) -> Option<u32> {
    match value {
        Loose::Number(number)
            if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number) =>
        {
            Some(*number as u32)
        }
        _ => None,
    }
}

/// A JSON value of any type. Only what a cell of a notebook can contain is kept.
#[derive(Debug, Default)]
enum Loose {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Texts(Vec<String>),
    Fields(BTreeMap<String, Loose>),
    Other,
}

/// More keys than a stored cost has.
const MOST_FIELDS: usize = 64;

/// The nested objects whose keys are kept: a stored cost and its run.
const MAX_KEPT_DEPTH: u8 = 2;

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NestedSeed { depth: 0 }.deserialize(deserializer)
    }
}

/// Deserializes a value at a depth of nested objects and lists.
struct NestedSeed {
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for NestedSeed {
    type Value = Loose;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Loose, D::Error> {
        deserializer.deserialize_any(LooseVisitor { depth: self.depth })
    }
}

struct LooseVisitor {
    depth: u8,
}

impl LooseVisitor {
    fn nested(&self) -> NestedSeed {
        NestedSeed {
            depth: self.depth.saturating_add(1),
        }
    }
}

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
        Ok(Loose::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
        let (mut texts, mut is_text) = (Vec::new(), true);
        while let Some(item) = if is_text {
            items.next_element_seed(self.nested())?
        } else {
            None
        } {
            match item {
                Loose::Text(text) => texts.push(text),
                _ => is_text = false,
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(if is_text {
            Loose::Texts(texts)
        } else {
            Loose::Other
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Loose, A::Error> {
        let mut kept = BTreeMap::new();
        while self.depth < MAX_KEPT_DEPTH
            && kept.len() < MOST_FIELDS
            && let Some(key) = fields.next_key()?
        {
            kept.insert(key, fields.next_value_seed(self.nested())?);
        }
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(if self.depth < MAX_KEPT_DEPTH {
            Loose::Fields(kept)
        } else {
            Loose::Other
        })
    }
}

/// Returns the source of a cell, which a file has as lines or as one text.
fn text_of(source: Loose) -> String {
    match source {
        Loose::Texts(lines) => lines.concat(),
        Loose::Text(whole) => whole,
        _ => String::new(),
    }
}

/// Returns the first line that is neither empty nor a comment, or else the first that is not empty.
fn first_line(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines()
        .find(|line| !line.starts_with('#'))
        .or_else(|| lines().next())
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        failure
            .message()
            .unwrap()
            .replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn cells_are_read_with_their_place_and_their_first_line() {
        let metadata = format!(r#"{{"gpumon": {COST}, "tags": []}}"#);
        let cells = [
            r#"{"cell_type": "markdown", "metadata": {}, "source": "text"}"#.to_owned(),
            code(
                r##"["\n", "# the model\n", "  train(model)\n"]"##,
                &metadata,
            ),
            code(r##""# nothing else""##, &metadata),
            code(r#""x = 1""#, "{}"),
        ];
        let read = Notebook::parse(notebook(&cells.join(",")).as_bytes()).unwrap();
        let told: Vec<_> = read
            .cells
            .iter()
            .map(|cell| (cell.place, cell.execution_count, &*cell.line))
            .collect();
        assert_eq!(
            told,
            [(2, Some(3), "train(model)"), (3, Some(3), "# nothing else")]
        );
        assert_eq!((read.code_cells, read.unknown), (3, 0));
        assert_eq!(read.cells[0].cost.energy_joules, Some(6100.0));
    }

    #[test]
    fn cost_of_another_run_is_earlier() {
        #[derive(Deserialize)]
        struct Case {
            name: String,
            cell: serde_json::Value,
            run: serde_json::Value,
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
            let mut cost: serde_json::Value = serde_json::from_str(COST).unwrap();
            cost["run"] = run;
            cell["metadata"]["gpumon"] = cost;
            let read = Notebook::parse(notebook(&cell.to_string()).as_bytes()).unwrap();
            assert_eq!(read.cells[0].is_earlier, !fits, "{name}");
        }
        // Entries of older versions have no run, and others a run in an unknown form.
        let odd = [
            "7",
            "{}",
            r#"{"source_crc32": -1, "execution_count": 3, "started": null}"#,
        ]
        .map(|run| {
            let cost = COST.replace("\"version\"", &format!("\"run\": {run}, \"version\""));
            code(r#""x""#, &format!(r#"{{"gpumon": {cost}}}"#))
        });
        let cells = [
            &[code(r#""x""#, &format!(r#"{{"gpumon": {COST}}}"#))],
            &odd[..],
        ]
        .concat();
        let read = Notebook::parse(notebook(&cells.join(",")).as_bytes()).unwrap();
        assert_eq!(
            read.cells
                .iter()
                .map(|cell| cell.is_earlier)
                .collect::<Vec<_>>(),
            [true; 4]
        );
    }

    #[test]
    fn what_is_no_notebook_is_refused_with_its_cure() {
        assert!(
            why("PNG").contains("name a file that Jupyter has saved"),
            "{}",
            why("PNG")
        );
        assert!(
            Notebook::parse(format!("\u{feff}{}", notebook("")).as_bytes()).is_ok(),
            "with a mark of its encoding"
        );
        assert!(why(r#"{"cells": []}"#).contains("missing field `nbformat`"));
        assert!(
            why(r#"{"nbformat": 3, "worksheets": []}"#)
                .contains("format 3 is older than 4: convert it with `jupyter")
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
    fn absurd_numbers_are_no_cost() {
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
                code(r#""x""#, &format!(r#"{{"gpumon": {cost}}}"#)),
                code(r#""y""#, &format!(r#"{{"gpumon": {COST}}}"#)),
            ];
            let read = Notebook::parse(notebook(&cells.join(",")).as_bytes()).unwrap();
            assert_eq!((read.cells.len(), read.unknown), (1, 1), "{absurd:.40}");
        }
    }

    #[test]
    fn odd_values_do_not_prevent_the_report() {
        let metadata = format!(r#"{{"gpumon": {COST}}}"#);
        let cells = [
            code(r#"[1, ["x"], {"a": 2}]"#, &metadata),
            code(r#"{"a": {"b": []}}"#, &metadata)
                .replace("\"execution_count\": 3", "\"execution_count\": [3]"),
            code(
                r#""x""#,
                r#"{"gpumon": {"version": {"a": [1, {}]}, "gpus": [[]]}}"#,
            ),
        ];
        let read = Notebook::parse(notebook(&cells.join(",")).as_bytes()).unwrap();
        let told: Vec<_> = read
            .cells
            .iter()
            .map(|cell| (cell.execution_count, &*cell.line))
            .collect();
        assert_eq!((told, read.unknown), (vec![(Some(3), ""), (None, "")], 1));
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
            assert!(why.contains("not a regular file"), "{why}");
        }
        fs::write(&large, " ".repeat(LARGEST as usize + 1)).unwrap();
        let why = Notebook::read(&large).unwrap_err().message().unwrap();
        assert!(
            why.contains("has more than 64 MiB: clear its outputs"),
            "{why}"
        );
    }

    #[test]
    fn one_without_costs_says_how_to_get_them() {
        let without = why(&notebook(&code(r#""x""#, "{}")));
        assert!(
            without.starts_with("a.ipynb keeps no costs: none of its 1 code cells held a GPU"),
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
            let newer = why(&notebook(&code(
                r#""x""#,
                &format!(r#"{{"gpumon": {other}}}"#),
            )));
            assert!(newer.contains("does not know: update gpumon"), "{newer}");
        }
    }
}
