//! One GPU while its block is written: each question about it is asked once.

use std::sync::OnceLock;

use gpumon_probe::question::{Answer, Question, Subject};

use super::fields;
use crate::smi::{Context, memo::Memo};

/// A GPU and what it has answered so far.
pub(super) struct Device<'a> {
    pub(super) context: &'a Context<'a>,
    /// NVML's index.
    pub(super) gpu: u32,
    answers: Memo<(Subject, Question)>,
    old_fields: OnceLock<bool>,
}

impl<'a> Device<'a> {
    /// Nothing was asked yet.
    pub(super) fn new(context: &'a Context<'a>, gpu: u32) -> Self {
        Self { context, gpu, answers: Memo::default(), old_fields: OnceLock::new() }
    }

    /// Asks about the GPU or one of its MIG devices.
    pub(super) fn ask(&self, subject: Subject, question: Question) -> Answer {
        self.answers.once((subject, question), || self.context.driver.about(subject, question))
    }

    /// The number under which the driver has a field; `None` where it does not have it.
    pub(super) fn field(&self, id: u32) -> Option<u32> {
        let old = *self.old_fields.get_or_init(|| fields::are_old(self.context));
        if old { fields::old(id) } else { Some(id) }
    }
}
