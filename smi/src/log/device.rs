//! One GPU while its block is written: each query about it is asked once.

use std::sync::OnceLock;

use gpumon_probe::vendor::nvml::query::{Answer, Query, Subject};

use super::fields;
use crate::{Context, cache::Cache, release::Release};

pub(super) struct Device<'a> {
    pub(super) context: &'a Context<'a>,
    /// NVML's index.
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

    pub(super) fn ask(&self, subject: Subject, query: Query) -> Answer {
        self.answers.get_or_ask((subject, query), || {
            self.context.driver.about(subject, query)
        })
    }

    /// The number under which the driver has a field; `None` where it does not have it.
    pub(super) fn field(&self, id: u32) -> Option<u32> {
        if self.release() < fields::RENUMBERED {
            fields::old(id)
        } else {
            Some(id)
        }
    }

    pub(super) fn release(&self) -> Release {
        *self.release.get_or_init(|| self.context.release())
    }
}
