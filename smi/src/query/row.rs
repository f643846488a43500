//! The subject of a row, and the answers that its cells need.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, SystemQuery};

use super::cell::Cell;
use crate::{Context, cache::Cache};

/// A GPU while its rows are written. Answers are cached, so that cells and rows that need the same
/// answer make one call.
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

    pub(super) fn ask(&self, query: Query) -> Answer {
        self.answers
            .get_or_ask(query, || self.context.ask(self.index, query))
    }
}

/// The numbers that distinguish a row from the other rows of its GPU, and the reason if further
/// numbers are missing.
pub(super) struct Item {
    numbers: Vec<i128>,
    missing: Code,
}

/// Returns the only item of a table about whole GPUs.
pub(super) fn whole_gpu(_: &Gpu<'_>) -> Vec<Item> {
    vec![Item {
        numbers: Vec::new(),
        missing: Code::UNKNOWN,
    }]
}

/// Returns an item for each `COUNT` numbers of a list, each preceded by the numbers in `first`. If
/// the list is missing, returns one item with the reason.
pub(super) fn items<const COUNT: usize>(first: &[i128], list: Answer) -> Vec<Item> {
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
    pub(super) fn ask(&self, query: Query) -> Answer {
        self.gpu.ask(query)
    }

    pub(super) fn system(&self, query: SystemQuery) -> Answer {
        self.gpu
            .system
            .get_or_ask(query, || self.gpu.context.system(query))
    }

    /// Returns the number at an index of the row's item.
    pub(super) fn number_at(&self, place: usize) -> Result<i128, Code> {
        let number = self.item.numbers.get(place).copied();
        number.ok_or(self.item.missing)
    }

    /// Returns the process ID, which is the first number of the row's item.
    pub(super) fn pid(&self) -> Result<u32, Code> {
        u32::try_from(self.number_at(0)?).map_err(|_| Code::UNKNOWN)
    }
}

/// Formats a number of the row's item.
pub(super) fn nth_number<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(row.number_at(PLACE)?.to_string())
}
