//! Matrix products on the CPU with the crates `gemm-f32` and `gemm-f64`.

// The functions of the gemm crates take raw pointers.
#![allow(unsafe_code)]

use std::{marker::PhantomData, ops::Range};

use gemm_common::Parallelism;

use crate::{check::DoubleDouble, numbers::Real, parallel};

/// A function of the gemm crates that multiplies matrices. Its arguments are the sizes m, n and k;
/// the result, A and B, each with its column and row stride; two factors; and which matrices are
/// conjugated.
type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// A number type whose matrices the CPU can multiply.
pub(crate) trait CpuProduct: Real {
    /// Returns the fastest multiplication function for this processor.
    fn gemm_function() -> Gemm<Self>;

    /// Returns the dot product of `a` and `b` in higher precision, and the sum of the absolute
    /// values of its terms.
    fn exact_dot_product(a: &[Self], b: &[Self]) -> (DoubleDouble, f64);
}

impl CpuProduct for f32 {
    fn gemm_function() -> Gemm<Self> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }

    /// Sums in 64 bits, which represent each product of two 32-bit numbers exactly.
    fn exact_dot_product(a: &[Self], b: &[Self]) -> (DoubleDouble, f64) {
        const LANES: usize = 8;
        let (mut sums, mut sizes) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, a: f32, b: f32| {
            let product = f64::from(a) * f64::from(b);
            sums[lane] += product;
            sizes[lane] += product.abs();
        };
        let (a_packs, a_rest) = a.as_chunks::<LANES>();
        let (b_packs, b_rest) = b.as_chunks::<LANES>();
        for (a, b) in a_packs.iter().zip(b_packs) {
            (0..LANES).for_each(|lane| add(lane, a[lane], b[lane]));
        }
        a_rest.iter().zip(b_rest).for_each(|(a, b)| add(0, *a, *b));
        (
            DoubleDouble::from_f64(sums.iter().sum()),
            sizes.iter().sum(),
        )
    }
}

impl CpuProduct for f64 {
    fn gemm_function() -> Gemm<Self> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }

    fn exact_dot_product(a: &[Self], b: &[Self]) -> (DoubleDouble, f64) {
        let terms = a.iter().zip(b);
        terms.fold((DoubleDouble::from_f64(0.0), 0.0), |(sum, size), (a, b)| {
            (
                sum + DoubleDouble::from_f64(*a) * DoubleDouble::from_f64(*b),
                size + (a * b).abs(),
            )
        })
    }
}

/// Products of at least this size are computed on several threads. The size is the number of terms
/// times the size of an element in bytes. For smaller products, waking other threads takes longer
/// than the product.
const MIN_SHARED_WORK: usize = 3 << 20;
/// The minimum size of a product that is computed on two threads if there are only two. The minimum
/// is higher than for more threads, because two threads save at most half of the time. On two
/// cores, a 100 x 100 product takes 9.9 us in fp32 and 19 us in fp64 on one thread. On two threads,
/// it takes 24 us in fp32 and 16 to 29 us in fp64.
const MIN_WORK_FOR_TWO_THREADS: usize = 9 << 20;
/// The minimum number of multiplications in a tile.
const MIN_TILE_TERMS: usize = 60_000;
/// The minimum number of multiplications in a tile if there are several tiles per thread. With
/// several tiles, a delayed thread does not make the other threads wait for long.
const MIN_TERMS_OF_EXTRA_TILES: usize = 1 << 21;
const TILES_PER_THREAD: usize = 3;

/// Multiplies A by B on all threads. Both are in row-major order. Each thread computes its own
/// tiles of the result, and no thread waits for another. The gemm crates could also use several
/// threads, but these would wait until one of them has reordered B.
pub(crate) fn multiply_on_all_threads<T: CpuProduct>(out: &mut [T], a: &[T], b: &[T], n: usize) {
    let (down, across) = tile_counts(n, size_of::<T>(), rayon::current_num_threads());
    let product = Product::new(out, a, b, n);
    let tile = |at, of| at * n / of..(at + 1) * n / of;
    // SAFETY: the tiles do not overlap.
    parallel::for_each_index(down * across, &|at| unsafe {
        product.compute_tile(tile(at / across, down), tile(at % across, across));
    });
}

/// Multiplies A by B on the current thread only. Both are in row-major order.
pub(crate) fn multiply_on_this_thread<T: CpuProduct>(out: &mut [T], a: &[T], b: &[T], n: usize) {
    // SAFETY: no other tile is being computed.
    unsafe { Product::new(out, a, b, n).compute_tile(0..n, 0..n) };
}

