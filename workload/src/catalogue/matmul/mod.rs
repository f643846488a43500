//! `matmul`: the product of two square matrices, in every type that the hardware multiplies.
//!
//! - [`kernel_select`] chooses the kernel for a GPU, a type and a size; [`product`] starts it and checks its result, [`on_cuda`]
//!   times it, [`on_cpu`] is the CPU's side.
//! - [`cut`] is how sums are cut into parts where there are too few tiles for all multiprocessors.
//! - [`low_precision`] are the types that the CPU has no units for. [`copied`] has the matrices on the host.
//! - [`rectangular`] is a product of any shape.
//! - [`values`] are the types as the host reads them, [`tolerance`] says how exact a product has to be.

mod copied;
mod cut;
mod kernel_select;
mod low_precision;
#[cfg(test)]
mod occupancy;
mod on_cpu;
mod on_cuda;
mod product;
mod rectangular;
mod tolerance;
mod values;

use half::{bf16, f16};

pub(super) use self::{
    copied::{PAGEABLE, PINNED},
    kernel_select::{AMPERE, HOPPER},
    tolerance::Tolerance,
};
pub(crate) use self::{
    kernel_select::needs,
    on_cpu::Factors,
    product::{Product, memory_bytes, result_bytes},
    rectangular::Rectangular,
};
use crate::{catalogue::prelude::*, cpu_product::CpuProduct, protocol::Shape};

pub(crate) static MATMUL: Matmul = Matmul;

/// So large are matrices on a GPU, where there is room: as large as what its makers show.
const GPU_SIDE: u64 = 8192;
/// A product of 64 bits takes some GPUs sixty times as long.
const GPU_SIDE_FP64: u64 = 4096;
const CPU_SIDE: u64 = 1024;
/// The matrices take no more than this part of what may be taken.
const PART: u64 = 2;

const DTYPES: &[Dtype] = &[
    Dtype::Bf16,
    Dtype::Fp16,
    Dtype::Fp8,
    Dtype::Int8,
    Dtype::Tf32,
    Dtype::Fp32,
    Dtype::Fp64,
];

/// The CPU's usual one comes first, too.
const CPU_DTYPES: &[Dtype] = &[
    Dtype::Fp32,
    Dtype::Fp64,
    Dtype::Tf32,
    Dtype::Bf16,
    Dtype::Fp16,
    Dtype::Fp8,
    Dtype::Int8,
];

static ABOUT: About = About {
    id: "matmul",
    does: "Multiplies two square matrices.",
    teaches: "Halving the width of the data type doubles the rate. Tensor cores are ten times as fast as other cores.",
    dtypes: DTYPES,
    backends: &[Backend::Cuda, Backend::Cpu],
    bound: Bound::Compute,
    extent: Extent::Side,
};

pub(crate) struct Matmul;

