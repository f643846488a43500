//! Workloads that read an array and add its elements.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    elementwise::{PACKS_PER_THREAD, stream_grid},
    prelude::*,
};
use crate::cuda::Attribute;

/// The allowed error. Numbers with both signs partly cancel each other, so their sum grows with the
/// square root of their count. The rounding error of the sum grows in the same way.
const TOLERANCE: f64 = 64.0;
/// The number of blocks needed to occupy all threads of a multiprocessor.
const BLOCKS_PER_MULTIPROCESSOR: u64 = 8;
/// The number of elements that a CPU thread takes at a time.
const CHUNK_ELEMENTS: usize = 1 << 15;
/// The number of sums that the CPU computes in parallel, so that it does not wait for each
/// addition.
const SEPARATE_SUMS: usize = 16;

/// The workload `read`, which adds words as integers. Every bit therefore counts, and the order of
/// additions does not affect the sum.
pub(super) struct ReadWorkload;

impl Program for ReadWorkload {
    fn cost_of(&self, size: Size) -> Cost {
        let sums = 8 * u64::from(stream_grid(size.n, size.dtype.bytes(), PACKS_PER_THREAD).blocks);
        Cost {
            memory_bytes: size.bytes().saturating_add(sums),
            moved_bytes: size.bytes(),
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        of_float!(size.dtype, |Float| prepare_read_on_cuda::<Float>(
            gpu, size.n
        ))
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        of_float!(size.dtype, |Float| prepare_read_on_cpu::<Float>(size.n))
    }
}

/// Allocates GPU memory, fills it with zeros, reads it completely, and releases it. Returns `true`
/// if only zeros were read.
pub(crate) fn write_and_check_zeros(gpu: &Gpu, bytes: u64) -> Result<bool, RunError> {
    let words = bytes / 8;
    let memory = gpu.context.allocate(bytes)?;
    let kernel = gpu.load_kernel(kernels::STREAM, "stream_read_fp64")?;
    let grid = stream_grid(words, 8, PACKS_PER_THREAD);
    let sums = gpu.allocate_poisoned(8 * u64::from(grid.blocks))?;
    gpu.stream.run(|queue| {
        queue.fill(&memory, 0)?;
        queue.launch(&kernel, grid, &[Out(&sums), In(&memory), U64(words)])
    })?;
    // If some words were not zero, the probability that a sum is still 0 would be 2^-64.
    Ok(gpu.copy_to_host::<u64>(&sums)?.iter().all(|sum| *sum == 0))
}

/// Prepares a run on a GPU, which computes one sum per block.
fn prepare_read_on_cuda<T: Real>(gpu: &Gpu, elements: u64) -> PreparedResult<'_> {
    let grid = stream_grid(elements, T::DTYPE.bytes(), PACKS_PER_THREAD);
    let kernel = gpu.load_kernel(kernels::STREAM, &format!("stream_read_{}", T::DTYPE))?;
    let a = gpu.allocate_random_array::<T>(elements, SEED_A)?;
    let expected = expected_sum_of_words::<T>(elements);
    prepare_work(
        gpu.allocate_poisoned(8 * u64::from(grid.blocks))?,
        move |sums| {
            let arguments = [Out(sums), In(&a), U64(elements)];
            gpu.run_timed(|queue| queue.launch(&kernel, grid, &arguments))
        },
        move |sums| {
            let total = AtomicU64::new(0);
            gpu.check_memory_in_pieces(sums, sums.bytes() / 8, |sums: &[u64], _| {
                total.fetch_add(sum_words(sums.iter().copied()), Relaxed);
                Verification::empty()
            })?;
            let is_right = total.into_inner() == expected;
            Ok(Verification::from_joint_check(elements, is_right))
        },
    )
}

fn prepare_read_on_cpu<T: Real>(elements: u64) -> PreparedResult<'static> {
    let a = T::random_array(elements, SEED_A);
    let expected = expected_sum_of_words::<T>(elements);
    prepare_cpu_work(
        // Before the first run, there is no sum.
        None,
        move |total| {
            let sums = parallel::map(a.chunks(CHUNK_ELEMENTS), &|chunk| {
                sum_words(chunk.iter().map(|number| number.to_bits_u64()))
            });
            *total = Some(sum_words(sums.into_iter()));
        },
        move |total| Verification::from_joint_check(elements, *total == Some(expected)),
    )
}

fn sum_words(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, u64::wrapping_add)
}

