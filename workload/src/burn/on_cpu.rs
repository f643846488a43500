//! Products on all threads of the CPU, with the code of the catalogue.

use std::time::Instant;

use super::{
    Burnable, FEWEST, fitting,
    matrix_size::{MOST_ON_CPU, SIDES, Timed, largest},
};
use crate::{
    catalogue::matmul::Factors,
    cpu_product::CpuProduct,
    error::RunError,
    parallel::{self, CHUNK},
    protocol::Verification,
};

/// The number of matrices in addition to the compared products: two factors and the first product.
const BESIDE: u64 = 3;

pub(super) struct OnCpu<T> {
    side: u64,
    factors: Factors<T>,
    first: Vec<T>,
    products: Vec<Vec<T>>,
    wrong: u64,
}

/// Returns the minimum memory for matrices with this side and elements of `width` bytes.
pub(super) fn needed_bytes(side: u64, width: u64) -> u64 {
    (FEWEST + BESIDE) * side * side * width
}

impl<T: CpuProduct> OnCpu<T> {
    const WIDTH: u64 = size_of::<T>() as u64;

    /// Prepares matrices that are as large as useful and fit into this memory; returns `None` if
    /// even the smallest do not fit.
    pub(super) fn new(bytes: u64) -> Result<Option<Self>, RunError> {
        let larger = SIDES.iter().take_while(|side| **side > MOST_ON_CPU).count();
        let sides = fitting(&SIDES[larger..], bytes, |side| {
            needed_bytes(side, Self::WIDTH)
        });
        let timed = largest(sides, |side| Ok(Self::with_side(side)))?;
        Ok(timed.map(|Timed { mut work, .. }| {
            let count = bytes / (work.side * work.side * Self::WIDTH) - BESIDE;
            work.products = (0..count).map(|_| work.factors.poisoned_result()).collect();
            work
        }))
    }

    /// Prepares work without products in memory, and measures the duration of one product.
    fn with_side(side: u64) -> Timed<Self> {
        let factors = Factors::new(side);
        let mut work = Self {
            side,
            first: factors.poisoned_result(),
            factors,
            products: Vec::new(),
            wrong: 0,
        };
        // The first product takes longer, because memory and threads are not ready yet.
        work.factors.multiply(&mut work.first);
        let begun = Instant::now();
        work.factors.multiply(&mut work.first);
        let product = begun.elapsed();
        work.first.fill(T::POISON);
        Timed { work, product }
    }
}

impl<T: CpuProduct> Burnable for OnCpu<T> {
    fn side(&self) -> u64 {
        self.side
    }

    fn bytes(&self) -> u64 {
        (self.products.len() as u64 + BESIDE) * self.words() * Self::WIDTH
    }

    fn words(&self) -> u64 {
        self.side * self.side
    }

    fn pieces(&self) -> usize {
        self.products.len()
    }

    fn products(&self, _: usize) -> u64 {
        1
    }

    fn first(&mut self) -> Result<Verification, RunError> {
        self.factors.multiply(&mut self.first);
        Ok(self.factors.verify(&self.first))
    }

    fn multiply(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        if was_filled {
            self.compare(piece)?;
        }
        self.factors.multiply(&mut self.products[piece]);
        Ok(())
    }

    /// Compares every bit. For any number of threads, each element is summed by a single thread in
    /// the same order.
    fn compare(&mut self, piece: usize) -> Result<(), RunError> {
        let words = self.products[piece]
            .chunks_mut(CHUNK)
            .zip(self.first.chunks(CHUNK));
        let wrong = parallel::map(words, &|(got, first)| {
            let of_one = |(got, first): (&mut T, &T)| {
                let is_wrong = got.word() != first.word() || got.to_f64().is_nan();
                *got = T::POISON;
                u64::from(is_wrong)
            };
            got.iter_mut().zip(first).map(of_one).sum::<u64>()
        });
        self.wrong += wrong.into_iter().sum::<u64>();
        Ok(())
    }

    fn wrong(&mut self) -> Result<u64, RunError> {
        Ok(self.wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u64 = 256;

    fn flipped<T: CpuProduct>(flip: impl Fn(T) -> T) {
        let bytes = SIDE * SIDE * OnCpu::<T>::WIDTH * 11;
        assert!(
            OnCpu::<T>::new(bytes - 1).unwrap().is_none(),
            "there is no room"
        );
        let mut work = OnCpu::<T>::new(bytes).unwrap().unwrap();
        assert_eq!((work.side(), work.pieces(), work.bytes()), (SIDE, 8, bytes));
        assert!(!work.factors.verify(&work.first).ok, "it is not there yet");
        let first = work.first().unwrap();
        assert!(
            first.ok && first.checked == SIDE * SIDE && first.largest_error < 1.0,
            "{first:?}"
        );
        work.multiply(1, false).unwrap();
        work.products[1][777] = flip(work.products[1][777]);
        work.multiply(1, true).unwrap();
        assert_eq!(work.wrong().unwrap(), 1);
        work.compare(1).unwrap();
        assert_eq!(work.wrong().unwrap(), 1);
        work.compare(1).unwrap();
        assert_eq!(
            work.wrong().unwrap(),
            1 + SIDE * SIDE,
            "what was compared is poisoned"
        );
        work.first[5] = T::from_f64(work.first[5].to_f64() + 0.1);
        let found = work.factors.verify(&work.first);
        assert_eq!(
            (found.ok, found.wrong, found.first_wrong),
            (false, 1, Some(5))
        );
    }

    #[test]
    fn one_flipped_bit_is_found_and_so_are_a_product_that_was_not_written_and_a_wrong_first_one() {
        flipped(|value: f32| f32::from_bits(value.to_bits() ^ 1));
        flipped(|value: f64| f64::from_bits(value.to_bits() ^ 1));
    }
}
