//! `read`: an array is taken in, and nothing but a sum comes out.

use std::{
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use super::{
    elementwise::larger_than_caches,
    on_cuda::{SEVERAL, stream_grid},
    prelude::*,
};

static ABOUT: About = About {
    id: "read",
    does: "Reads an array and sums its words.",
    teaches: "Reading alone is faster than reading and writing in turn; compare with `copy`.",
    dtypes: &[Dtype::Fp32, Dtype::Fp64],
    backends: &[Backend::Cuda, Backend::Cpu],
    bound: Bound::Memory,
    extent: Extent::Elements,
};

/// Elements that a thread of the CPU takes at a time.
const CHUNK: usize = 1 << 15;

/// The words are added as whole numbers: each bit counts, and no order of adding changes the sum.
pub(super) struct Read;

impl Workload for Read {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, backend: Backend, dtype: Dtype, budget: &MemoryBudget) -> u64 {
        larger_than_caches(backend, dtype, budget)
    }

    fn cost(&self, size: Size) -> Cost {
        let sums = 8 * u64::from(stream_grid(size.n, size.dtype.bytes(), SEVERAL).blocks);
        Cost {
            memory_bytes: size.bytes().saturating_add(sums),
            moved_bytes: size.bytes(),
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

/// Takes so much of a GPU's memory, fills it with zeros, reads all of it and gives it back. Whether all were zero.
pub(crate) fn read_zeros(gpu: &Gpu, bytes: u64) -> Result<bool, RunError> {
    let words = bytes / 8;
    let memory = gpu.context.allocate(bytes)?;
    let kernel = gpu.kernel(kernels::STREAM, "stream_read_fp64")?;
    let grid = stream_grid(words, 8, SEVERAL);
    let sums = gpu.poisoned(8 * u64::from(grid.blocks))?;
    gpu.stream.run(|queue| {
        queue.fill(&memory, 0)?;
        queue.launch(
            &kernel,
            grid,
            &[
                Argument::Out(&sums),
                Argument::In(&memory),
                Argument::U64(words),
            ],
        )
    })?;
    // A sum of words is 0 by chance where they are not: once in 2^64.
    Ok(gpu.download::<u64>(&sums)?.iter().all(|sum| *sum == 0))
}

struct OnCuda<'gpu, T> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    a: DeviceMemory,
    /// One of each block.
    sums: DeviceMemory,
    elements: u64,
    expected: u64,
    dtype: PhantomData<T>,
}

impl<'gpu, T: Real> OnCuda<'gpu, T> {
    fn new(gpu: &'gpu Gpu, elements: u64) -> Result<Self, RunError> {
        let width = T::DTYPE.bytes();
        Ok(Self {
            gpu,
            kernel: gpu.kernel(kernels::STREAM, &format!("stream_read_{}", T::DTYPE))?,
            a: gpu.random(
                &format!("random_{}", T::DTYPE),
                elements,
                elements * width,
                SEED_A,
            )?,
            sums: gpu.poisoned(8 * u64::from(stream_grid(elements, width, SEVERAL).blocks))?,
            elements,
            expected: sum_of_random::<T>(elements),
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
            elements,
            ..
        } = self;
        let grid = stream_grid(*elements, T::DTYPE.bytes(), SEVERAL);
        let arguments = [
            Argument::Out(sums),
            Argument::In(a),
            Argument::U64(*elements),
        ];
        gpu.time(|queue| queue.launch(kernel, grid, &arguments))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let total = AtomicU64::new(0);
        self.gpu
            .check(&self.sums, self.sums.bytes() / 8, |sums: &[u64], _| {
                total.fetch_add(sum(sums.iter().copied()), Relaxed);
                Verification::nothing()
            })?;
        Ok(Verification::for_all(
            self.elements,
            total.into_inner() == self.expected,
        ))
    }
}

struct OnCpu<T> {
    a: Vec<T>,
    expected: u64,
    /// `None` before the first run.
    total: Option<u64>,
}

impl<T: Real> OnCpu<T> {
    fn new(elements: u64) -> Self {
        let a = random::array(elements, |index| T::random(SEED_A, index));
        Self {
            a,
            expected: sum_of_random::<T>(elements),
            total: None,
        }
    }
}

impl<T: Real> Prepared for OnCpu<T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        Ok(Sample::on_cpu(|| {
            let sums = parallel::map(self.a.chunks(CHUNK), &|chunk| {
                sum(chunk.iter().map(|number| number.word()))
            });
            self.total = Some(sum(sums.into_iter()));
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(Verification::for_all(
            self.a.len() as u64,
            self.total == Some(self.expected),
        ))
    }
}

fn sum(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, u64::wrapping_add)
}

/// What should come of it, made anew from the seed.
fn sum_of_random<T: Real>(elements: u64) -> u64 {
    let sums = parallel::map((0..elements).step_by(CHUNK), &|first| {
        sum((first..elements)
            .take(CHUNK)
            .map(|index| T::random(SEED_A, index).word()))
    });
    sum(sums.into_iter())
}
