//! Terms used in results: backends, number types, sizes and costs.

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
    /// gpumon's own kernels.
    #[value(help = "gpumon's own kernels")]
    #[default]
    Own,
    /// NVIDIA's cuBLAS, for comparison, if the user has installed it.
    #[value(help = "cuBLAS, from the active Python environment or `GPUMON_LIBCUBLAS`")]
    Cublas,
}

/// A number type, under the name that NVIDIA uses.
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
    /// TensorFloat-32: 32 bits in memory. Tensor cores only multiply the first 19 bits.
    #[value(help = "TensorFloat-32: stored in 32 bits, multiplied in 19 bits on tensor cores")]
    Tf32,
    /// 16-bit floating-point numbers (IEEE half precision).
    #[value(alias = "f16", help = "16-bit floating point (IEEE half precision)")]
    Fp16,
    /// 16-bit floating-point numbers, which consist of the first half of the bits of fp32.
    #[value(help = "16-bit floating point with the exponent range of fp32")]
    Bf16,
    /// 8-bit floating-point numbers with 4 exponent bits and 3 fraction bits.
    #[value(alias = "f8", help = "8-bit floating point (E4M3)")]
    Fp8,
    /// 8-bit signed integers.
    #[value(alias = "i8", help = "8-bit integer")]
    Int8,
    /// Bytes that do not represent numbers.
    #[value(skip)]
    Bytes,
}

/// The shape of a product of a `rows` x `depth` matrix and a `depth` x `columns` matrix. It is
/// written as rows x columns x depth, such as `5000x3000x7000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Rows of the first matrix and of the product.
    pub rows: u64,
    /// Columns of the second matrix and of the product.
    pub columns: u64,
    /// The number of terms in each element of the product.
    pub depth: u64,
}

/// The limit of each dimension. A matrix this large fits on no GPU.
const MAX_SIDE: u64 = 1 << 31;

impl Shape {
    /// Returns the shape of a product of square matrices.
    pub fn from_side(n: u64) -> Self {
        Self {
            rows: n,
            columns: n,
            depth: n,
        }
    }

    /// Returns `true` if each dimension is at least 1 and less than the limit.
    pub fn has_valid_dimensions(self) -> bool {
        [self.rows, self.columns, self.depth]
            .iter()
            .all(|side| (1..MAX_SIDE).contains(side))
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
        let possible = shape.filter(|shape| shape.has_valid_dimensions());
        possible
            .ok_or_else(|| "expected rows, columns and depth, such as 5000x3000x7000".to_owned())
    }
}

/// The quantity that the size of a workload counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Nothing, because the workload has a fixed size.
    Fixed,
    /// The elements in each array.
    Elements,
    /// The rows of each square matrix, which has as many columns.
    Side,
    /// Repetitions, such as steps, vectors or small matrices.
    Times,
}

/// The resource that limits the speed of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitingResource {
    /// The bandwidth of the memory that contains the workload's arrays.
    Memory,
    /// The throughput of the arithmetic units.
    Compute,
    /// The latency of accesses that depend on each other.
    Latency,
    /// The link between host and device, or between two devices.
    Link,
    /// The overhead of the driver.
    Driver,
}

/// The memory and the number of operations of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The memory that the workload uses on its backend, in bytes.
    pub memory_bytes: u64,
    /// The host memory that the workload uses when it runs on a GPU, in bytes.
    pub host_bytes: u64,
    /// The number of bytes that cross the relevant bus, such as the memory bus or the link to the
    /// host. An array counts again each time it is read or written.
    pub moved_bytes: u64,
    /// The number of floating-point operations. A call of a mathematical function counts as one
    /// operation.
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

/// Implements `Display` with the same words as in JSON.
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
    LimitingResource {
        Memory => "memory", Compute => "compute", Latency => "latency", Link => "link",
        Driver => "driver"
    }
}
