//! `matmul`: the product of two square matrices, in every type that the hardware multiplies.
//!
//! - [`kernel_select`] chooses the kernel for a GPU, a type and a size; [`product`] launches and
//!   times it, and checks its result. [`low_precision`] has the code for the CPU, also for types
//!   without units there.
//! - [`cut`] divides sums into parts if there are too few tiles for all multiprocessors.
//! - [`copied`] has the matrices in host memory.
//! - [`values`] converts the types on the host, and [`tolerance`] defines how exact a product must
//!   be.

mod copied;
mod cut;
mod kernel_select;
mod low_precision;
#[cfg(test)]
mod occupancy;
mod product;
mod tolerance;
mod values;

use half::{bf16, f16};

pub(super) use self::{
    copied::{Copied, DTYPES as COPIED_DTYPES},
    kernel_select::{AMPERE, HOPPER},
    tolerance::Tolerance,
};
pub(crate) use self::{
    kernel_select::needs,
    low_precision::Factors,
    product::{Product, memory_bytes, result_bytes},
};
use crate::{
    beside::from_bytes,
    catalogue::prelude::*,
    cpu_product::CpuProduct,
    cuda::Cublas,
    memory_budget::MemoryBudget,
    protocol::{Bound, Extent, KernelUse, Shape},
    workload::{About, UsualSize, Workload},
};

/// The side of matrices on a GPU with enough memory, as large as in the benchmarks of GPU vendors.
const GPU_SIDE: u64 = 8192;
/// The side for fp64, which is smaller because some GPUs take sixty times as long for fp64.
const GPU_SIDE_FP64: u64 = 4096;
const CPU_SIDE: u64 = 1024;
/// The divisor of the usable memory that limits the size of the matrices.
const PART: u64 = 2;

pub(crate) const DTYPES: &[Dtype] = &[
    Dtype::Bf16,
    Dtype::Fp16,
    Dtype::Fp8,
    Dtype::Int8,
    Dtype::Tf32,
    Dtype::Fp32,
    Dtype::Fp64,
];

/// The types on a CPU, where the usual one also comes first.
const CPU_DTYPES: &[Dtype] = &[
    Dtype::Fp32,
    Dtype::Fp64,
    Dtype::Tf32,
    Dtype::Bf16,
    Dtype::Fp16,
    Dtype::Fp8,
    Dtype::Int8,
];

pub(crate) const ID: &str = "matmul";

/// A product of square matrices, or of matrices with one shape for all sizes.
pub(crate) struct Matmul(Option<Shape>);

impl Matmul {
    pub(super) const SQUARE: Self = Self(None);

    fn shape_of(&self, size: Size) -> Shape {
        self.0.unwrap_or(Shape::square(size.n))
    }
}

/// Returns the workload `matmul --shape`, which only runs on a GPU. The workload is leaked: a run
/// needs at most one, and has its own process.
pub(crate) fn rectangular(shape: Shape) -> &'static Workload {
    Box::leak(Box::new(Workload {
        about: About {
            id: ID,
            does: "Multiplies two matrices of any shape.",
            teaches: "Matrices that fill no whole tiles, or too few of them, leave a part of the \
                 GPU idle.",
            dtypes: DTYPES,
            backends: &[Backend::Cuda],
            bound: Bound::Compute,
            extent: Extent::Side,
        },
        usual: UsualSize::Count(shape.rows),
        program: Box::leak(Box::new(Matmul(Some(shape)))),
    }))
}

pub(super) fn usual_side(backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
    let wanted = match (backend, dtype) {
        (Backend::Cpu, _) => CPU_SIDE,
        (Backend::Cuda, Dtype::Fp64) => GPU_SIDE_FP64,
        (Backend::Cuda, _) => GPU_SIDE,
    };
    let halves = std::iter::successors(Some(wanted), |side| Some(side / 2));
    let fits =
        |side: &u64| memory_bytes(Shape::square(*side), dtype, 1) <= budget.usable_bytes() / PART;
    halves.take_while(|side| *side > 0).find(fits).unwrap_or(1)
}

/// Returns the data of a product for frameworks, for the types that all frameworks support.
fn shared(size: Size, copies: bool) -> Option<Shared> {
    match size.dtype {
        Dtype::Fp32 => Some(shared_as(Factors::<f32>::new, size, copies)),
        Dtype::Fp64 => Some(shared_as(Factors::<f64>::new, size, copies)),
        Dtype::Tf32 => {
            let element = |seed, index| values::tf32(f32::random(seed, index));
            Some(shared_as(
                move |n| Factors::from_elements(n, element),
                size,
                copies,
            ))
        }
        _ => None,
    }
}

fn shared_as<T: CpuProduct>(
    factors: impl FnOnce(u64) -> Factors<T> + 'static,
    Size { n, dtype }: Size,
    copies: bool,
) -> Shared {
    let shape = vec![n, n];
    let operation = beside::Operation {
        name: "matmul",
        dtype,
        shape,
        copies,
        one_thread: false,
        fused: true,
    };
    let data = move || {
        let mut factors = factors(n);
        let inputs = factors.both_mut().map(|factor| to_bytes(factor)).into();
        Data {
            inputs,
            check: Box::new(move |bytes| factors.verify_part(&from_bytes(bytes, n * n))),
        }
    };
    Shared {
        operation,
        data: Box::new(data),
    }
}

