//! Products on the CPU. Types for which the CPU has no units are converted to wider ones,
//! multiplied and rounded. All of these steps are timed, because they are part of the cost of the
//! type.

use half::{bf16, f16};

use super::{tolerance::Tolerance, values};
use crate::{
    catalogue::prelude::*,
    cpu_product::{CpuProduct, multiply_by_all},
    parallel::CHUNK,
};

/// A type that is narrower than the types that the CPU multiplies.
pub(super) trait LowPrecision: Copy + Default + Send + Sync + 'static {
    const DTYPE: Dtype;
    /// The type for multiplication, in which each product or, for integers, each sum is exact.
    type Wide: CpuProduct;
    /// The type that a product is rounded to.
    type Out: Copy + Send + Sync + 'static;
    /// A value that no result has.
    const POISON: Self::Out;

    fn random(seed: u64, index: u64) -> Self;
    fn wide(self) -> Self::Wide;
    fn rounded(sum: Self::Wide) -> Self::Out;
    fn read(out: Self::Out) -> f64;
}

/// A 32-bit number with 0 in its last 13 bits.
#[derive(Clone, Copy, Default)]
pub(super) struct Tf32(f32);
/// An e4m3 number: a sign, four bits of exponent and three of fraction.
#[derive(Clone, Copy, Default)]
pub(super) struct Fp8(u8);

/// Both factors, memory for their wide form, and the result.
struct OnCpu<T: LowPrecision> {
    a: Vec<T>,
    b: Vec<T>,
    wide: Factors<T::Wide>,
    sums: Vec<T::Wide>,
    out: Vec<T::Out>,
}

pub(super) fn prepare_narrow<T: LowPrecision>(n: u64) -> Ready<'static> {
    prepare_on_cpu(OnCpu::<T>::new(n), OnCpu::multiply, OnCpu::verify)
}

impl<T: LowPrecision> OnCpu<T> {
    fn new(n: u64) -> Self {
        let matrix = |seed| random::array(n * n, |index| T::random(seed, index));
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
        for (wide, narrow) in wide.both_mut().into_iter().zip([&*a, &*b]) {
            convert(wide, narrow, T::wide);
        }
        wide.multiply(sums);
        convert(out, sums, T::rounded);
    }

    /// Verifies the result with newly generated factors, so that the conversion of the factors is
    /// verified, too.
    fn verify(&self) -> Verification {
        let n = self.wide.side();
        let factors = Factors::from_elements(n, |seed, index| {
            T::Wide::from_f64(values::random(T::DTYPE, seed, index))
        });
        factors.compare(Tolerance::new(T::DTYPE, n), |at| T::read(self.out[at]))
    }
}

fn convert<From: Copy + Sync, To: Send>(
    out: &mut [To],
    a: &[From],
    of: impl Fn(From) -> To + Sync,
) {
    parallel::for_each(out.chunks_mut(CHUNK).zip(a.chunks(CHUNK)), &|(out, a)| {
        out.iter_mut().zip(a).for_each(|(out, a)| *out = of(*a));
    });
}

impl LowPrecision for Tf32 {
    const DTYPE: Dtype = Dtype::Tf32;
    type Wide = f32;
    type Out = f32;
    const POISON: f32 = f32::NAN;

    fn random(seed: u64, index: u64) -> Self {
        Self(values::tf32(f32::random(seed, index)))
    }
    fn wide(self) -> f32 {
        self.0
    }
    fn rounded(sum: f32) -> f32 {
        sum
    }
    fn read(out: f32) -> f64 {
        f64::from(out)
    }
}

