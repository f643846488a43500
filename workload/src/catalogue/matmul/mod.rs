//! `matmul`: the product of two square matrices, in every type that the hardware can multiply.
//!
//! - [`kernel_select`] chooses the kernel for a GPU, a type and a size. It also divides sums into
//!   parts if there are not enough tiles for all multiprocessors.
//! - [`on_cuda`] launches and times the kernel, and checks its result. [`on_cpu`] contains the code
//!   for the CPU, including types that the CPU cannot multiply.
//! - [`copied`] multiplies matrices in host memory.
//! - [`values`] converts the types on the host, and defines how exact a product must be.

mod copied;
mod kernel_select;
#[cfg(test)]
mod occupancy;
mod on_cpu;
mod on_cuda;
mod values;

use half::{bf16, f16};

use super::prelude::*;
use crate::{
    cpu_product::CpuProduct,
    cuda::Cublas,
    frameworks::from_bytes,
    memory_budget::MemoryBudget,
    protocol::{Extent, KernelUse, LimitingResource, Shape},
    workload::{UsualSize, Workload, WorkloadDescription},
};

pub(super) use self::{
    copied::{CopiedMatmul, DTYPES as COPIED_DTYPES},
    kernel_select::{AMPERE, HOPPER},
    values::Tolerance,
};
pub(crate) use self::{
    kernel_select::required_capability,
    on_cpu::Factors,
    on_cuda::{Product, memory_bytes, result_bytes},
};

/// The side of matrices on a GPU with enough memory. GPU vendors' benchmarks use the same size.
const GPU_SIDE: u64 = 8192;
/// The side of fp64 matrices. It is smaller, because some GPUs take sixty times as long for fp64.
const GPU_SIDE_FP64: u64 = 4096;
const CPU_SIDE: u64 = 1024;
/// The divisor of the usable memory. The matrices may use the resulting amount.
const MEMORY_DIVISOR: u64 = 2;

pub(crate) const DTYPES: &[Dtype] = &[
    Dtype::Bf16,
    Dtype::Fp16,
    Dtype::Fp8,
    Dtype::Int8,
    Dtype::Tf32,
    Dtype::Fp32,
    Dtype::Fp64,
];

/// The types on a CPU, the usual type first.
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

/// A product of square matrices or, if a shape is given, of matrices with this shape.
pub(crate) struct Matmul(Option<Shape>);

impl Matmul {
    pub(super) const SQUARE: Self = Self(None);

    fn shape_of(&self, size: Size) -> Shape {
        self.0.unwrap_or(Shape::from_side(size.n))
    }
}

