//! Workloads that read an array and compute a sum.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    elementwise::{SEVERAL, stream_grid},
    prelude::*,
};
use crate::cuda::Attribute;

/// The tolerance. Sums of numbers with both signs grow with the square root of their count, and so
/// do their rounding errors.
const TOLERANCE: f64 = 64.0;
/// The number of blocks that fill a multiprocessor with threads.
const BLOCKS_EACH: u64 = 8;
/// The number of elements that a CPU thread takes at a time.
const CHUNK: usize = 1 << 15;
/// The number of separate sums on the CPU, so that it does not wait for each addition.
const LANES: usize = 16;

/// The workload `read`, which adds words as integers. Thus each bit counts, and the order of
/// additions does not change the sum.
pub(super) struct Read;

impl Program for Read {
    fn cost_of(&self, size: Size) -> Cost {
        let sums = 8 * u64::from(stream_grid(size.n, size.dtype.bytes(), SEVERAL).blocks);
        Cost {
            memory_bytes: size.bytes().saturating_add(sums),
            moved_bytes: size.bytes(),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        of_float!(size.dtype, |Float| read_on_cuda::<Float>(gpu, size.n))
    }

    fn on_cpu(&self, size: Size) -> Ready<'static> {
        of_float!(size.dtype, |Float| read_on_cpu::<Float>(size.n))
    }
}

/// Allocates GPU memory, fills it with zeros, reads all of it and releases it. Returns `true` if
/// all of it was zero.
pub(crate) fn read_zeros(gpu: &Gpu, bytes: u64) -> Result<bool, RunError> {
    let words = bytes / 8;
    let memory = gpu.context.allocate(bytes)?;
    let kernel = gpu.kernel(kernels::STREAM, "stream_read_fp64")?;
    let grid = stream_grid(words, 8, SEVERAL);
    let sums = gpu.poisoned(8 * u64::from(grid.blocks))?;
    gpu.stream.run(|queue| {
        queue.fill(&memory, 0)?;
        queue.launch(&kernel, grid, &[Out(&sums), In(&memory), U64(words)])
    })?;
    // If the words were not zero, their sum would be 0 by chance only once in 2^64.
    Ok(gpu.download::<u64>(&sums)?.iter().all(|sum| *sum == 0))
}

/// Prepares a run on a GPU, with one sum per block.
fn read_on_cuda<T: Real>(gpu: &Gpu, elements: u64) -> Ready<'_> {
    let grid = stream_grid(elements, T::DTYPE.bytes(), SEVERAL);
    let kernel = gpu.kernel(kernels::STREAM, &format!("stream_read_{}", T::DTYPE))?;
    let a = gpu.random_array::<T>(elements, SEED_A)?;
    let expected = sum_of_random::<T>(elements);
    prepare_work(
        gpu.poisoned(8 * u64::from(grid.blocks))?,
        move |sums| {
            let arguments = [Out(sums), In(&a), U64(elements)];
            gpu.time(|queue| queue.launch(&kernel, grid, &arguments))
        },
        move |sums| {
            let total = AtomicU64::new(0);
            gpu.check(sums, sums.bytes() / 8, |sums: &[u64], _| {
                total.fetch_add(sum_words(sums.iter().copied()), Relaxed);
                Verification::nothing()
            })?;
            let is_right = total.into_inner() == expected;
            Ok(Verification::for_all(elements, is_right))
        },
    )
}

fn read_on_cpu<T: Real>(elements: u64) -> Ready<'static> {
    let a = T::random_array(elements, SEED_A);
    let expected = sum_of_random::<T>(elements);
    prepare_on_cpu(
        // There is no sum before the first run.
        None,
        move |total| {
            let sums = parallel::map(a.chunks(CHUNK), &|chunk| {
                sum_words(chunk.iter().map(|number| number.word()))
            });
            *total = Some(sum_words(sums.into_iter()));
        },
        move |total| Verification::for_all(elements, *total == Some(expected)),
    )
}

fn sum_words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, u64::wrapping_add)
}

/// Returns the expected sum, computed from the seed.
fn sum_of_random<T: Real>(elements: u64) -> u64 {
    let sums = parallel::map((0..elements).step_by(CHUNK), &|first| {
        let words = (first..elements)
            .take(CHUNK)
            .map(|index| T::random(SEED_A, index).word());
        sum_words(words)
    });
    sum_words(sums.into_iter())
}

/// The workload `reduce`, which computes the sum of an array of numbers.
pub(super) struct Reduce;

impl Program for Reduce {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes();
        // No chip has so many multiprocessors that the sums of their blocks need more memory.
        Cost {
            memory_bytes: bytes.saturating_add(1 << 20),
            moved_bytes: bytes,
            operations: size.n,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        of_float!(size.dtype, |Float| sum_on_cuda::<Float>(gpu, size.n))
    }

    fn on_cpu(&self, size: Size) -> Ready<'static> {
        of_float!(size.dtype, |Float| sum_on_cpu::<Float>(size.n))
    }
}

/// Prepares a run on a GPU, with one sum per block, and then the sum of these.
fn sum_on_cuda<T: Real>(gpu: &Gpu, elements: u64) -> Ready<'_> {
    let width = T::DTYPE.bytes();
    let processors = gpu.device().attribute(Attribute::Multiprocessors)?.max(1) as u64;
    let blocks = (processors * BLOCKS_EACH).min(elements.div_ceil(u64::from(THREADS)));
    let kernel = gpu.kernel(ptx!("reduce"), &format!("reduce_{}", T::DTYPE))?;
    let a = gpu.random_array::<T>(elements, SEED_A)?;
    let sums = gpu.poisoned(blocks * width)?;
    let expected = expected_sum::<T>(elements);
    prepare_work(
        gpu.poisoned(width)?,
        move |total| {
            gpu.time(|queue| {
                let all = [Out(&sums), In(&a), U64(elements)];
                queue.launch(&kernel, Grid::of_blocks(blocks), &all)?;
                let rest = [Out(total), In(&sums), U64(blocks)];
                queue.launch(&kernel, Grid::of_blocks(1), &rest)
            })
        },
        move |total| {
            let total: Vec<T> = gpu.download(total)?;
            Ok(check_sum(&total, elements, expected))
        },
    )
}

fn sum_on_cpu<T: Real>(elements: u64) -> Ready<'static> {
    let a = T::random_array(elements, SEED_A);
    let expected = expected_sum::<T>(elements);
    prepare_on_cpu(
        T::POISON,
        // Each chunk is added separately, so that the order of additions does not depend on the
        // threads.
        move |total| *total = sum(&parallel::map(a.chunks(CHUNK), &sum)),
        move |total| check_sum(&[*total], elements, expected),
    )
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

/// Checks a sum, which counts as a check of all of its elements.
fn check_sum<T: Real>(total: &[T], elements: u64, expected: Expected) -> Verification {
    let found = compare(total, 0, TOLERANCE, |_| expected);
    Verification {
        largest_error: found.largest_error,
        tolerance: TOLERANCE,
        ..Verification::for_all(elements, found.ok)
    }
}

/// Returns the sum in twice the precision, and the typical size of a sum of such numbers.
fn expected_sum<T: Real>(elements: u64) -> Expected {
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