/// Implements the trait for a 16-bit type that is also the type of the result.
macro_rules! half {
    ($type:ty, $dtype:expr) => {
        impl LowPrecision for $type {
            const DTYPE: Dtype = $dtype;
            type Wide = f32;
            type Out = Self;
            const POISON: Self = Self::NAN;

            fn random(seed: u64, index: u64) -> Self {
                Self::from_f32(f32::random(seed, index))
            }
            fn wide(self) -> f32 {
                self.to_f32()
            }
            fn rounded(sum: f32) -> Self {
                Self::from_f32(sum)
            }
            fn read(out: Self) -> f64 {
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

    fn random(seed: u64, index: u64) -> Self {
        Self::from_f64(values::fp8(f32::random(seed, index)))
    }
    /// Converts by way of fp16, which has the same bits of exponent and fraction, but an exponent
    /// bias that is higher by eight.
    fn wide(self) -> f32 {
        let Self(code) = self;
        let bits = u16::from(code & 0x7f) << 7 | u16::from(code & 0x80) << 8;
        f16::from_bits(bits).to_f32() * 256.0
    }
    fn rounded(sum: f32) -> bf16 {
        bf16::from_f32(sum)
    }
    fn read(out: bf16) -> f64 {
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

    fn random(seed: u64, index: u64) -> Self {
        (random::bits(seed, index) >> 56) as Self
    }
    fn wide(self) -> f64 {
        f64::from(self)
    }
    fn rounded(sum: f64) -> i32 {
        sum as i32
    }
    fn read(out: i32) -> f64 {
        f64::from(out)
    }
}

/// The number of columns of B that are checked at a time.
const CHECKED_COLUMNS: usize = 64;
/// A matrix with fewer than twice this many rows is checked completely, and a larger one in part.
const CHECKED_WHOLE: usize = 1024;

/// Both factors of a product, row by row.
pub(crate) struct Factors<T> {
    a: Vec<T>,
    b: Vec<T>,
    n: usize,
}

impl<T: CpuProduct> Factors<T> {
    pub(crate) fn new(n: u64) -> Self {
        Self::from_elements(n, T::random)
    }

    pub(super) fn from_elements(n: u64, element: impl Fn(u64, u64) -> T + Sync) -> Self {
        let matrix = |seed| random::array(n * n, |index| element(seed, index));
        Self {
            a: matrix(SEED_A),
            b: matrix(SEED_B),
            n: n as usize,
        }
    }

    pub(super) fn both_mut(&mut self) -> [&mut Vec<T>; 2] {
        [&mut self.a, &mut self.b]
    }

    /// Returns the number of rows of each factor.
    pub(super) fn side(&self) -> u64 {
        self.n as u64
    }

    /// Returns memory for a result, filled with poison.
    pub(crate) fn poisoned_result(&self) -> Vec<T> {
        // The poison is written by the threads that will write the result.
        random::array((self.n * self.n) as u64, |_| T::POISON)
    }

    pub(crate) fn multiply(&self, out: &mut [T]) {
        multiply_by_all(out, &self.a, &self.b, self.n);
    }

    /// Verifies a result by computing each element again in twice the precision.
    pub(crate) fn verify(&self, out: &[T]) -> Verification {
        self.compare(Tolerance::new(T::DTYPE, self.side()), |at| out[at].to_f64())
    }

    /// Verifies some columns of a result. The larger the matrix, the smaller is their share.
    pub(super) fn verify_part(&self, out: &[T]) -> Verification {
        let every = (self.n / CHECKED_WHOLE).pow(2).max(1);
        self.compare_columns(Tolerance::new(T::DTYPE, self.side()), every, |at| {
            out[at].to_f64()
        })
    }

    /// Verifies a result of another type in the same way as [`verify`](Self::verify).
    pub(super) fn compare(
        &self,
        bound: Tolerance,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        self.compare_columns(bound, 1, out)
    }

    /// Verifies one of every `every` groups of columns.
    fn compare_columns(
        &self,
        bound: Tolerance,
        every: usize,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        let Self { a, b, n } = self;
        let of_columns = |first: usize| {
            let columns = first..(first + CHECKED_COLUMNS).min(*n);
            // The columns are copied so that their elements are next to each other, like those of
            // A's rows.
            let upright: Vec<Vec<T>> = columns
                .map(|column| b.iter().skip(column).step_by(*n).copied().collect())
                .collect();
            let mut found = Verification::nothing();
            for (row, a) in a.chunks(*n).enumerate() {
                for (column, b) in (first..).zip(&upright) {
                    let (sum, size) = T::exact_sum(a, b);
                    let at = row * n + column;
                    let error = bound.error(sum.distance_to(out(at)), sum.abs(), size);
                    found = found.and(Verification::for_element(at as u64, error, 1.0));
                }
            }
            found
        };
        parallel::map((0..*n).step_by(CHECKED_COLUMNS * every), &of_columns)
            .into_iter()
            .collect()
    }
}

pub(super) fn prepare_product<T: CpuProduct>(n: u64) -> Ready<'static> {
    let factors = Factors::<T>::new(n);
    prepare_on_cpu(
        (factors.poisoned_result(), factors),
        |(out, factors)| factors.multiply(out),
        |(out, factors)| factors.verify(out),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right_and_one_wrong_element_is_found<T: LowPrecision>(wrong: T::Out) {
        let mut work = OnCpu::<T>::new(65);
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
    fn each_type_is_right_and_one_wrong_element_is_found() {
        is_right_and_one_wrong_element_is_found::<Tf32>(1e3);
        is_right_and_one_wrong_element_is_found::<f16>(f16::from_f32(1e3));
        is_right_and_one_wrong_element_is_found::<bf16>(bf16::from_f32(1e3));
        is_right_and_one_wrong_element_is_found::<Fp8>(bf16::from_f32(1e3));
        is_right_and_one_wrong_element_is_found::<i8>(1 << 30);
    }

    #[test]
    fn elements_are_those_that_a_gpu_has() {
        fn same<T: LowPrecision>() {
            for index in 0..1000 {
                let (own, expected) = (
                    T::random(SEED_A, index).wide().to_f64(),
                    values::random(T::DTYPE, SEED_A, index),
                );
                assert_eq!(
                    own.to_bits(),
                    expected.to_bits(),
                    "{} {index}: {own} is {expected}",
                    T::DTYPE
                );
            }
        }
        same::<Tf32>();
        same::<f16>();
        same::<bf16>();
        same::<Fp8>();
        same::<i8>();
    }

    #[test]
    fn every_code_of_eight_bits_is_read_as_what_it_was_made_of() {
        // The two codes for NaN are left out.
        for code in (0..0x7f).chain(0x80..0xff_u8) {
            assert_eq!(Fp8::from_f64(f64::from(Fp8(code).wide())).0, code);
        }
        assert_eq!((Fp8(0x7e).wide(), Fp8(0x01).wide()), (448.0, 1.0 / 512.0));
    }
}

#[cfg(test)]
mod on_cpu_tests {
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
