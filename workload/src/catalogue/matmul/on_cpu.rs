//! A product on all threads of the CPU.

use std::time::Instant;

use rayon::prelude::*;

use super::bound::ErrorBound;
use crate::{
    check::Verification,
    cpu_product::{CpuProduct, multiply},
    error::RunError,
    exact::Exact,
    random::{SEED_A, SEED_B, fill},
    workload::{Prepared, Sample},
};

/// Three matrices: A row by row, B column by column, so that both have the elements of a sum side by side.
pub(super) struct OnCpu<T> {
    a: Vec<T>,
    b: Vec<T>,
    out: Vec<T>,
    n: usize,
}

impl<T: CpuProduct> OnCpu<T> {
    pub(super) fn new(n: u64) -> Self {
        let matrix = |of: &(dyn Fn(u64) -> T + Sync)| {
            let mut matrix = vec![T::default(); (n * n) as usize];
            fill(&mut matrix, of);
            matrix
        };
        Self {
            a: matrix(&|index| T::random(SEED_A, index)),
            b: matrix(&|index| T::random(SEED_B, index)),
            out: matrix(&|_| T::POISON),
            n: n as usize,
        }
    }
}

impl<T: CpuProduct> Prepared for OnCpu<T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let begun = Instant::now();
        multiply(&mut self.out, &self.a, &self.b, self.n);
        Ok(Sample { device_us: None, host_us: begun.elapsed().as_secs_f64() * 1e6 })
    }

    /// Computes each element again, in twice the precision.
    fn verify(&mut self) -> Result<Verification, RunError> {
        let Self { a, b, out, n } = self;
        let bound = ErrorBound::of(T::DTYPE, *n as u64);
        let rows = out.par_chunks(*n).zip(a.par_chunks(*n)).enumerate();
        let of_row = |(row, (out, a)): (usize, (&[T], &[T]))| {
            let columns = out.iter().zip(b.chunks(*n)).enumerate().map(|(column, (got, b))| {
                let (sum, size) = T::exact_sum(a, b);
                let error = bound.error(Exact::distance(sum, got.to_f64()), sum.abs(), size);
                Verification::of((row * *n + column) as u64, error, 1.0)
            });
            columns.fold(Verification::nothing(), Verification::and)
        };
        Ok(rows.map(of_row).reduce(Verification::nothing, Verification::and))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_element_is_found() {
        let mut work = OnCpu::<f64>::new(65);
        assert!(!work.verify().unwrap().ok, "it has not run");
        work.run().unwrap();
        let found = work.verify().unwrap();
        assert!(found.ok && found.checked == 65 * 65 && found.largest_error < 0.5, "{found:?}");
        work.out[1234] *= 1.0 + 1e-12;
        let found = work.verify().unwrap();
        assert_eq!((found.wrong, found.first_wrong), (1, Some(1234)), "{found:?}");
    }
}
