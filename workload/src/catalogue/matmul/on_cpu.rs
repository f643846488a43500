//! A product on all threads of the CPU.

use super::tolerance::Tolerance;
use crate::{
    catalogue::prelude::*,
    cpu_product::{CpuProduct, multiply_by_all},
};

/// So many columns of B are checked at a time.
const CHECKED_COLUMNS: usize = 64;
/// A matrix of less than twice as many rows is checked whole, also where a part is enough.
const CHECKED_WHOLE: usize = 1024;

/// Both factors, row by row.
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

    /// Rows of each.
    pub(super) fn side(&self) -> u64 {
        self.n as u64
    }

    /// Room for a result, in which nothing is a number.
    pub(crate) fn poisoned(&self) -> Vec<T> {
        // By the threads that will write there.
        random::array((self.n * self.n) as u64, |_| T::POISON)
    }

    pub(crate) fn multiply(&self, out: &mut [T]) {
        multiply_by_all(out, &self.a, &self.b, self.n);
    }

    /// Computes each element again, in twice the precision.
    pub(crate) fn verify(&self, out: &[T]) -> Verification {
        self.compare(Tolerance::new(T::DTYPE, self.side()), |at| out[at].to_f64())
    }

    /// The same of some columns, the fewer the larger the matrix is.
    pub(super) fn verify_part(&self, out: &[T]) -> Verification {
        let every = (self.n / CHECKED_WHOLE).pow(2).max(1);
        self.compare_columns(Tolerance::new(T::DTYPE, self.side()), every, |at| {
            out[at].to_f64()
        })
    }

    /// The same as [`verify`](Self::verify), of a result that is of another type.
    pub(super) fn compare(
        &self,
        bound: Tolerance,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        self.compare_columns(bound, 1, out)
    }

    /// One of so many groups of columns.
    fn compare_columns(
        &self,
        bound: Tolerance,
        every: usize,
        out: impl Fn(usize) -> f64 + Sync,
    ) -> Verification {
        let Self { a, b, n } = self;
        let of_columns = |first: usize| {
            let columns = first..(first + CHECKED_COLUMNS).min(*n);
            // Side by side, as the elements of A's rows are.
            let upright: Vec<Vec<T>> = columns
                .map(|column| b.iter().skip(column).step_by(*n).copied().collect())
                .collect();
            let mut found = Verification::nothing();
            for (row, a) in a.chunks(*n).enumerate() {
                for (column, b) in (first..).zip(&upright) {
                    let (sum, size) = T::exact_sum(a, b);
                    let at = row * n + column;
                    let error = bound.error(DoubleDouble::distance(sum, out(at)), sum.abs(), size);
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

pub(super) fn on_cpu<T: CpuProduct>(n: u64) -> Ready<'static> {
    let factors = Factors::<T>::new(n);
    prepare_on_cpu(
        (factors.poisoned(), factors),
        |(out, factors)| factors.multiply(out),
        |(out, factors)| factors.verify(out),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_element_is_found() {
        let factors = Factors::<f64>::new(65);
        let mut out = factors.poisoned();
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
