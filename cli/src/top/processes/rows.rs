//! The rows of the list: their order, their arrangement as a tree, and the filter. A process on
//! several GPUs has a row for each GPU.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use clap::ValueEnum as _;
use gpumon_probe::model::{Ancestor, MigDevice, Process};

use super::{
    ProcessKey,
    columns::{Column, find_sort_value},
};
use crate::{
    describe::{self, NotebookNames},
    options::value_name,
    suggest::find_nearest,
    top::model::{Model, ProcessUsage},
};

#[derive(Debug, Clone)]
pub(in crate::top) struct Row<'a> {
    pub(in crate::top) gpu: u32,
    pub(super) part: Option<&'a MigDevice>,
    pub(in crate::top) subject: Subject<'a>,
    /// The name of the process's notebook, unique among the notebooks in the sample.
    pub(super) notebook: Option<String>,
    pub(super) total_bytes: Option<u64>,
    pub(super) usage: Option<&'a ProcessUsage>,
    pub(in crate::top) depth: usize,
}

#[derive(Debug, Clone)]
pub(in crate::top) enum Subject<'a> {
    Process(&'a Process),
    /// A chain of ancestors that do not use a GPU. Each ancestor is a child of the previous one.
    Parents(Vec<&'a Ancestor>),
}

impl Row<'_> {
    /// Returns the identity of the row's process, or `None` for ancestors, which cannot be
    /// selected.
    pub(in crate::top) fn key(&self) -> Option<ProcessKey> {
        match self.subject {
            Subject::Process(process) => Some(ProcessKey {
                gpu: self.gpu,
                pid: process.pid,
                started_ms: process.started_ms.value().copied(),
                mig: process.mig,
            }),
            Subject::Parents(_) => None,
        }
    }
}

/// Returns a row for every process of the newest sample.
pub(super) fn list_rows(model: &Model) -> Vec<Row<'_>> {
    let names = model
        .sample
        .as_ref()
        .map(NotebookNames::from_sample)
        .unwrap_or_default();
    let names = &names;
    let rows = model.gpus().iter().flat_map(|gpu| {
        let total_bytes = gpu.memory.total_bytes.value().copied();
        let board = model.find_board(gpu.index);
        gpu.processes
            .value()
            .into_iter()
            .flatten()
            .map(move |process| Row {
                gpu: gpu.index,
                part: describe::find_mig_device_of_process(process, board),
                subject: Subject::Process(process),
                notebook: names.find_by_process(process).map(str::to_owned),
                total_bytes,
                usage: model.usage.get(&process.pid),
                depth: 0,
            })
    });
    rows.collect()
}

/// Sorts the rows by a column. Absent values come last in both directions. Equal rows are sorted by
/// GPU and PID, so that their order does not change with every sample.
pub(super) fn sort_rows(rows: &mut [Row<'_>], column: Column, descending: bool) {
    let turn = |ordering: Ordering| {
        if descending {
            ordering.reverse()
        } else {
            ordering
        }
    };
    rows.sort_by(|a, b| {
        let ordering = if column.is_text() {
            turn(
                a.format_cell(column, 0)
                    .to_lowercase()
                    .cmp(&b.format_cell(column, 0).to_lowercase()),
            )
        } else {
            match (find_sort_value(a, column), find_sort_value(b, column)) {
                (Some(a), Some(b)) => turn(a.total_cmp(&b)),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => Ordering::Equal,
            }
        };
        let place = |row: &Row<'_>| row.key().map(|key| (key.gpu, key.pid));
        ordering.then_with(|| place(a).cmp(&place(b)))
    });
}

// The tree.

/// Arranges sorted rows as a tree. Ancestors, such as shells, tmux, and sshd, get additional rows.
/// Siblings keep their order.
pub(super) fn arrange_as_tree(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let holders: HashSet<u32> = rows.iter().map(find_pid).collect();
    let mut below: HashMap<Option<u32>, Vec<Row<'_>>> = HashMap::new();
    let mut placed = HashSet::new();
    for row in rows {
        let line = list_ancestors(&row);
        let above = line.first().map(|parent| parent.pid);
        for (place, parent) in line.iter().enumerate() {
            if !holders.contains(&parent.pid) && placed.insert(parent.pid) {
                let above = line.get(place + 1).map(|parent| parent.pid);
                below.entry(above).or_default().push(Row {
                    gpu: row.gpu,
                    part: None,
                    subject: Subject::Parents(vec![parent]),
                    notebook: None,
                    total_bytes: None,
                    usage: None,
                    depth: 0,
                });
            }
        }
        below.entry(above).or_default().push(row);
    }
    let mut grown = Vec::new();
    append_children(None, 0, &mut below, &mut grown);
    grown
}

fn append_children<'a>(
    parent: Option<u32>,
    depth: usize,
    below: &mut HashMap<Option<u32>, Vec<Row<'a>>>,
    grown: &mut Vec<Row<'a>>,
) {
    let rows = below.remove(&parent).unwrap_or_default();
    let mut rows = rows.into_iter().peekable();
    while let Some(mut row) = rows.next() {
        let mut pid = find_pid(&row);
        // If an ancestor has a single child that is also an ancestor without a GPU, both are
        // combined into one row, so that more room remains for processes.
        while let (
            Subject::Parents(line),
            Some(
                [
                    Row {
                        subject: Subject::Parents(next),
                        ..
                    },
                ],
            ),
        ) = (&mut row.subject, below.get(&Some(pid)).map(Vec::as_slice))
        {
            line.extend(next);
            below.remove(&Some(pid));
            pid = find_pid(&row);
        }
        grown.push(Row { depth, ..row });
        // The children of a process that has several rows follow its last row.
        if rows.peek().is_none_or(|next| find_pid(next) != pid) {
            append_children(Some(pid), depth + 1, below, grown);
        }
    }
}

