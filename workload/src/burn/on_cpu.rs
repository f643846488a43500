//! Products on all threads of the CPU.

use rayon::prelude::*;

use super::{
    BESIDE, Burnable,
    reference::{check, factor},
};
use crate::{
    check::Verification,
    error::RunError,
    random::{SEED_A, SEED_B},
};

/// What is no number.
const POISON: u32 = u32::MAX;
const WIDTH: u64 = size_of::<f32>() as u64;

/// The factors and the products, one of which is a piece.
pub(super) struct OnCpu {
    side: u64,
    a: Vec<f32>,
    b: Vec<f32>,
    first: Vec<f32>,
    products: Vec<Vec<f32>>,
}

impl OnCpu {
    /// Matrices of this side, which take no more memory than this together.
    pub(super) fn new(side: u64, bytes: u64) -> Self {
        let count = bytes / (side * side * WIDTH) - BESIDE;
        let poisoned = || vec![f32::from_bits(POISON); (side * side) as usize];
        Self {
            side,
            a: factor(SEED_A, side),
            b: factor(SEED_B, side),
            first: poisoned(),
            products: (0..count).map(|_| poisoned()).collect(),
        }
    }
}

impl Burnable for OnCpu {
    fn bytes(&self) -> u64 {
        (self.products.len() as u64 + BESIDE) * self.side * self.side * WIDTH
    }

    fn pieces(&self) -> usize {
        self.products.len()
    }

    fn products(&self, _: usize) -> u64 {
        1
    }

    fn first(&mut self) -> Result<Verification, RunError> {
        multiply(&mut self.first, &self.a, &self.b, self.side as usize);
        Ok(check(&self.first, self.side))
    }

    fn multiply(&mut self, piece: usize) -> Result<(), RunError> {
        multiply(&mut self.products[piece], &self.a, &self.b, self.side as usize);
        Ok(())
    }

    fn compare(&mut self, piece: usize) -> Result<u64, RunError> {
        let words = self.products[piece].par_iter_mut().zip(&self.first).with_min_len(1 << 14);
        Ok(words
            .map(|(got, first)| {
                let is_wrong = got.to_bits() != first.to_bits() || got.is_nan();
                *got = f32::from_bits(POISON);
                u64::from(is_wrong)
            })
            .sum())
    }
}

/// Always in the same order, so that all products are equal to the bit.
fn multiply(out: &mut [f32], a: &[f32], b: &[f32], side: usize) {
    out.par_chunks_mut(side).zip(a.par_chunks(side)).for_each(|(row, a)| {
        row.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks(side)) {
            row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flipped_bit_is_found_and_so_is_a_product_that_was_not_written() {
        let mut work = OnCpu::new(128, 128 * 128 * 4 * 6);
        assert_eq!((work.pieces(), work.bytes()), (3, 128 * 128 * 4 * 6));
        assert!(!check(&work.first, 128).ok, "it is not there yet");
        let first = work.first().unwrap();
        assert!(first.ok && first.checked == 128 * 128 && first.largest_error < 2.0, "{first:?}");
        work.multiply(1).unwrap();
        work.products[1][777] = f32::from_bits(work.products[1][777].to_bits() ^ 1);
        assert_eq!(work.compare(1).unwrap(), 1);
        work.multiply(1).unwrap();
        assert_eq!(work.compare(1).unwrap(), 0);
        assert_eq!(work.compare(1).unwrap(), 128 * 128, "what was compared is poisoned");
    }

    #[test]
    fn a_first_product_that_is_wrong_is_found() {
        let mut work = OnCpu::new(128, 128 * 128 * 4 * 6);
        work.first().unwrap();
        work.first[5] += 0.01;
        let found = check(&work.first, 128);
        assert_eq!((found.ok, found.wrong, found.first_wrong), (false, 1, Some(5)));
    }
}
