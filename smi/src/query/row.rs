//! The GPU and item that a row is about, and the answers that its cells need.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, SystemQuery};

use super::cell::Cell;
use crate::{Context, cache::Cache};

/// A GPU whose rows are being written. Answers are cached, so that cells and rows that need the
/// same answer cause only one call.
pub(super) struct Gpu<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) index: u32,
    answers: Cache<Query>,
    system: Cache<SystemQuery>,
}

impl<'a> Gpu<'a> {
    pub(super) fn new(context: &'a Context<'a>, index: u32) -> Self {
        Self {
            context,
            index,
            answers: Cache::default(),
            system: Cache::default(),
        }
    }

    pub(super) fn run_query(&self, query: Query) -> Answer {
        self.answers
            .get_or_query(query, || self.context.run_query(self.index, query))
    }
}

/// The numbers that distinguish a row from the GPU's other rows, and the return code to use if a
/// further number is requested.
pub(super) struct Item {
    numbers: Vec<i128>,
    missing: Code,
}

/// Returns a single item without numbers, for tables that have one row per GPU.
pub(super) fn list_single_item(_: &Gpu<'_>) -> Vec<Item> {
    vec![Item {
        numbers: Vec::new(),
        missing: Code::UNKNOWN,
    }]
}

/// Splits a list into items of `COUNT` numbers each, and puts the numbers in `first` before each
/// item. If the list is missing, returns one item with the reason.
pub(super) fn split_items<const COUNT: usize>(first: &[i128], list: Answer) -> Vec<Item> {
    let item = |numbers: &[i128], missing| Item {
        numbers: [first, numbers].concat(),
        missing,
    };
    match list {
        Ok(list) => {
            let all = list.numbers().as_chunks::<COUNT>().0.iter();
            all.map(|numbers| item(numbers, Code::UNKNOWN)).collect()
        }
        Err(code) => vec![item(&[], code)],
    }
}

pub(super) struct Row<'a> {
    pub(super) gpu: &'a Gpu<'a>,
    pub(super) item: &'a Item,
}

impl Row<'_> {
    pub(super) fn run_query(&self, query: Query) -> Answer {
        self.gpu.run_query(query)
    }

    pub(super) fn run_system_query(&self, query: SystemQuery) -> Answer {
        self.gpu
            .system
            .get_or_query(query, || self.gpu.context.run_system_query(query))
    }

    /// Returns a number of the row's item.
    pub(super) fn number_at(&self, place: usize) -> Result<i128, Code> {
        let number = self.item.numbers.get(place).copied();
        number.ok_or(self.item.missing)
    }

    /// Returns the PID, which is the first number of the row's item.
    pub(super) fn pid(&self) -> Result<u32, Code> {
        u32::try_from(self.number_at(0)?).map_err(|_| Code::UNKNOWN)
    }
}

/// Formats a number of the row's item.
pub(super) fn format_nth_number<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(row.number_at(PLACE)?.to_string())
}