/// Returns the expected sum of the random words, which are generated from the seed.
fn expected_sum_of_words<T: Real>(elements: u64) -> u64 {
    let sums = parallel::map((0..elements).step_by(CHUNK_ELEMENTS), &|first| {
        let words = (first..elements)
            .take(CHUNK_ELEMENTS)
            .map(|index| T::random_number(SEED_A, index).to_bits_u64());
        sum_words(words)
    });
    sum_words(sums.into_iter())
}

/// The workload `reduce`, which computes the sum of an array of numbers.
pub(super) struct Reduce;

impl Program for Reduce {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes();
        // The sums of the blocks need at most a mebibyte, because no chip has enough
        // multiprocessors to exceed this.
        Cost {
            memory_bytes: bytes.saturating_add(1 << 20),
            moved_bytes: bytes,
            operations: size.n,
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        of_float!(size.dtype, |Float| prepare_sum_on_cuda::<Float>(
            gpu, size.n
        ))
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        of_float!(size.dtype, |Float| prepare_sum_on_cpu::<Float>(size.n))
    }
}

/// Prepares a run on a GPU, which computes one sum per block, and then the sum of these sums.
fn prepare_sum_on_cuda<T: Real>(gpu: &Gpu, elements: u64) -> PreparedResult<'_> {
    let width = T::DTYPE.bytes();
    let processors = gpu.device().attribute(Attribute::Multiprocessors)?.max(1) as u64;
    let blocks = (processors * BLOCKS_PER_MULTIPROCESSOR)
        .min(elements.div_ceil(u64::from(THREADS_PER_BLOCK)));
    let kernel = gpu.load_kernel(ptx!("reduce"), &format!("reduce_{}", T::DTYPE))?;
    let a = gpu.allocate_random_array::<T>(elements, SEED_A)?;
    let sums = gpu.allocate_poisoned(blocks * width)?;
    let expected = expected_sum_of_numbers::<T>(elements);
    prepare_work(
        gpu.allocate_poisoned(width)?,
        move |total| {
            gpu.run_timed(|queue| {
                let all = [Out(&sums), In(&a), U64(elements)];
                queue.launch(&kernel, Grid::with_blocks(blocks), &all)?;
                let rest = [Out(total), In(&sums), U64(blocks)];
                queue.launch(&kernel, Grid::with_blocks(1), &rest)
            })
        },
        move |total| {
            let total: Vec<T> = gpu.copy_to_host(total)?;
            Ok(check_sum(&total, elements, expected))
        },
    )
}

fn prepare_sum_on_cpu<T: Real>(elements: u64) -> PreparedResult<'static> {
    let a = T::random_array(elements, SEED_A);
    let expected = expected_sum_of_numbers::<T>(elements);
    prepare_cpu_work(
        T::POISON,
        // Each chunk is summed separately. So the order of additions is the same for any number of
        // threads.
        move |total| *total = sum_numbers(&parallel::map(a.chunks(CHUNK_ELEMENTS), &sum_numbers)),
        move |total| check_sum(&[*total], elements, expected),
    )
}

fn sum_numbers<T: Real>(numbers: &[T]) -> T {
    let mut sums = [T::default(); SEPARATE_SUMS];
    let (packs, rest) = numbers.as_chunks::<SEPARATE_SUMS>();
    let rest = rest.iter().fold(T::default(), |sum, number| sum + *number);
    for pack in packs {
        sums.iter_mut()
            .zip(pack)
            .for_each(|(sum, number)| *sum = *sum + *number);
    }
    sums.iter().fold(rest, |total, sum| total + *sum)
}

/// Checks a sum. This counts as a check of all elements that were added.
fn check_sum<T: Real>(total: &[T], elements: u64, expected: Expected) -> Verification {
    let found = compare_elements(total, 0, TOLERANCE, |_| expected);
    Verification {
        largest_error: found.largest_error,
        tolerance: TOLERANCE,
        ..Verification::from_joint_check(elements, found.ok)
    }
}

/// Returns the sum in twice the precision. The scale of the returned value is the typical size of
/// such a sum.
fn expected_sum_of_numbers<T: Real>(elements: u64) -> Expected {
    let term = |index| {
        let number = T::random_number(SEED_A, index).to_f64();
        (DoubleDouble::from_f64(number), number * number)
    };
    let nothing = (DoubleDouble::from_f64(0.0), 0.0);
    let add = |(a, b), (c, d)| (a + c, b + d);
    let sums = parallel::map((0..elements).step_by(CHUNK_ELEMENTS), &|first| {
        (first..elements)
            .take(CHUNK_ELEMENTS)
            .map(term)
            .fold(nothing, add)
    });
    let (value, squares) = sums.into_iter().fold(nothing, add);
    Expected {
        value,
        scale: squares.sqrt(),
    }
}
