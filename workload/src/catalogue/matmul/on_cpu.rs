//! Products on the CPU, and the check of their results. Types that the CPU cannot multiply are
//! converted to wider types, multiplied, and rounded. All of these steps are timed, because they
//! are part of the type's cost.

use half::{bf16, f16};

use super::values::{self, Tolerance};
use crate::{
    catalogue::prelude::*,
    cpu_product::{CpuProduct, multiply_on_all_threads},
    parallel::CHUNK_ELEMENTS,
};

/// The number of B's columns that a thread checks at a time.
const CHECKED_COLUMNS: usize = 64;
/// Matrices with fewer than twice this many rows are checked completely, and larger matrices in
/// part.
const FULLY_CHECKED_ROWS: usize = 1024;

/// Both factors of a product, in row-major order.
pub(crate) struct Factors<T> {
    a: Vec<T>,
    b: Vec<T>,
    n: usize,
}

impl<T: CpuProduct> Factors<T> {
    pub(crate) fn new(n: u64) -> Self {
        Self::from_elements(n, T::random_number)
    }

    pub(super) fn from_elements(n: u64, element: impl Fn(u64, u64) -> T + Sync) -> Self {
        let matrix = |seed| numbers::generate_array(n * n, |index| element(seed, index));
        Self {
            a: matrix(SEED_A),
            b: matrix(SEED_B),
            n: n as usize,
        }
    }

    pub(super) fn factors_mut(&mut self) -> [&mut Vec<T>; 2] {
        [&mut self.a, &mut self.b]
    }

    /// Returns the number of rows of each factor.
    pub(super) fn matrix_side(&self) -> u64 {
        self.n as u64
    }

    /// Returns memory for a result, filled with poison.
    pub(crate) fn poisoned_result(&self) -> Vec<T> {
        // Memory is located near the threads that first write to it. So the poison is written by
        // the threads that will write the result.
        numbers::generate_array((self.n * self.n) as u64, |_| T::POISON)
    }

    pub(crate) fn multiply(&self, out: &mut [T]) {
        multiply_on_all_threads(out, &self.a, &self.b, self.n);
    }

    /// Verifies a result by computing each element again in twice the precision.
    pub(crate) fn verify(&self, out: &[T]) -> Verification {
        self.verify_with_tolerance(Tolerance::new(T::DTYPE, self.matrix_side()), |at| {
            out[at].to_f64()
        })
    }

    /// Verifies some columns of a result. The larger the matrix, the smaller the share of columns.
    pub(super) fn verify_some_columns(&self, out: &[T]) -> Verification {
        let every = (self.n / FULLY_CHECKED_ROWS).pow(2).max(1);
        self.compare_columns(Tolerance::new(T::DTYPE, self.matrix_side()), every, |at| {
            out[at].to_f64()
        })
    }

    /// Verifies a result of any type, as [`verify`](Self::verify) does. `out` returns an element of
    /// the result.
    pub(super) fn verify_with_tolerance(
        &self,
        bound: Tolerance,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        self.compare_columns(bound, 1, out)
    }

    /// Verifies one of `every` consecutive groups of columns.
    fn compare_columns(
        &self,
        bound: Tolerance,
        every: usize,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        let Self { a, b, n } = self;
        let of_columns = |first: usize| {
            let columns = first..(first + CHECKED_COLUMNS).min(*n);
            // The columns are copied so that their elements are contiguous, like the elements of
            // A's rows.
            let upright: Vec<Vec<T>> = columns
                .map(|column| b.iter().skip(column).step_by(*n).copied().collect())
                .collect();
            let mut found = Verification::empty();
            for (row, a) in a.chunks(*n).enumerate() {
                for (column, b) in (first..).zip(&upright) {
                    let (sum, size) = T::exact_dot_product(a, b);
                    let at = row * n + column;
                    found = found.merge(bound.check_element(at as u64, out(at), sum, size));
                }
            }
            found
        };
        parallel::map((0..*n).step_by(CHECKED_COLUMNS * every), &of_columns)
            .into_iter()
            .collect()
    }
}

pub(super) fn prepare_product<T: CpuProduct>(n: u64) -> PreparedResult<'static> {
    let factors = Factors::<T>::new(n);
    prepare_cpu_work(
        (factors.poisoned_result(), factors),
        |(out, factors)| factors.multiply(out),
        |(out, factors)| factors.verify(out),
    )
}

