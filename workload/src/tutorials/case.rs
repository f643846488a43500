//! What a tutorial benchmark is.

use super::Places;
use crate::{
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    protocol::{Backend, Dtype, Found},
};

/// A small program that tutorials show, in all its variants.
pub struct Case {
    /// `a` to `k5`.
    pub id: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What one learns from it, in a sentence.
    pub teaches: &'static str,
    /// The ways in which it can be done.
    pub variants: &'static [Variant],
}

/// A way in which a case can be done.
pub struct Variant {
    /// As `pinned copies`.
    pub name: &'static str,
    /// Where it runs.
    pub backend: Backend,
    /// What a framework takes for it; `None` where nobody has measured that.
    pub(crate) framework: Option<Framework>,
    pub(super) program: Program,
}

/// When the times of all frameworks were measured.
pub(super) const MEASURED: &str = "2026-11";

/// The GPU with which, or beside which, they were.
const GPU: &str = "H200";
/// Of the CPU beside it.
const CORES: usize = 16;

/// The time that a framework takes, by the host's clock and with everything that it does around the
/// work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Framework {
    /// As `CuPy`.
    pub name: &'static str,
    pub(crate) us: f64,
    pub(crate) on: On,
}

/// What a framework's time was measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Gpu,
    /// The CPU beside it.
    OneCore,
    AllCores,
}

impl On {
    pub(super) fn text(self) -> String {
        match self {
            Self::Gpu => format!("an {GPU}"),
            Self::OneCore => format!("1 core beside an {GPU}"),
            Self::AllCores => format!("{CORES} cores beside an {GPU}"),
        }
    }

    /// Whether these places have such a device.
    pub(super) fn is_here(self, places: &Places<'_>) -> bool {
        let has_gpu = places
            .gpu
            .is_some_and(|gpu| gpu.device().name.contains(GPU));
        has_gpu && (self != Self::AllCores || rayon::current_num_threads() == CORES)
    }
}

/// Shows something on a GPU; the last argument is whether small sizes will do.
type Show = fn(&Gpu, &Cpu, bool) -> Result<Found, RunError>;

pub(super) enum Program {
    Workload {
        id: &'static str,
        dtype: Dtype,
        n: u64,
        /// Where a look is enough.
        quick_n: u64,
    },
    /// What is no workload, as to ask for more memory than there is.
    Custom(Show),
}

impl Variant {
    pub(super) const fn cuda(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self::new(
            name,
            Program::Workload {
                id,
                dtype,
                n,
                quick_n,
            },
        )
    }

    const fn new(name: &'static str, program: Program) -> Self {
        Self {
            name,
            backend: Backend::Cuda,
            framework: None,
            program,
        }
    }

    pub(super) const fn cpu(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self {
            backend: Backend::Cpu,
            ..Self::cuda(name, id, dtype, n, quick_n)
        }
    }

    pub(super) const fn show_on_gpu(name: &'static str, show: Show) -> Self {
        Self::new(name, Program::Custom(show))
    }

    /// Beside what a framework takes on a GPU.
    pub(super) const fn beside(self, name: &'static str, us: f64) -> Self {
        self.beside_on_cpu(name, us, On::Gpu)
    }

    /// Beside what a framework takes on a CPU.
    pub(super) const fn beside_on_cpu(self, name: &'static str, us: f64, on: On) -> Self {
        Self {
            framework: Some(Framework { name, us, on }),
            ..self
        }
    }
}
