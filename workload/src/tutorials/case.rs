//! The definition of a tutorial benchmark: a case and its variants.

use super::TutorialPlaces;
use crate::{
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    protocol::{Backend, Dtype, VariantOutcome},
};

/// A small program from tutorials, with all its variants.
pub struct Case {
    /// The case's name, from `a` to `k5`.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// The lesson of the case, in one sentence.
    pub teaches: &'static str,
    /// The different ways in which the program can be run.
    pub variants: &'static [Variant],
}

/// One way in which the program of a case can be run.
pub struct Variant {
    /// The variant's name, such as `pinned copies`.
    pub name: &'static str,
    pub backend: Backend,
    /// The time of another framework; `None` if it has not been measured.
    pub(crate) framework: Option<FrameworkMeasurement>,
    pub(super) program: VariantProgram,
}

/// The month in which the times of all frameworks were measured.
pub(super) const MEASUREMENT_MONTH: &str = "2026-11";

/// The GPU of the machine on which the frameworks' times were measured.
const MEASURED_GPU: &str = "H200";
/// The number of CPU cores of the machine on which the frameworks' times were measured.
const MEASURED_CORES: usize = 16;

/// The time of another framework, measured by the host's clock and including all overhead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FrameworkMeasurement {
    /// The framework's name, such as `CuPy`.
    pub name: &'static str,
    pub(crate) us: f64,
    pub(crate) on: MeasuredDevice,
}

/// The device on which a framework's time was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredDevice {
    Gpu,
    /// One CPU core of the machine with the GPU.
    OneCore,
    AllCores,
}

impl MeasuredDevice {
    pub(super) fn text(self) -> String {
        match self {
            Self::Gpu => format!("an {MEASURED_GPU}"),
            Self::OneCore => format!("1 core of a machine with an {MEASURED_GPU}"),
            Self::AllCores => format!("{MEASURED_CORES} cores of a machine with an {MEASURED_GPU}"),
        }
    }

    /// Returns `true` if this machine has a device of this kind.
    pub(super) fn is_available(self, places: &TutorialPlaces<'_>) -> bool {
        let has_gpu = places
            .gpu
            .is_some_and(|gpu| gpu.device().name.contains(MEASURED_GPU));
        has_gpu && (self != Self::AllCores || rayon::current_num_threads() == MEASURED_CORES)
    }
}

/// A function that demonstrates something on a GPU. If the last argument is `true`, small sizes are
/// used.
type ShowFunction = fn(&Gpu, &Cpu, bool) -> Result<VariantOutcome, RunError>;

pub(super) enum VariantProgram {
    Workload {
        id: &'static str,
        dtype: Dtype,
        n: u64,
        /// The size of the workload in quick measurements.
        quick_n: u64,
    },
    /// A program that is not a workload, for example one that requests more memory than exists.
    Custom(ShowFunction),
}

impl Variant {
    pub(super) const fn new_on_cuda(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self::new(
            name,
            VariantProgram::Workload {
                id,
                dtype,
                n,
                quick_n,
            },
        )
    }

    const fn new(name: &'static str, program: VariantProgram) -> Self {
        Self {
            name,
            backend: Backend::Cuda,
            framework: None,
            program,
        }
    }

    pub(super) const fn new_on_cpu(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self {
            backend: Backend::Cpu,
            ..Self::new_on_cuda(name, id, dtype, n, quick_n)
        }
    }

    pub(super) const fn new_shown_on_gpu(name: &'static str, show: ShowFunction) -> Self {
        Self::new(name, VariantProgram::Custom(show))
    }

    /// Adds the time of a framework on a GPU for comparison.
    pub(super) const fn with_framework(self, name: &'static str, us: f64) -> Self {
        self.with_framework_on_device(name, us, MeasuredDevice::Gpu)
    }

    /// Adds the time of another framework on a CPU, for comparison.
    pub(super) const fn with_framework_on_device(
        self,
        name: &'static str,
        us: f64,
        on: MeasuredDevice,
    ) -> Self {
        Self {
            framework: Some(FrameworkMeasurement { name, us, on }),
            ..self
        }
    }
}
