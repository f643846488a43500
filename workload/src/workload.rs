//! What a workload is.

use std::fmt;

use serde::Serialize;

use crate::{check::Verification, error::RunError, gpu::Gpu, room::Room};

/// Something that can be run: on a GPU, on the CPU, or on both.
pub trait Workload: Sync {
    /// What it is.
    fn about(&self) -> &About;

    /// How many elements each of its arrays has where nobody says.
    fn usual_elements(&self, backend: Backend, dtype: Dtype, room: &Room) -> u64;

    /// What it takes and does.
    fn cost(&self, size: Size) -> Cost;

    /// Makes it ready on a GPU: inputs random, outputs poisoned.
    ///
    /// # Errors
    /// Where it does not run there, or the driver fails.
    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let _ = (gpu, size);
        Err(RunError::NotThere { id: self.about().id, backend: Backend::Cuda })
    }

    /// Makes it ready on the CPU: inputs random, outputs poisoned.
    ///
    /// # Errors
    /// Where it does not run there.
    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let _ = size;
        Err(RunError::NotThere { id: self.about().id, backend: Backend::Cpu })
    }
}

/// A workload that is ready to run.
pub trait Prepared {
    /// Runs it once.
    ///
    /// # Errors
    /// Where the driver fails.
    fn run(&mut self) -> Result<Sample, RunError>;

    /// Checks every element of the last result against a reference of higher precision.
    ///
    /// # Errors
    /// Where the result cannot be read.
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
    /// Whether its size can be chosen.
    pub is_sized: bool,
}

/// Where a workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A GPU, through NVIDIA's driver.
    Cuda,
    /// All threads of the CPU.
    Cpu,
}

/// What a workload is as fast as, where nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The memory in which its arrays are.
    Memory,
    /// The link between host and device.
    Link,
    /// The driver.
    Driver,
}

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32 bits, floating point.
    F32,
    /// 64 bits, floating point.
    F64,
    /// Bytes that mean nothing.
    U8,
}

/// How large a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Of each array.
    pub elements: u64,
    /// Of each element.
    pub dtype: Dtype,
}

/// What one run takes and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Cost {
    /// Memory that it holds where it runs.
    pub memory_bytes: u64,
    /// Memory of the host that it holds where it runs on a GPU.
    pub host_bytes: u64,
    /// Bytes that cross the bus that it is about: each array once for each time that it is read or written.
    pub moved_bytes: u64,
    /// Floating point operations; a call of a function counts as one.
    pub operations: u64,
}

/// How long one run took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// By the device's clock; `None` on the CPU, which has no other clock than the host's.
    pub device_us: Option<f64>,
    /// By the host's clock, from the first call until all was done.
    pub host_us: f64,
}

impl Dtype {
    /// The bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl Size {
    /// The bytes of an array.
    pub fn bytes(self) -> u64 {
        self.elements.saturating_mul(self.dtype.bytes())
    }
}

impl About {
    /// Whether it runs there.
    pub fn runs_on(&self, backend: Backend) -> bool {
        self.backends.contains(&backend)
    }

    /// That it does not have this type.
    pub(crate) fn no_such(&self, dtype: Dtype) -> RunError {
        RunError::NoSuchType { id: self.id, dtype, valid: self.dtypes }
    }

    /// The type that it has where nobody says.
    pub fn usual_dtype(&self) -> Dtype {
        self.dtypes.first().copied().unwrap_or(Dtype::U8)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
        })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::U8 => "u8",
        })
    }
}
