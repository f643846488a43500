//! What a row of the seeds is.

use super::{Places, Told};
use crate::{
    error::RunError,
    workload::{Backend, Dtype},
};

/// A small program that tutorials show, in all its variants.
pub struct Row {
    /// `a` to `k5`.
    pub id: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What one learns from it, in a sentence.
    pub teaches: &'static str,
    /// The ways in which it can be done.
    pub variants: &'static [Variant],
}

/// A way in which a row can be done.
pub struct Variant {
    /// As `pinned copies`.
    pub name: &'static str,
    /// Where it runs.
    pub backend: Backend,
    /// What a framework takes for it; `None` where nobody has measured that.
    pub framework: Option<Framework>,
    pub(super) what: What,
}

/// The time that a framework takes, by the host's clock and with everything that it does around the work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Framework {
    /// As `CuPy`.
    pub name: &'static str,
    /// How long, in us.
    pub us: f64,
    /// On what that was measured.
    pub on: &'static str,
}

/// What is done.
pub(super) enum What {
    /// A workload of the catalogue.
    Workload {
        id: &'static str,
        dtype: Dtype,
        n: u64,
        /// Where a look is enough.
        quick_n: u64,
    },
    /// What is no workload, as to ask for more memory than there is.
    Special(fn(&Places<'_>, quick: bool) -> Result<Told, RunError>),
}

impl Variant {
    pub(super) const fn cuda(name: &'static str, id: &'static str, dtype: Dtype, n: u64, quick_n: u64) -> Self {
        Self { name, backend: Backend::Cuda, framework: None, what: What::Workload { id, dtype, n, quick_n } }
    }

    pub(super) const fn cpu(name: &'static str, id: &'static str, dtype: Dtype, n: u64, quick_n: u64) -> Self {
        Self { backend: Backend::Cpu, ..Self::cuda(name, id, dtype, n, quick_n) }
    }

    pub(super) const fn special(
        name: &'static str,
        show: fn(&Places<'_>, quick: bool) -> Result<Told, RunError>,
    ) -> Self {
        Self { name, backend: Backend::Cuda, framework: None, what: What::Special(show) }
    }

    /// Beside what a framework takes on a GPU.
    pub(super) const fn beside(self, name: &'static str, us: f64) -> Self {
        Self { framework: Some(Framework { name, us, on: "one H200" }), ..self }
    }

    /// Beside what a framework takes on a CPU.
    pub(super) const fn beside_on_cpu(self, name: &'static str, us: f64, on: &'static str) -> Self {
        Self { framework: Some(Framework { name, us, on }), ..self }
    }
}
