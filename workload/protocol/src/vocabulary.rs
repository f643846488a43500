//! What results are of: where they ran, on which type of numbers, and what that takes.

use std::{fmt, str::FromStr};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// By gpumon's own kernels.
    #[value(help = "gpumon's own kernels")]
    #[default]
    Own,
    /// By cuBLAS, where the user has it, to compare with.
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
    /// 64 bits, floating point.
    #[value(alias = "f64", help = "64-bit floating point")]
    Fp64,
    /// 32 bits, floating point.
    #[value(alias = "f32", help = "32-bit floating point")]
    Fp32,
    /// 32 bits in memory, of which tensor cores multiply the first 19.
    #[value(help = "TensorFloat-32: 32-bit storage, 19-bit products on tensor cores")]
    Tf32,
    /// 16 bits, floating point.
    #[value(alias = "f16", help = "16-bit floating point (IEEE half precision)")]
    Fp16,
    /// 16 bits, floating point: the first half of 32.
    #[value(help = "16-bit floating point with the exponent range of fp32")]
    Bf16,
    /// 8 bits, floating point: 4 of exponent, 3 of fraction.
    #[value(alias = "f8", help = "8-bit floating point (E4M3)")]
    Fp8,
    /// 8 bits, a whole number with a sign.
    #[value(alias = "i8", help = "8-bit integer")]
    Int8,
    /// Bytes that mean nothing.
    #[value(skip)]
    Bytes,
}

/// Of a product: `rows` x `depth` times `depth` x `columns`, written as `5000x3000x7000` with the
/// depth last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Rows of the first matrix and of the product.
    pub rows: u64,
    /// Columns of the second matrix and of the product.
    pub columns: u64,
    /// Terms of each element of the product.
    pub depth: u64,
}

/// The largest of any of the three: a matrix with one such side fits no GPU.
const LONGEST_SIDE: u64 = 1 << 31;

impl Shape {
    /// Of square matrices.
    pub fn square(n: u64) -> Self {
        Self {
            rows: n,
            columns: n,
            depth: n,
        }
    }

    /// Whether a GPU's kernels can count so far, and there is anything to multiply.
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

/// What one run takes and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Memory that it holds where it runs.
    pub memory_bytes: u64,
    /// Memory of the host that it holds where it runs on a GPU.
    pub host_bytes: u64,
    /// Bytes that cross the bus that it is about: each array once for each time that it is read or
    /// written.
    pub moved_bytes: u64,
    /// Floating point operations; a call of a function counts as one.
    pub operations: u64,
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

/// Writes each word as JSON has it.
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