fn find_pid(row: &Row<'_>) -> u32 {
    match row.subject {
        Subject::Process(process) => process.pid,
        Subject::Parents(ref line) => line.last().map_or(0, |parent| parent.pid),
    }
}

fn list_ancestors<'a>(row: &Row<'a>) -> &'a [Ancestor] {
    match row.subject {
        Subject::Process(process) => process.owner.value().map_or(&[], |owner| &owner.parents),
        Subject::Parents(_) => &[],
    }
}

// The filter.

/// A filter that consists of words. A row must match every word. A word with a column name, such as
/// `user:ana`, must occur in this column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::top) struct Filter {
    pub(in crate::top) text: String,
    /// The mistake in the filter, if any. The word with the mistake is ignored.
    pub(in crate::top) mistake: Option<String>,
    terms: Vec<FilterTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FilterTerm {
    column: Option<Column>,
    /// The word to search for, in lowercase.
    word: String,
}

/// The columns that are searched for a word without a column name.
const SEARCHED_COLUMNS: [Column; 3] = [Column::What, Column::User, Column::Pid];

impl Filter {
    pub(in crate::top) fn new(text: &str) -> Self {
        let mut filter = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for word in text.split_whitespace() {
            match FilterTerm::new(word) {
                Ok(term) => filter.terms.push(term),
                Err(mistake) => filter.mistake = filter.mistake.or(Some(mistake)),
            }
        }
        filter
    }

    pub(in crate::top) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns `true` if all words match the row. GPUs and PIDs must match in full: `gpu:1` matches
    /// GPU 1 and its MIG devices, but not GPU 10.
    pub(in crate::top) fn is_match(&self, row: &Row<'_>) -> bool {
        self.terms.iter().all(|term| match term.column {
            Some(Column::Gpu) => {
                row.gpu.to_string() == term.word
                    || row.format_searched_text(Column::Gpu) == term.word
            }
            Some(Column::Pid) => row.format_searched_text(Column::Pid) == term.word,
            Some(column) => row.format_searched_text(column).contains(&term.word),
            None => SEARCHED_COLUMNS
                .iter()
                .any(|column| row.format_searched_text(*column).contains(&term.word)),
        })
    }
}

impl FilterTerm {
    fn new(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|letter| letter.is_alphabetic() || letter == '-')
        };
        let Some((name, word)) = text.split_once(':').filter(|(name, _)| is_name(name)) else {
            return Ok(Self {
                column: None,
                word: text.to_lowercase(),
            });
        };
        let column = Column::from_str(&name.to_lowercase(), false).map_err(|_| {
            let known: Vec<_> = Column::value_variants().iter().map(value_name).collect();
            match find_nearest(name, known.iter().map(String::as_str)) {
                Some(meant) => format!("unknown column '{name}': did you mean '{meant}'?"),
                None => format!("unknown column '{name}': use {}", known.join(", ")),
            }
        })?;
        Ok(Self {
            column: Some(column),
            word: word.to_lowercase(),
        })
    }
}
