//! What a row is about, and whom its cells ask.

use gpumon_probe::vendor::nvml::query::{Answer, Query, SystemQuery};

use crate::{Context, cache::Cache};

/// A GPU while its rows are written: whatever was asked about it is remembered, so that cells and rows that need the
/// same answer cost one call.
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

pub(super) struct Row<'a, T> {
    pub(super) gpu: &'a Gpu<'a>,
    pub(super) item: &'a T,
}

impl<T> Row<'_, T> {
    pub(super) fn ask(&self, query: Query) -> Answer {
        self.gpu.ask(query)
    }

    pub(super) fn system(&self, query: SystemQuery) -> Answer {
        self.gpu
            .system
            .get_or_ask(query, || self.gpu.context.system(query))
    }
}