/// Returns the number of tiles from top to bottom and from left to right. The latter is the square
/// root of the number of threads: on sixteen threads, most of the fastest divisions had four tiles
/// from left to right.
fn tile_counts(n: usize, width: usize, threads: usize) -> (usize, usize) {
    let terms = n * n * n;
    if terms * width
        < if threads == 2 {
            MIN_WORK_FOR_TWO_THREADS
        } else {
            MIN_SHARED_WORK
        }
    {
        return (1, 1);
    }
    let count = threads
        .min(terms / MIN_TILE_TERMS)
        .max((TILES_PER_THREAD * threads).min(terms / MIN_TERMS_OF_EXTRA_TILES));
    let across = threads.isqrt().max(1);
    ((count / across).max(1), across)
}

/// The three matrices of a product, each with `n` rows of `n` elements.
struct Product<'a, T> {
    out: *mut T,
    a: *const T,
    b: *const T,
    n: usize,
    matrices: PhantomData<(&'a mut [T], &'a [T])>,
}

// SAFETY: the inputs are only read, and the result is only written by `compute_tile`, which
// requires that no two threads write the same elements.
unsafe impl<T: CpuProduct> Sync for Product<'_, T> {}

impl<'a, T: CpuProduct> Product<'a, T> {
    fn new(out: &'a mut [T], a: &'a [T], b: &'a [T], n: usize) -> Self {
        assert!(
            [out.len(), a.len(), b.len()] == [n * n; 3],
            "all three are {n} x {n}"
        );
        Self {
            out: out.as_mut_ptr(),
            a: a.as_ptr(),
            b: b.as_ptr(),
            n,
            matrices: PhantomData,
        }
    }

    /// Computes a tile of the result on the current thread.
    ///
    /// # Safety
    /// No other thread may compute the same elements at the same time.
    unsafe fn compute_tile(&self, rows: Range<usize>, columns: Range<usize>) {
        assert!(
            rows.start <= rows.end && rows.end <= self.n,
            "the rows are within the matrix"
        );
        assert!(
            columns.start <= columns.end && columns.end <= self.n,
            "the columns are within the matrix"
        );
        let (n, pitch) = (self.n, self.n.cast_signed());
        let (zero, one) = (T::from_f64(0.0), T::from_f64(1.0));
        // SAFETY: each matrix has `n` rows of `n` elements, and the tile and its inputs are within
        // the matrices. The caller guarantees exclusive access to the tile.
        unsafe {
            T::gemm_function()(
                rows.len(),
                columns.len(),
                n,
                self.out.add(rows.start * n + columns.start),
                1,
                pitch,
                false,
                self.a.add(rows.start * n),
                1,
                pitch,
                self.b.add(columns.start),
                1,
                pitch,
                zero,
                one,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{SEED_A, SEED_B};

    #[test]
    fn small_products_use_fewer_tiles_than_threads() {
        let of = [
            (1000, 16),
            (300, 16),
            (100, 16),
            (100, 2),
            (1000, 2),
            (1000, 7),
            (1000, 1),
            (64, 16),
            (1, 64),
        ];
        let expected = [
            (12, 4),
            (4, 4),
            (4, 4),
            (1, 1),
            (6, 1),
            (10, 2),
            (3, 1),
            (1, 1),
            (1, 1),
        ];
        assert_eq!(of.map(|(n, threads)| tile_counts(n, 4, threads)), expected);
        assert_eq!(
            [80, 70].map(|n| tile_counts(n, 8, 4)),
            [(2, 2), (1, 1)],
            "twice as wide, sooner shared"
        );
        assert_eq!(
            [110, 100].map(|n| tile_counts(n, 8, 2)),
            [(2, 1), (1, 1)],
            "two threads share later"
        );
    }

    /// These sides are not divisible by any number of tiles.
    #[test]
    fn tiles_cover_the_whole_product() {
        for (n, threads) in [(97, 4), (151, 8), (211, 16), (147, 3)] {
            let matrix = |seed| {
                (0..(n * n) as u64)
                    .map(|index| f64::random_number(seed, index))
                    .collect::<Vec<_>>()
            };
            let (a, b) = (matrix(SEED_A), matrix(SEED_B));
            let (mut whole, mut parts) = (vec![f64::NAN; n * n], vec![f64::NAN; n * n]);
            multiply_on_this_thread(&mut whole, &a, &b, n);
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| multiply_on_all_threads(&mut parts, &a, &b, n));
            let sum: f64 = (0..n).map(|k| a[n + k] * b[k * n + 2]).sum();
            assert!((whole[n + 2] - sum).abs() < 1e-12, "{n}");
            assert!(
                whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-12),
                "{n} by {threads}"
            );
        }
    }
}
