//! One GPU while its block is written: each question about it is asked once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gpumon_probe::question::{Answer, Question, Subject};

use super::fields;
use crate::smi::Context;

/// A GPU and what it has answered so far.
pub(super) struct Device<'a> {
    pub(super) context: &'a Context<'a>,
    /// NVML's index.
    pub(super) gpu: u32,
    /// A cell for each question, so that who asks a second time waits for the answer to the first.
    answers: Mutex<HashMap<(Subject, Question), Cell>>,
    old_fields: OnceLock<bool>,
}

/// Where an answer is put once it has come.
type Cell = Arc<OnceLock<Answer>>;

impl<'a> Device<'a> {
    /// Nothing was asked yet.
    pub(super) fn new(context: &'a Context<'a>, gpu: u32) -> Self {
        Self { context, gpu, answers: Mutex::default(), old_fields: OnceLock::new() }
    }

    /// Asks about the GPU or one of its MIG devices.
    pub(super) fn ask(&self, subject: Subject, question: Question) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = Arc::clone(answers.entry((subject, question)).or_default());
        drop(answers);
        cell.get_or_init(|| self.context.driver.about(subject, question)).clone()
    }

    /// The number under which the driver has a field; `None` where it does not have it.
    pub(super) fn field(&self, id: u32) -> Option<u32> {
        let old = *self.old_fields.get_or_init(|| fields::are_old(self.context));
        if old { fields::old(id) } else { Some(id) }
    }
}