/// A type that is narrower than the types that the CPU multiplies.
pub(super) trait LowPrecision: Copy + Default + Send + Sync + 'static {
    const DTYPE: Dtype;
    /// The type in which elements are multiplied. It represents each product exactly. For integers,
    /// it also represents each sum exactly.
    type Wide: CpuProduct;
    /// The type that the elements of a product are rounded to.
    type Out: Copy + Send + Sync + 'static;
    /// A value that never occurs in a result.
    const POISON: Self::Out;

    fn random_number(seed: u64, index: u64) -> Self;
    fn to_wide(self) -> Self::Wide;
    fn round_sum(sum: Self::Wide) -> Self::Out;
    fn result_to_f64(out: Self::Out) -> f64;
}

/// A 32-bit number with 0 in its last 13 bits.
#[derive(Clone, Copy, Default)]
pub(super) struct Tf32(f32);
/// An e4m3 number: a sign bit, four exponent bits and three fraction bits.
#[derive(Clone, Copy, Default)]
pub(super) struct Fp8(u8);

/// Both factors, memory for the converted factors, and the result.
struct LowPrecisionProduct<T: LowPrecision> {
    a: Vec<T>,
    b: Vec<T>,
    wide: Factors<T::Wide>,
    sums: Vec<T::Wide>,
    out: Vec<T::Out>,
}

pub(super) fn prepare_low_precision_product<T: LowPrecision>(n: u64) -> PreparedResult<'static> {
    prepare_cpu_work(
        LowPrecisionProduct::<T>::new(n),
        LowPrecisionProduct::multiply,
        LowPrecisionProduct::verify,
    )
}

impl<T: LowPrecision> LowPrecisionProduct<T> {
    fn new(n: u64) -> Self {
        let matrix = |seed| numbers::generate_array(n * n, |index| T::random_number(seed, index));
        let wide = Factors::from_elements(n, |_, _| T::Wide::default());
        Self {
            a: matrix(SEED_A),
            b: matrix(SEED_B),
            sums: wide.poisoned_result(),
            out: vec![T::POISON; (n * n) as usize],
            wide,
        }
    }

    fn multiply(&mut self) {
        let Self {
            a,
            b,
            wide,
            sums,
            out,
        } = self;
        for (wide, narrow) in wide.factors_mut().into_iter().zip([&*a, &*b]) {
            convert_elements(wide, narrow, T::to_wide);
        }
        wide.multiply(sums);
        convert_elements(out, sums, T::round_sum);
    }

    /// Verifies the result with newly generated factors, so that the conversion of the factors is
    /// verified, too.
    fn verify(&self) -> Verification {
        let n = self.wide.matrix_side();
        let factors = Factors::from_elements(n, |seed, index| {
            T::Wide::from_f64(values::random_value(T::DTYPE, seed, index))
        });
        factors.verify_with_tolerance(Tolerance::new(T::DTYPE, n), |at| {
            T::result_to_f64(self.out[at])
        })
    }
}

fn convert_elements<From: Copy + Sync, To: Send>(
    out: &mut [To],
    a: &[From],
    of: impl Fn(From) -> To + Sync,
) {
    parallel::for_each(
        out.chunks_mut(CHUNK_ELEMENTS).zip(a.chunks(CHUNK_ELEMENTS)),
        &|(out, a)| {
            out.iter_mut().zip(a).for_each(|(out, a)| *out = of(*a));
        },
    );
}

impl LowPrecision for Tf32 {
    const DTYPE: Dtype = Dtype::Tf32;
    type Wide = f32;
    type Out = f32;
    const POISON: f32 = f32::NAN;

    fn random_number(seed: u64, index: u64) -> Self {
        Self(values::round_to_tf32(f32::random_number(seed, index)))
    }
    fn to_wide(self) -> f32 {
        self.0
    }
    fn round_sum(sum: f32) -> f32 {
        sum
    }
    fn result_to_f64(out: f32) -> f64 {
        f64::from(out)
    }
}

/// Implements `LowPrecision` for a 16-bit type whose results have the same type.
macro_rules! half {
    ($type:ty, $dtype:expr) => {
        impl LowPrecision for $type {
            const DTYPE: Dtype = $dtype;
            type Wide = f32;
            type Out = Self;
            const POISON: Self = Self::NAN;

            fn random_number(seed: u64, index: u64) -> Self {
                Self::from_f32(f32::random_number(seed, index))
            }
            fn to_wide(self) -> f32 {
                self.to_f32()
            }
            fn round_sum(sum: f32) -> Self {
                Self::from_f32(sum)
            }
            fn result_to_f64(out: Self) -> f64 {
                out.to_f64()
            }
        }
    };
}

half!(f16, Dtype::Fp16);
half!(bf16, Dtype::Bf16);

