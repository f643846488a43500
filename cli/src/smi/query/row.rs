//! What a row is about, and whom its cells ask.

use std::cell::RefCell;
use std::collections::HashMap;

use gpumon_probe::question::{Answer, Question, SystemQuestion};
use jiff::Zoned;

use crate::smi::Context;

/// A GPU while its rows are written: whatever was asked about it is remembered, so that cells and rows that need the
/// same answer cost one call.
pub(super) struct Gpu<'a> {
    context: &'a Context<'a>,
    index: u32,
    answers: RefCell<HashMap<Question, Answer>>,
    system: RefCell<HashMap<SystemQuestion, Answer>>,
}

impl<'a> Gpu<'a> {
    /// Nothing is asked yet.
    pub(super) fn new(context: &'a Context<'a>, index: u32) -> Self {
        Self { context, index, answers: RefCell::default(), system: RefCell::default() }
    }

    /// Asks about the GPU.
    pub(super) fn ask(&self, question: Question) -> Answer {
        let known = self.answers.borrow().get(&question).cloned();
        known.unwrap_or_else(|| {
            let answer = self.context.ask(self.index, question);
            self.answers.borrow_mut().insert(question, answer.clone());
            answer
        })
    }

    /// Asks about the machine.
    pub(super) fn system(&self, question: SystemQuestion) -> Answer {
        let known = self.system.borrow().get(&question).cloned();
        known.unwrap_or_else(|| {
            let answer = self.context.system(question);
            self.system.borrow_mut().insert(question, answer.clone());
            answer
        })
    }

    /// Its index.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// How many GPUs there are.
    pub(super) fn count(&self) -> u32 {
        self.context.count
    }

    /// When the reading began.
    pub(super) fn now(&self) -> &Zoned {
        &self.context.now
    }
}

/// One row.
pub(super) struct Row<'a, T> {
    /// The GPU it belongs to.
    pub(super) gpu: &'a Gpu<'a>,
    /// What of the GPU it is about.
    pub(super) item: &'a T,
}

impl<T> Row<'_, T> {
    /// Asks about the GPU.
    pub(super) fn ask(&self, question: Question) -> Answer {
        self.gpu.ask(question)
    }

    /// Asks about the machine.
    pub(super) fn system(&self, question: SystemQuestion) -> Answer {
        self.gpu.system(question)
    }
}
