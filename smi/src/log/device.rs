//! The GPU whose block is being written. Each query runs only once.

use std::sync::OnceLock;

use gpumon_probe::vendor::nvml::query::{Answer, Query, Subject};

use super::fields;
use crate::{Context, cache::Cache, release::Release};

pub(super) struct Device<'a> {
    pub(super) context: &'a Context<'a>,
    /// The GPU's NVML index.
    pub(super) gpu: u32,
    answers: Cache<(Subject, Query)>,
    release: OnceLock<Release>,
}

impl<'a> Device<'a> {
    pub(super) fn new(context: &'a Context<'a>, gpu: u32) -> Self {
        Self {
            context,
            gpu,
            answers: Cache::default(),
            release: OnceLock::new(),
        }
    }

    pub(super) fn run_query(&self, subject: Subject, query: Query) -> Answer {
        self.answers.get_or_query((subject, query), || {
            self.context.driver.answer_query(subject, query)
        })
    }

    /// Returns a field's ID in the installed driver, or `None` if the driver does not have the
    /// field.
    pub(super) fn find_field_number(&self, id: u32) -> Option<u32> {
        if self.release() < fields::RENUMBERED {
            fields::find_old_number(id)
        } else {
            Some(id)
        }
    }

    pub(super) fn release(&self) -> Release {
        *self.release.get_or_init(|| self.context.release())
    }
}
