//! Products of matrices on the CPU, by the `gemm` crate.

// Its functions take pointers.
#![allow(unsafe_code)]

use gemm::Parallelism;

use crate::{exact::Exact, real::Real};

/// A type that the CPU multiplies matrices of.
pub(crate) trait CpuProduct: Real {
    /// A sum of products in higher precision, and the sum of its terms' sizes.
    fn exact_sum(a: &[Self], b: &[Self]) -> (Exact, f64);
}

impl CpuProduct for f32 {
    /// 64 bits hold each product exactly.
    fn exact_sum(a: &[Self], b: &[Self]) -> (Exact, f64) {
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
        (Exact::of(sums.iter().sum()), sizes.iter().sum())
    }
}

impl CpuProduct for f64 {
    fn exact_sum(a: &[Self], b: &[Self]) -> (Exact, f64) {
        let terms = a.iter().zip(b);
        terms.fold((Exact::of(0.0), 0.0), |(sum, size), (a, b)| {
            (sum + Exact::of(*a) * Exact::of(*b), size + (a * b).abs())
        })
    }
}

/// Multiplies A, row by row, with B, column by column, on all threads.
///
/// # Panics
/// Where one of them is not `n` x `n`.
pub(crate) fn multiply<T: CpuProduct>(out: &mut [T], a: &[T], b: &[T], n: usize) {
    product(out, a, b, n, [n.cast_signed(), 1], Parallelism::Rayon(0));
}

/// Multiplies A with B, both row by row, on this thread alone.
///
/// # Panics
/// Where one of them is not `n` x `n`.
pub(crate) fn multiply_here<T: CpuProduct>(out: &mut [T], a: &[T], b: &[T], n: usize) {
    product(out, a, b, n, [1, n.cast_signed()], Parallelism::None);
}

/// B's columns and rows are so far apart.
fn product<T: CpuProduct>(out: &mut [T], a: &[T], b: &[T], n: usize, of_b: [isize; 2], threads: Parallelism) {
    assert!([out.len(), a.len(), b.len()] == [n * n; 3], "all three are {n} x {n}");
    let pitch = n.cast_signed();
    let (zero, one) = (T::of(0.0), T::of(1.0));
    // SAFETY: each matrix has `n` rows of `n` elements at these distances, and the result is nobody else's.
    unsafe {
        gemm::gemm(
            n,
            n,
            n,
            out.as_mut_ptr(),
            1,
            pitch,
            false,
            a.as_ptr(),
            1,
            pitch,
            b.as_ptr(),
            of_b[0],
            of_b[1],
            zero,
            one,
            false,
            false,
            false,
            threads,
        );
    }
}
