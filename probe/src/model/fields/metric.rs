//! What is told as a metric and nothing more: it is neither drawn nor kept.

use super::{Dcgm, Kind, Unit};

/// One number of `S`, with its names for Prometheus and in dcgm-exporter.
#[derive(Debug, Clone, Copy)]
pub struct Metric<S: 'static> {
    /// One sentence: what it is.
    pub help: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// How it moves.
    pub kind: Kind,
    /// Takes it out; `None` where it is absent.
    pub read: fn(&S) -> Option<f64>,
    /// Its name for Prometheus. Those of one name stand beside each other, and have the same help and kind.
    pub prometheus: Option<&'static str>,
    /// The labels that tell it from others of the same name.
    pub labels: &'static [(&'static str, &'static str)],
    /// Its names in dcgm-exporter.
    pub dcgm: Option<Dcgm>,
    /// Whether it is told of a GPU that does not answer, too.
    pub outlasts_gpu: bool,
}

impl<S> Metric<S> {
    pub(super) const fn new(
        kind: Kind,
        unit: Unit,
        help: &'static str,
        read: fn(&S) -> Option<f64>,
    ) -> Self {
        Self {
            help,
            unit,
            kind,
            read,
            prometheus: None,
            labels: &[],
            dcgm: None,
            outlasts_gpu: false,
        }
    }

    pub(super) const fn prometheus(self, name: &'static str) -> Self {
        Self {
            prometheus: Some(name),
            ..self
        }
    }

    pub(super) const fn labels(self, labels: &'static [(&'static str, &'static str)]) -> Self {
        Self { labels, ..self }
    }

    pub(super) const fn dcgm(self, name: &'static str, renamed: &'static str) -> Self {
        Self {
            dcgm: Some(Dcgm { name, renamed }),
            ..self
        }
    }

    pub(super) const fn outlasts_gpu(self) -> Self {
        Self {
            outlasts_gpu: true,
            ..self
        }
    }
}
