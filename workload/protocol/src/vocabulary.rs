//! Terms that results use: backends, types of numbers, sizes and costs.

use std::{fmt, str::FromStr};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The backend that a workload runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A GPU, through NVIDIA's driver.
    Cuda,
    /// All threads of the CPU.
    Cpu,
}

/// The software that executes a workload on a GPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The kernels of gpumon itself.
    #[value(help = "gpumon's own kernels")]
    #[default]
    Own,
    /// NVIDIA's cuBLAS, if the user has installed it, for comparison.
    #[value(help = "cuBLAS, from the active Python environment or `GPUMON_LIBCUBLAS`")]
    Cublas,
}

/// A type of numbers, by NVIDIA's name.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 64-bit floating-point numbers (IEEE double precision).
    #[value(alias = "f64", help = "64-bit floating point")]
    Fp64,
    /// 32-bit floating-point numbers (IEEE single precision).
    #[value(alias = "f32", help = "32-bit floating point")]
    Fp32,
    /// TensorFloat-32: 32 bits in memory, with only the first 19 multiplied by tensor cores.
    #[value(help = "TensorFloat-32: 32-bit storage, 19-bit products on tensor cores")]
    Tf32,
    /// 16-bit floating-point numbers (IEEE half precision).
    #[value(alias = "f16", help = "16-bit floating point (IEEE half precision)")]
    Fp16,
    /// 16-bit floating-point numbers with the first half of the bits of fp32.
    #[value(help = "16-bit floating point with the exponent range of fp32")]
    Bf16,
    /// 8-bit floating-point numbers with 4 bits of exponent and 3 of fraction.
    #[value(alias = "f8", help = "8-bit floating point (E4M3)")]
    Fp8,
    /// 8-bit integers with a sign.
    #[value(alias = "i8", help = "8-bit integer")]
    Int8,
    /// Bytes without a numeric meaning.
    #[value(skip)]
    Bytes,
}

/// The shape of a matrix product of `rows` x `depth` and `depth` x `columns`, written as
/// `5000x3000x7000` with the depth last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Rows of the first matrix and of the product.
    pub rows: u64,
    /// Columns of the second matrix and of the product.
    pub columns: u64,
    /// Terms of each element of the product.
    pub depth: u64,
}

/// The limit for each of the three dimensions. A matrix with such a side fits no GPU.
const LONGEST_SIDE: u64 = 1 << 31;

impl Shape {
    /// Returns the shape of a product of square matrices.
    pub fn square(n: u64) -> Self {
        Self {
            rows: n,
            columns: n,
            depth: n,
        }
    }

    /// Returns `true` if each dimension is at least 1 and within the range of the kernels' indices.
    pub fn is_possible(self) -> bool {
        [self.rows, self.columns, self.depth]
            .iter()
            .all(|side| (1..LONGEST_SIDE).contains(side))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            columns,
            depth,
        } = self;
        f.pad(&format!("{rows}x{columns}x{depth}"))
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides: Vec<u64> = text
            .split('x')
            .map_while(|side| side.trim().parse().ok())
            .collect();
        let shape = match (&sides[..], text.matches('x').count()) {
            (&[rows, columns, depth], 2) => Some(Self {
                rows,
                columns,
                depth,
            }),
            _ => None,
        };
        let possible = shape.filter(|shape| shape.is_possible());
        possible.ok_or_else(|| {
            "not a shape: give rows, columns and depth, as 5000x3000x7000".to_owned()
        })
    }
}

/// The quantity that the size of a workload counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Nothing, because the workload has a fixed size.
    Fixed,
    /// The elements of each array.
    Elements,
    /// The rows, and columns, of each square matrix.
    Side,
    /// Repetitions, such as steps, vectors or small matrices.
    Times,
}

/// The resource that limits the speed of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The bandwidth of the memory that contains its arrays.
    Memory,
    /// The arithmetic units.
    Compute,
    /// The latency of accesses that depend on each other.
    Latency,
    /// The link between host and device, or between two devices.
    Link,
    /// The overhead of the driver.
    Driver,
}

/// The memory and operations of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The memory that it uses on its backend.
    pub memory_bytes: u64,
    /// The host memory that it uses when it runs on a GPU.
    pub host_bytes: u64,
    /// The bytes that cross the relevant bus: each array counts once for each time that it is read
    /// or written.
    pub moved_bytes: u64,
    /// Floating-point operations; a function call counts as one.
    pub operations: u64,
}

impl Dtype {
    /// Returns the size of an element in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fp8 | Self::Int8 | Self::Bytes => 1,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Fp32 | Self::Tf32 => 4,
            Self::Fp64 => 8,
        }
    }
}

/// Implements `Display` with the words used in JSON.
macro_rules! display {
    ($($type:ident { $($variant:ident => $word:literal),* })*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(Self::$variant => $word,)*
                })
            }
        }
    )*};
}

display! {
    Backend { Cuda => "cuda", Cpu => "cpu" }
    Dtype {
        Fp64 => "fp64", Fp32 => "fp32", Tf32 => "tf32", Fp16 => "fp16", Bf16 => "bf16",
        Fp8 => "fp8", Int8 => "int8", Bytes => "bytes"
    }
    Bound {
        Memory => "memory", Compute => "compute", Latency => "latency", Link => "link",
        Driver => "driver"
    }
}
