//! What a workload is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{check::Verification, error::RunError, gpu::Gpu, room::Room};

/// Something that can be run: on a GPU, on the CPU, or on both.
pub trait Workload: Sync {
    /// What it is.
    fn about(&self) -> &About;

    /// How large it is where nobody says.
    fn usual_n(&self, backend: Backend, dtype: Dtype, room: &Room) -> u64;

    /// What it takes and does.
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
    ///
    /// # Errors
    /// Where it has not.
    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        let _ = (gpu, dtype);
        Ok(())
    }

    /// How many GPUs it takes, where it runs on GPUs: the one that it is given, and those behind it.
    fn gpus(&self) -> usize {
        1
    }

    /// Makes it ready on a GPU: inputs random, outputs poisoned.
    ///
    /// # Errors
    /// Where it does not run there, or the driver fails.
    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let _ = (gpu, size);
        Err(RunError::NotThere { id: self.about().id, backend: Backend::Cuda })
    }

    /// Makes it ready on a GPU by NVIDIA's library, as a yardstick: the same inputs, the same check.
    ///
    /// # Errors
    /// Where that has no such thing, or is not there.
    fn on_cublas<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let _ = gpu;
        Err(RunError::NotInCublas { id: self.about().id, dtype: size.dtype })
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
    /// What its size is the number of.
    pub extent: Extent,
}

/// What the size of a workload is the number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Nothing: it has one size.
    Fixed,
    /// Elements of each array.
    Elements,
    /// Rows, and columns, of each matrix.
    Side,
    /// Times that it does the same: steps, vectors, small matrices.
    Times,
}

/// Where a workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A GPU, through NVIDIA's driver.
    Cuda,
    /// All threads of the CPU.
    Cpu,
}

/// By what a workload runs on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// By gpumon's own kernels.
    #[default]
    Own,
    /// By cuBLAS, where the user has it, to compare with.
    Cublas,
}

/// What a workload is as fast as, where nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The memory in which its arrays are.
    Memory,
    /// The units that compute.
    Compute,
    /// How long one access after the other takes.
    Latency,
    /// The link between host and device, or between two devices.
    Link,
    /// The driver.
    Driver,
}

/// A type of numbers, by NVIDIA's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 64 bits, floating point.
    Fp64,
    /// 32 bits, floating point.
    Fp32,
    /// 32 bits in memory, of which tensor cores multiply the first 19.
    Tf32,
    /// 16 bits, floating point.
    Fp16,
    /// 16 bits, floating point: the first half of 32.
    Bf16,
    /// 8 bits, floating point: 4 of exponent, 3 of fraction.
    Fp8,
    /// 8 bits, a whole number with a sign.
    Int8,
    /// Bytes that mean nothing.
    Bytes,
}

/// How large a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Elements of each array, or rows of each square matrix, as [`About::extent`] says.
    pub n: u64,
    /// Of each element.
    pub dtype: Dtype,
}

/// What one run takes and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
            Self::Fp8 | Self::Int8 | Self::Bytes => 1,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Fp32 | Self::Tf32 => 4,
            Self::Fp64 => 8,
        }
    }
}

impl Size {
    /// The bytes of an array of so many elements.
    pub fn bytes(self) -> u64 {
        self.n.saturating_mul(self.dtype.bytes())
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
        self.dtypes.first().copied().unwrap_or(Dtype::Bytes)
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
            Self::Fp64 => "fp64",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Int8 => "int8",
            Self::Bytes => "bytes",
        })
    }
}