impl LowPrecision for Fp8 {
    const DTYPE: Dtype = Dtype::Fp8;
    type Wide = f32;
    type Out = bf16;
    const POISON: bf16 = bf16::NAN;

    fn random_number(seed: u64, index: u64) -> Self {
        Self::from_f64(values::round_to_fp8(f32::random_number(seed, index)))
    }
    /// Converts the number through fp16. The exponent and fraction bits are copied to an fp16
    /// number. The exponent bias of fp16 is higher by eight, so the result is multiplied by 2^8.
    fn to_wide(self) -> f32 {
        let Self(code) = self;
        let bits = u16::from(code & 0x7f) << 7 | u16::from(code & 0x80) << 8;
        f16::from_bits(bits).to_f32() * 256.0
    }
    fn round_sum(sum: f32) -> bf16 {
        bf16::from_f32(sum)
    }
    fn result_to_f64(out: bf16) -> f64 {
        out.to_f64()
    }
}

impl Fp8 {
    /// Converts a number that this type can represent exactly.
    fn from_f64(value: f64) -> Self {
        let bits = f16::from_f64(value / 256.0).to_bits();
        Self((bits >> 7 & 0x7f) as u8 | (bits >> 8 & 0x80) as u8)
    }
}

impl LowPrecision for i8 {
    const DTYPE: Dtype = Dtype::Int8;
    type Wide = f64;
    type Out = i32;
    const POISON: i32 = i32::MAX;

    fn random_number(seed: u64, index: u64) -> Self {
        (numbers::generate_bits(seed, index) >> 56) as Self
    }
    fn to_wide(self) -> f64 {
        f64::from(self)
    }
    fn round_sum(sum: f64) -> i32 {
        sum as i32
    }
    fn result_to_f64(out: i32) -> f64 {
        f64::from(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_wrong_element_is_found<T: LowPrecision>(wrong: T::Out) {
        let mut work = LowPrecisionProduct::<T>::new(65);
        assert!(!work.verify().ok, "{} has not run", T::DTYPE);
        work.multiply();
        let found = work.verify();
        assert!(
            found.ok && found.checked == 65 * 65,
            "{}: {found:?}",
            T::DTYPE
        );
        work.out[1234] = wrong;
        let found = work.verify();
        assert_eq!(
            (found.wrong, found.first_wrong),
            (1, Some(1234)),
            "{}: {found:?}",
            T::DTYPE
        );
    }

    #[test]
    fn wrong_element_is_found_for_every_type() {
        check_wrong_element_is_found::<Tf32>(1e3);
        check_wrong_element_is_found::<f16>(f16::from_f32(1e3));
        check_wrong_element_is_found::<bf16>(bf16::from_f32(1e3));
        check_wrong_element_is_found::<Fp8>(bf16::from_f32(1e3));
        check_wrong_element_is_found::<i8>(1 << 30);
    }

    #[test]
    fn matrix_elements_on_cpu_equal_those_on_gpu() {
        fn check_elements<T: LowPrecision>() {
            for index in 0..1000 {
                let (own, expected) = (
                    T::random_number(SEED_A, index).to_wide().to_f64(),
                    values::random_value(T::DTYPE, SEED_A, index),
                );
                assert_eq!(
                    own.to_bits(),
                    expected.to_bits(),
                    "{} {index}: {own} is {expected}",
                    T::DTYPE
                );
            }
        }
        check_elements::<Tf32>();
        check_elements::<f16>();
        check_elements::<bf16>();
        check_elements::<Fp8>();
        check_elements::<i8>();
    }

    #[test]
    fn every_fp8_code_survives_round_trip() {
        // The two codes for NaN are skipped.
        for code in (0..0x7f).chain(0x80..0xff_u8) {
            assert_eq!(Fp8::from_f64(f64::from(Fp8(code).to_wide())).0, code);
        }
        assert_eq!(
            (Fp8(0x7e).to_wide(), Fp8(0x01).to_wide()),
            (448.0, 1.0 / 512.0)
        );
    }
}

#[cfg(test)]
mod factors_tests {
    use super::*;

    #[test]
    fn one_wrong_element_is_found() {
        let factors = Factors::<f64>::new(65);
        let mut out = factors.poisoned_result();
        assert!(!factors.verify(&out).ok, "it has not run");
        factors.multiply(&mut out);
        let found = factors.verify(&out);
        assert!(
            found.ok && found.checked == 65 * 65 && found.largest_error < 0.5,
            "{found:?}"
        );
        out[1234] *= 1.0 + 1e-12;
        let found = factors.verify(&out);
        assert_eq!(
            (found.wrong, found.first_wrong),
            (1, Some(1234)),
            "{found:?}"
        );
    }
}
