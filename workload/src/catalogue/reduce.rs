//! `reduce`: the sum of an array of numbers.

use std::marker::PhantomData;

use super::{elementwise::larger_than_caches, prelude::*};
use crate::cuda::Attribute;

const KERNELS: Code = ptx!("reduce");

static ABOUT: About = About {
    id: "reduce",
    does: "Sums all elements of an array.",
    teaches: "A reduction runs at memory bandwidth if each block sums its part before the blocks are combined.",
    dtypes: &[Dtype::Fp32, Dtype::Fp64],
    backends: &[Backend::Cuda, Backend::Cpu],
    bound: Bound::Memory,
    extent: Extent::Elements,
};

/// Numbers of both signs: sums of them grow as the root of how many there are, and so do the errors of rounding them.
const TOLERANCE: f64 = 64.0;
/// Enough blocks of a multiprocessor to fill it with threads.
const BLOCKS_EACH: u64 = 8;
const CHUNK: usize = 1 << 15;
/// Sums that the CPU keeps apart, so that it need not wait for one.
const LANES: usize = 16;

pub(super) struct Reduce;

impl Workload for Reduce {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        larger_than_caches(backend, dtype, budget)
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = size.bytes();
        // No chip has so many multiprocessors that the sums of their blocks would be more.
        Cost {
            memory_bytes: bytes.saturating_add(1 << 20),
            moved_bytes: bytes,
            operations: size.n,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        of_float!(ABOUT, size.dtype, |Float| OnCuda::<Float>::new(
            gpu, size.n
        )?)
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        of_float!(ABOUT, size.dtype, |Float| OnCpu::<Float>::new(size.n))
    }
}

struct OnCuda<'gpu, T> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    a: DeviceMemory,
    /// One of each block.
    sums: DeviceMemory,
    total: DeviceMemory,
    elements: u64,
    blocks: u32,
    expected: Expected,
    dtype: PhantomData<T>,
}

impl<'gpu, T: Real> OnCuda<'gpu, T> {
    fn new(gpu: &'gpu Gpu, elements: u64) -> Result<Self, RunError> {
        let width = T::DTYPE.bytes();
        let processors = gpu.device().attribute(Attribute::Multiprocessors)?.max(1) as u64;
        let blocks = (processors * BLOCKS_EACH).min(elements.div_ceil(u64::from(THREADS))) as u32;
        Ok(Self {
            gpu,
            kernel: gpu.kernel(KERNELS, &format!("reduce_{}", T::DTYPE))?,
            a: gpu.random(
                &format!("random_{}", T::DTYPE),
                elements,
                elements * width,
                SEED_A,
            )?,
            sums: gpu.poisoned(u64::from(blocks) * width)?,
            total: gpu.poisoned(width)?,
            elements,
            blocks,
            expected: expected::<T>(elements),
            dtype: PhantomData,
        })
    }
}

impl<T: Real> Prepared for OnCuda<'_, T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            kernel,
            a,
            sums,
            total,
            elements,
            blocks,
            ..
        } = self;
        gpu.time(|queue| {
            let all = [
                Argument::Out(sums),
                Argument::In(a),
                Argument::U64(*elements),
            ];
            queue.launch(
                kernel,
                Grid {
                    blocks: *blocks,
                    threads: THREADS,
                },
                &all,
            )?;
            let rest = [
                Argument::Out(total),
                Argument::In(sums),
                Argument::U64(u64::from(*blocks)),
            ];
            queue.launch(
                kernel,
                Grid {
                    blocks: 1,
                    threads: THREADS,
                },
                &rest,
            )
        })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let total: Vec<T> = self.gpu.download(&self.total)?;
        Ok(check(&total, self.elements, self.expected))
    }
}

struct OnCpu<T> {
    a: Vec<T>,
    total: T,
    expected: Expected,
}

impl<T: Real> OnCpu<T> {
    fn new(elements: u64) -> Self {
        let a = random::array(elements, |index| T::random(SEED_A, index));
        Self {
            a,
            total: T::POISON,
            expected: expected::<T>(elements),
        }
    }
}

impl<T: Real> Prepared for OnCpu<T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        Ok(Sample::on_cpu(|| {
            // By chunk, so that the order of adding does not depend on the threads.
            self.total = sum(&parallel::map(self.a.chunks(CHUNK), &sum));
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&[self.total], self.a.len() as u64, self.expected))
    }
}

fn sum<T: Real>(numbers: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let (packs, rest) = numbers.as_chunks::<LANES>();
    let rest = rest.iter().fold(T::default(), |sum, number| sum + *number);
    for pack in packs {
        sums.iter_mut()
            .zip(pack)
            .for_each(|(sum, number)| *sum = *sum + *number);
    }
    sums.iter().fold(rest, |total, sum| total + *sum)
}

/// The one number counts for all that it was made of.
fn check<T: Real>(total: &[T], elements: u64, expected: Expected) -> Verification {
    let found = compare(total, 0, TOLERANCE, |_| expected);
    Verification {
        largest_error: found.largest_error,
        tolerance: TOLERANCE,
        ..Verification::for_all(elements, found.ok)
    }
}

/// The sum in twice the precision, and how large a sum of such numbers is as a rule.
fn expected<T: Real>(elements: u64) -> Expected {
    let term = |index| {
        let number = T::random(SEED_A, index).to_f64();
        (DoubleDouble::from_f64(number), number * number)
    };
    let nothing = (DoubleDouble::from_f64(0.0), 0.0);
    let add = |(a, b), (c, d)| (a + c, b + d);
    let sums = parallel::map((0..elements).step_by(CHUNK), &|first| {
        (first..elements).take(CHUNK).map(term).fold(nothing, add)
    });
    let (value, squares) = sums.into_iter().fold(nothing, add);
    Expected {
        value,
        scale: squares.sqrt(),
    }
}