/// Returns the workload `matmul --shape`, which only runs on a GPU. The memory of the returned
/// workload is never freed. This is harmless, because each run has its own process and needs at
/// most one such workload.
pub(crate) fn leak_workload_for_shape(shape: Shape) -> &'static Workload {
    Box::leak(Box::new(Workload {
        about: WorkloadDescription {
            id: ID,
            does: "Multiplies two matrices of any shape.",
            teaches: "Matrices that do not fill whole tiles, or fill too few of them, leave a \
                      part of the GPU idle.",
            dtypes: DTYPES,
            backends: &[Backend::Cuda],
            bound: LimitingResource::Compute,
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
    let fits = |side: &u64| {
        memory_bytes(Shape::from_side(*side), dtype, 1) <= budget.usable_bytes() / MEMORY_DIVISOR
    };
    halves.take_while(|side| *side > 0).find(fits).unwrap_or(1)
}

/// Returns the data of a product for other frameworks, or `None` if not all of them support the
/// type.
fn product_for_frameworks(size: Size, copies: bool) -> Option<SharedOperation> {
    match size.dtype {
        Dtype::Fp32 => Some(typed_product_for_frameworks(
            Factors::<f32>::new,
            size,
            copies,
        )),
        Dtype::Fp64 => Some(typed_product_for_frameworks(
            Factors::<f64>::new,
            size,
            copies,
        )),
        Dtype::Tf32 => {
            let element = |seed, index| values::round_to_tf32(f32::random_number(seed, index));
            Some(typed_product_for_frameworks(
                move |n| Factors::from_elements(n, element),
                size,
                copies,
            ))
        }
        _ => None,
    }
}

fn typed_product_for_frameworks<T: CpuProduct>(
    factors: impl FnOnce(u64) -> Factors<T> + 'static,
    Size { n, dtype }: Size,
    copies: bool,
) -> SharedOperation {
    let shape = vec![n, n];
    let operation = frameworks::Operation {
        name: "matmul",
        dtype,
        shape,
        copies,
        one_thread: false,
        fused: true,
    };
    let data = move || {
        let mut factors = factors(n);
        let inputs = factors.factors_mut().map(|factor| to_bytes(factor)).into();
        OperationData {
            inputs,
            check: Box::new(move |bytes| factors.verify_some_columns(&from_bytes(bytes, n * n))),
        }
    };
    SharedOperation {
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
        let result_bytes = results.saturating_mul(values::result_element_bytes(dtype));
        Cost {
            memory_bytes: memory_bytes(shape, dtype, 1),
            host_bytes: 0,
            moved_bytes: factors
                .saturating_mul(dtype.bytes())
                .saturating_add(result_bytes),
            operations: results.saturating_mul(depth).saturating_mul(2),
        }
    }

    /// Returns the memory in bytes that is used on the CPU. For narrow types, it includes five more
    /// matrices: both factors and the sums in the wide type, and both factors as the check
    /// generates them again.
    fn cpu_bytes(&self, Size { n, dtype }: Size) -> u64 {
        let wide = match dtype {
            Dtype::Fp32 | Dtype::Fp64 => 0,
            Dtype::Int8 => 5 * size_of::<f64>() as u64,
            _ => 5 * size_of::<f32>() as u64,
        };
        n.saturating_mul(n)
            .saturating_mul(2 * dtype.bytes() + values::result_element_bytes(dtype) + wide)
    }

    fn default_types(&self, backend: Backend) -> Option<&'static [Dtype]> {
        Some(match backend {
            Backend::Cuda => DTYPES,
            Backend::Cpu => CPU_DTYPES,
        })
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        match required_capability(dtype) {
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

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(CudaMatmul::new(
            gpu,
            self.shape_of(size),
            size.dtype,
        )?))
    }

    fn prepare_cublas_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Option<PreparedResult<'gpu>> {
        let ready = || {
            self.check_device(gpu, size.dtype)?;
            let work = CudaMatmul::new(gpu, self.shape_of(size), size.dtype)?;
            Ok(Box::new(work.with_cublas()?) as _)
        };
        Some(ready())
    }

    fn operation_for_frameworks(&self, size: Size) -> Option<SharedOperation> {
        product_for_frameworks(size, false)
    }

    fn prepare_cpu_run(&self, Size { n, dtype }: Size) -> PreparedResult<'static> {
        match dtype {
            Dtype::Fp32 => on_cpu::prepare_product::<f32>(n),
            Dtype::Fp64 => on_cpu::prepare_product::<f64>(n),
            Dtype::Tf32 => on_cpu::prepare_low_precision_product::<on_cpu::Tf32>(n),
            Dtype::Bf16 => on_cpu::prepare_low_precision_product::<bf16>(n),
            Dtype::Fp16 => on_cpu::prepare_low_precision_product::<f16>(n),
            Dtype::Fp8 => on_cpu::prepare_low_precision_product::<on_cpu::Fp8>(n),
            Dtype::Int8 => on_cpu::prepare_low_precision_product::<i8>(n),
            Dtype::Bytes => Err(RunError::NoSuchType {
                id: ID,
                dtype,
                valid: CPU_DTYPES,
            }),
        }
    }
}

/// A matrix product on a GPU.
struct CudaMatmul<'gpu> {
    product: Product<'gpu>,
    out: DeviceMemory,
    /// The cuBLAS library, if it multiplies for comparison. The kernel is then not used.
    cublas: Option<Cublas>,
}

impl<'gpu> CudaMatmul<'gpu> {
    fn new(gpu: &'gpu Gpu, shape: Shape, dtype: Dtype) -> Result<Self, RunError> {
        let product = Product::new(gpu, shape, dtype)?;
        Ok(Self {
            product,
            out: gpu.allocate_poisoned(result_bytes(shape, dtype))?,
            cublas: None,
        })
    }

    /// Returns this product with cuBLAS instead of gpumon's own kernel.
    fn with_cublas(self) -> Result<Self, RunError> {
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
            self.product.result_and_factor_pitches(),
            is_step_by_step,
        )?;
        Ok(Self {
            cublas: Some(cublas),
            ..self
        })
    }
}

impl Prepared for CudaMatmul<'_> {
    fn run(&mut self) -> Result<TimedRun, RunError> {
        let Self {
            product,
            out,
            cublas,
        } = self;
        let gpu = product.gpu;
        if let Some(cublas) = cublas {
            gpu.run_timed(|queue| cublas.multiply(queue, (out, &product.a, &product.b)))
        } else {
            let ready = product.prepare_launch()?;
            gpu.run_timed(|queue| ready.launch(queue, out, 0))
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