/// What a product takes and does.
fn cost(shape: Shape, dtype: Dtype) -> Cost {
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

/// A product of the types that every framework has.
fn shared(size: Size, copies: bool) -> Option<Shared> {
    match size.dtype {
        Dtype::Fp32 => Some(shared_as(on_cpu::Factors::<f32>::new, size, copies)),
        Dtype::Fp64 => Some(shared_as(on_cpu::Factors::<f64>::new, size, copies)),
        Dtype::Tf32 => {
            let element = |seed, index| values::tf32(f32::random(seed, index));
            Some(shared_as(
                move |n| on_cpu::Factors::from_elements(n, element),
                size,
                copies,
            ))
        }
        _ => None,
    }
}

fn shared_as<T: CpuProduct>(
    factors: impl FnOnce(u64) -> on_cpu::Factors<T> + 'static,
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

impl Workload for Matmul {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn every_type(&self) -> bool {
        true
    }

    fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        let wanted = match (backend, dtype) {
            (Backend::Cpu, _) => CPU_SIDE,
            (Backend::Cuda, Dtype::Fp64) => GPU_SIDE_FP64,
            (Backend::Cuda, _) => GPU_SIDE,
        };
        let halves = std::iter::successors(Some(wanted), |side| Some(side / 2));
        let fits = |side: &u64| {
            memory_bytes(Shape::square(*side), dtype, 1) <= budget.usable_bytes() / PART
        };
        halves.take_while(|side| *side > 0).find(fits).unwrap_or(1)
    }

    fn cost(&self, size: Size) -> Cost {
        cost(Shape::square(size.n), size.dtype)
    }

    /// Narrow types are held wide, too: both factors, which the check makes again, and the sums.
    fn cpu_bytes(&self, Size { n, dtype }: Size) -> u64 {
        let wide = match dtype {
            Dtype::Fp32 | Dtype::Fp64 => 0,
            Dtype::Int8 => 5 * size_of::<f64>() as u64,
            _ => 5 * size_of::<f32>() as u64,
        };
        n.saturating_mul(n)
            .saturating_mul(2 * dtype.bytes() + values::result_bytes(dtype) + wide)
    }

    fn check_device(&self, gpu: &Gpu, dtype: Dtype) -> Result<(), RunError> {
        match needs(dtype) {
            needed if gpu.device().capability < needed => Err(RunError::NotOnThisGpu {
                id: ABOUT.id,
                dtype,
                needed,
                has: gpu.device().capability,
            }),
            _ => Ok(()),
        }
    }

    fn types_on(&self, backend: Backend) -> &'static [Dtype] {
        match backend {
            Backend::Cuda => DTYPES,
            Backend::Cpu => CPU_DTYPES,
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(on_cuda::OnCuda::new(
            gpu,
            Shape::square(size.n),
            size.dtype,
        )?))
    }

    fn on_cublas<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        self.check_device(gpu, size.dtype)?;
        Ok(Box::new(
            on_cuda::OnCuda::new(gpu, Shape::square(size.n), size.dtype)?.by_cublas()?,
        ))
    }

    fn shared(&self, size: Size) -> Option<Shared> {
        shared(size, false)
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        match size.dtype {
            Dtype::Fp32 => Ok(Box::new(on_cpu::OnCpu::<f32>::new(size.n))),
            Dtype::Fp64 => Ok(Box::new(on_cpu::OnCpu::<f64>::new(size.n))),
            Dtype::Tf32 => Ok(Box::new(low_precision::OnCpu::<low_precision::Tf32>::new(
                size.n,
            ))),
            Dtype::Bf16 => Ok(Box::new(low_precision::OnCpu::<bf16>::new(size.n))),
            Dtype::Fp16 => Ok(Box::new(low_precision::OnCpu::<f16>::new(size.n))),
            Dtype::Fp8 => Ok(Box::new(low_precision::OnCpu::<low_precision::Fp8>::new(
                size.n,
            ))),
            Dtype::Int8 => Ok(Box::new(low_precision::OnCpu::<i8>::new(size.n))),
            Dtype::Bytes => Err(ABOUT.no_such(size.dtype)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_leave_room_and_are_counted_as_whole_tiles() {
        let budget = |free_gib: u64| MemoryBudget {
            place: "here".to_owned(),
            free_bytes: free_gib << 30,
            total_bytes: 8 << 30,
            cache_bytes: 0,
            is_shared: false,
        };
        assert_eq!(MATMUL.usual_n(Backend::Cuda, Dtype::Bf16, &budget(8)), 8192);
        assert_eq!(MATMUL.usual_n(Backend::Cuda, Dtype::Fp32, &budget(1)), 4096);
        assert_eq!(MATMUL.usual_n(Backend::Cuda, Dtype::Fp32, &budget(0)), 1);
        let cost = MATMUL.cost(Size {
            n: 1000,
            dtype: Dtype::Fp64,
        });
        assert_eq!(
            (cost.operations, cost.moved_bytes),
            (2_000_000_000, 24_000_000)
        );
        assert!(cost.memory_bytes >= 3 * 1024 * 1024 * 8);
        let on_cpu = |dtype| MATMUL.cpu_bytes(Size { n: 1000, dtype });
        assert_eq!(
            (on_cpu(Dtype::Fp32), on_cpu(Dtype::Int8)),
            (12_000_000, 46_000_000)
        );
        // A size beyond anything is no smaller than it is.
        assert_eq!(
            MATMUL
                .cost(Size {
                    n: 1 << 40,
                    dtype: Dtype::Fp64
                })
                .memory_bytes,
            u64::MAX
        );
    }
}
