//! The rows of the list. A process on several GPUs has a row for each GPU.

use std::cmp::Ordering;

use gpumon_probe::model::{Ancestor, MigDevice, Process};

use super::{
    ProcessKey,
    columns::{Column, find_sort_value},
};
use crate::{
    describe::{self, NotebookNames},
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
                part: process
                    .mig
                    .zip(board)
                    .and_then(|(instance, board)| describe::find_mig_device(board, instance)),
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
