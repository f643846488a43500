//! What a workload is.

use std::time::Instant;

use serde::Serialize;

use crate::{
    beside::Shared,
    cuda::Elapsed,
    error::RunError,
    gpu::Gpu,
    memory_budget::MemoryBudget,
    protocol::{Backend, Bound, Cost, Dtype, Extent, KernelUse, Shape, Verification},
};

/// What is copied is copied in whole words.
pub(crate) const WORD_BYTES: u64 = 8;

/// Something that can be run: on a GPU, on the CPU, or on both.
pub(crate) trait Workload: Sync {
    fn about(&self) -> &About;

    /// How large it is where nobody says.
    fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64;

    fn cost(&self, size: Size) -> Cost;

    /// Memory that it holds where it runs on the CPU, with what the check takes.
    fn cpu_bytes(&self, size: Size) -> u64 {
        self.cost(size).memory_bytes
    }

    /// Whether each of its types is run where none is asked for.
    fn every_type(&self) -> bool {
        false
    }

    /// The types that it has in a place, the usual one first.
    fn types_on(&self, backend: Backend) -> &'static [Dtype] {
        let _ = backend;
        self.about().dtypes
    }

    /// Whether this GPU has what it needs for a type.
    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        let _ = (gpu, dtype);
        Ok(())
    }

    /// How many GPUs it takes, where it runs on GPUs: the one that it is given, and those behind it.
    fn gpus(&self) -> usize {
        1
    }

    /// Makes it ready on a GPU: inputs random, outputs poisoned.
    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let _ = (gpu, size);
        Err(RunError::NotThere {
            id: self.about().id,
            backend: Backend::Cuda,
        })
    }

    /// Makes it ready on a GPU by NVIDIA's library, as a yardstick: the same inputs, the same check.
    fn on_cublas<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let _ = gpu;
        Err(RunError::NotInCublas {
            id: self.about().id,
            dtype: size.dtype,
        })
    }

    /// Rows, columns and depth, where these are not all the same.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// What it hands over to a framework that has the same operation; `None` where none has.
    fn shared(&self, size: Size) -> Option<Shared> {
        let _ = size;
        None
    }

    /// Makes it ready on the CPU: inputs random, outputs poisoned.
    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let _ = size;
        Err(RunError::NotThere {
            id: self.about().id,
            backend: Backend::Cpu,
        })
    }
}

pub(crate) trait Prepared {
    fn run(&mut self) -> Result<Sample, RunError>;

    /// The kernel that does it, where there are several to choose from.
    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(None)
    }

    /// Checks every element of the last result against a reference of higher precision.
    fn verify(&mut self) -> Result<Verification, RunError>;
}

/// What a workload is.
#[derive(Debug, Serialize)]
pub struct About {
    /// Its name, as it is typed.
    pub id: &'static str,
    /// What it does, in a sentence.
    pub does: &'static str,
    /// What one learns from it, in a sentence.
    pub teaches: &'static str,
    /// The types of numbers that it has, the usual one first; none where it moves bytes or nothing.
    pub dtypes: &'static [Dtype],
    /// Where it runs.
    pub backends: &'static [Backend],
    /// What it is as fast as.
    pub bound: Bound,
    /// What its size is the number of.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Elements of each array, or rows of each square matrix, as [`About::extent`] says.
    pub n: u64,
    /// Of each element.
    pub dtype: Dtype,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// By the device's clock; `None` on the CPU, which has no other clock than the host's.
    pub device_us: Option<f64>,
    /// By the host's clock, from the first call until all was done.
    pub host_us: f64,
}

impl Sample {
    pub(crate) fn on_cpu(work: impl FnOnce()) -> Self {
        let begun = Instant::now();
        work();
        Self {
            device_us: None,
            host_us: begun.elapsed().as_secs_f64() * 1e6,
        }
    }

    /// How long one of so many took.
    pub(crate) fn of_one(self, of: u64) -> Self {
        let of = of as f64;
        Self {
            device_us: self.device_us.map(|us| us / of),
            host_us: self.host_us / of,
        }
    }
}

impl From<Elapsed> for Sample {
    fn from(Elapsed { device_us, host_us }: Elapsed) -> Self {
        Self {
            device_us: Some(device_us),
            host_us,
        }
    }
}

impl Size {
    pub(crate) fn bytes(self) -> u64 {
        self.n.saturating_mul(self.dtype.bytes())
    }

    /// The same in words of 64 bits, of which each can be told from its neighbors.
    pub(crate) fn words(self) -> u64 {
        self.bytes().div_ceil(WORD_BYTES)
    }
}

impl About {
    /// Whether it runs there.
    pub fn runs_on(&self, backend: Backend) -> bool {
        self.backends.contains(&backend)
    }

    pub(crate) fn no_such(&self, dtype: Dtype) -> RunError {
        RunError::NoSuchType {
            id: self.id,
            dtype,
            valid: self.dtypes,
        }
    }

    /// The type that it has where nobody says.
    pub fn usual_dtype(&self) -> Dtype {
        self.dtypes.first().copied().unwrap_or(Dtype::Bytes)
    }
}