impl Program for Matmul {
    fn cost_of(&self, size: Size) -> Cost {
        let (shape, dtype) = (self.shape_of(size), size.dtype);
        let Shape {
            rows,
            columns,
            depth,
        } = shape;
        let (results, factors) = (
            rows.saturating_mul(columns),
            rows.saturating_add(columns).saturating_mul(depth),
        );
        let result_bytes = results.saturating_mul(values::result_bytes(dtype));
        Cost {
            memory_bytes: memory_bytes(shape, dtype, 1),
            host_bytes: 0,
            moved_bytes: factors
                .saturating_mul(dtype.bytes())
                .saturating_add(result_bytes),
            operations: results.saturating_mul(depth).saturating_mul(2),
        }
    }

    /// Returns the memory in use on the CPU. Narrow types also need memory for both factors in
    /// their wide form, for the factors that the check generates, and for the sums.
    fn cpu_bytes(&self, Size { n, dtype }: Size) -> u64 {
        let wide = match dtype {
            Dtype::Fp32 | Dtype::Fp64 => 0,
            Dtype::Int8 => 5 * size_of::<f64>() as u64,
            _ => 5 * size_of::<f32>() as u64,
        };
        n.saturating_mul(n)
            .saturating_mul(2 * dtype.bytes() + values::result_bytes(dtype) + wide)
    }

    fn each_type(&self, backend: Backend) -> Option<&'static [Dtype]> {
        Some(match backend {
            Backend::Cuda => DTYPES,
            Backend::Cpu => CPU_DTYPES,
        })
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        match needs(dtype) {
            needed if gpu.device().capability < needed => Err(RunError::NotOnThisGpu {
                id: ID,
                dtype,
                needed,
                has: gpu.device().capability,
            }),
            _ => Ok(()),
        }
    }

    fn shape(&self) -> Option<Shape> {
        self.0
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(OnCuda::new(gpu, self.shape_of(size), size.dtype)?))
    }

    fn on_cublas<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Option<Ready<'gpu>> {
        let ready = || {
            self.check_device(gpu, size.dtype)?;
            let work = OnCuda::new(gpu, self.shape_of(size), size.dtype)?;
            Ok(Box::new(work.by_cublas()?) as _)
        };
        Some(ready())
    }

    fn shared_operation(&self, size: Size) -> Option<Shared> {
        shared(size, false)
    }

    fn on_cpu(&self, Size { n, dtype }: Size) -> Ready<'static> {
        match dtype {
            Dtype::Fp32 => low_precision::prepare_product::<f32>(n),
            Dtype::Fp64 => low_precision::prepare_product::<f64>(n),
            Dtype::Tf32 => low_precision::prepare_narrow::<low_precision::Tf32>(n),
            Dtype::Bf16 => low_precision::prepare_narrow::<bf16>(n),
            Dtype::Fp16 => low_precision::prepare_narrow::<f16>(n),
            Dtype::Fp8 => low_precision::prepare_narrow::<low_precision::Fp8>(n),
            Dtype::Int8 => low_precision::prepare_narrow::<i8>(n),
            Dtype::Bytes => Err(RunError::NoSuchType {
                id: ID,
                dtype,
                valid: CPU_DTYPES,
            }),
        }
    }
}

/// A single product on a GPU.
struct OnCuda<'gpu> {
    product: Product<'gpu>,
    out: DeviceMemory,
    /// The library that multiplies instead of the kernel, for comparison.
    cublas: Option<Cublas>,
}

impl<'gpu> OnCuda<'gpu> {
    fn new(gpu: &'gpu Gpu, shape: Shape, dtype: Dtype) -> Result<Self, RunError> {
        let product = Product::new(gpu, shape, dtype)?;
        Ok(Self {
            product,
            out: gpu.poisoned(result_bytes(shape, dtype))?,
            cublas: None,
        })
    }

    /// Returns the same work, but multiplied by cuBLAS.
    fn by_cublas(self) -> Result<Self, RunError> {
        let Product {
            gpu,
            shape,
            dtype,
            choice,
            ..
        } = &self.product;
        let is_step_by_step = choice.layout == kernel_select::Layout::StepByStep;
        let cublas = Cublas::new(
            &gpu.context,
            *dtype,
            *shape,
            self.product.pitches(),
            is_step_by_step,
        )?;
        Ok(Self {
            cublas: Some(cublas),
            ..self
        })
    }
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            product,
            out,
            cublas,
        } = self;
        let gpu = product.gpu;
        if let Some(cublas) = cublas {
            gpu.time(|queue| cublas.multiply(queue, (out, &product.a, &product.b)))
        } else {
            let ready = product.ready()?;
            gpu.time(|queue| ready.launch(queue, out, 0))
        }
    }

    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(if self.cublas.is_none() {
            Some(self.product.kernel()?)
        } else {
            None
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self.product.verify(&self.out)?)
    }
}
