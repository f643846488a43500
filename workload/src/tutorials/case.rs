//! The definition of a tutorial benchmark.

use super::Places;
use crate::{
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    protocol::{Backend, Dtype, Found},
};

/// A small program from tutorials, in all its variants.
pub struct Case {
    /// The name, from `a` to `k5`.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// The lesson in one sentence.
    pub teaches: &'static str,
    /// The different ways to run the program.
    pub variants: &'static [Variant],
}

/// One way to run the program of a case.
pub struct Variant {
    /// The name, such as `pinned copies`.
    pub name: &'static str,
    pub backend: Backend,
    /// The time of a framework; `None` if nobody has measured it.
    pub(crate) framework: Option<Framework>,
    pub(super) program: Program,
}

/// The month in which the times of all frameworks were measured.
pub(super) const MEASURED: &str = "2026-11";

/// The GPU of the machine on which the times were measured.
const GPU: &str = "H200";
/// The number of CPU cores of this machine.
const CORES: usize = 16;

/// The time of a framework, by the host's clock and including all of its overhead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Framework {
    /// The name, such as `CuPy`.
    pub name: &'static str,
    pub(crate) us: f64,
    pub(crate) on: On,
}

/// The device on which a framework's time was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Gpu,
    /// One core of the CPU in the machine with the GPU.
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

    /// Returns `true` if this machine has such a device.
    pub(super) fn is_here(self, places: &Places<'_>) -> bool {
        let has_gpu = places
            .gpu
            .is_some_and(|gpu| gpu.device().name.contains(GPU));
        has_gpu && (self != Self::AllCores || rayon::current_num_threads() == CORES)
    }
}

/// A function that shows something on a GPU. The last argument is whether to use small sizes.
type Show = fn(&Gpu, &Cpu, bool) -> Result<Found, RunError>;

pub(super) enum Program {
    Workload {
        id: &'static str,
        dtype: Dtype,
        n: u64,
        /// The size for quick measurements.
        quick_n: u64,
    },
    /// A program that is not a workload, for example one that requests more memory than exists.
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

    /// Adds the time of a framework on a GPU for comparison.
    pub(super) const fn beside(self, name: &'static str, us: f64) -> Self {
        self.beside_on_cpu(name, us, On::Gpu)
    }

    /// Adds the time of a framework on the CPU for comparison.
    pub(super) const fn beside_on_cpu(self, name: &'static str, us: f64, on: On) -> Self {
        Self {
            framework: Some(Framework { name, us, on }),
            ..self
        }
    }
}
