//! The stress test on all threads of the CPU, with the code of the `matmul` workload.

use std::time::Instant;

use super::{
    Burnable, MATRIX_SIDES, MAX_SIDE_ON_CPU, MIN_PRODUCTS, TimedWork, choose_largest_side,
    fitting_sides,
};
use crate::{
    catalogue::matmul::Factors,
    cpu_product::CpuProduct,
    error::RunError,
    parallel::{self, CHUNK_ELEMENTS},
    protocol::Verification,
};

/// The number of matrices besides the compared products: two factors and the first product.
const EXTRA_MATRICES: u64 = 3;

pub(super) struct CpuBurn<T> {
    side: u64,
    factors: Factors<T>,
    first: Vec<T>,
    products: Vec<Vec<T>>,
    wrong: u64,
}

/// Returns the minimum memory in bytes for matrices of this side with elements of `width` bytes.
pub(super) fn needed_bytes(side: u64, width: u64) -> u64 {
    (MIN_PRODUCTS + EXTRA_MATRICES) * side * side * width
}

impl<T: CpuProduct> CpuBurn<T> {
    const ELEMENT_BYTES: u64 = size_of::<T>() as u64;

    /// Prepares the largest useful matrices that fit into `bytes` of memory. Returns `None` if not
    /// even the smallest matrices fit.
    pub(super) fn new(bytes: u64) -> Result<Option<Self>, RunError> {
        let larger = MATRIX_SIDES
            .iter()
            .take_while(|side| **side > MAX_SIDE_ON_CPU)
            .count();
        let sides = fitting_sides(&MATRIX_SIDES[larger..], bytes, |side| {
            needed_bytes(side, Self::ELEMENT_BYTES)
        });
        let timed = choose_largest_side(sides, |side| Ok(Self::prepare_and_time(side)))?;
        Ok(timed.map(|TimedWork { mut work, .. }| {
            let count = bytes / (work.side * work.side * Self::ELEMENT_BYTES) - EXTRA_MATRICES;
            work.products = (0..count).map(|_| work.factors.poisoned_result()).collect();
            work
        }))
    }

    /// Prepares work without memory for products, and measures the time of one product.
    fn prepare_and_time(side: u64) -> TimedWork<Self> {
        let factors = Factors::new(side);
        let mut work = Self {
            side,
            first: factors.poisoned_result(),
            factors,
            products: Vec::new(),
            wrong: 0,
        };
        // The first product takes longer, because memory and threads are not ready yet, so it is
        // not timed.
        work.factors.multiply(&mut work.first);
        let begun = Instant::now();
        work.factors.multiply(&mut work.first);
        let product = begun.elapsed();
        work.first.fill(T::POISON);
        TimedWork { work, product }
    }
}

impl<T: CpuProduct> Burnable for CpuBurn<T> {
    fn matrix_side(&self) -> u64 {
        self.side
    }

    fn used_bytes(&self) -> u64 {
        (self.products.len() as u64 + EXTRA_MATRICES)
            * self.words_per_product()
            * Self::ELEMENT_BYTES
    }

    fn words_per_product(&self) -> u64 {
        self.side * self.side
    }

    fn piece_count(&self) -> usize {
        self.products.len()
    }

    fn products_in_piece(&self, _: usize) -> u64 {
        1
    }

    fn compute_first(&mut self) -> Result<Verification, RunError> {
        self.factors.multiply(&mut self.first);
        Ok(self.factors.verify(&self.first))
    }

    fn fill_piece_with_products(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        if was_filled {
            self.compare_and_poison_piece(piece)?;
        }
        self.factors.multiply(&mut self.products[piece]);
        Ok(())
    }

    /// Compares every bit. The bits do not depend on the number of threads, because each element is
    /// summed by a single thread in a fixed order.
    fn compare_and_poison_piece(&mut self, piece: usize) -> Result<(), RunError> {
        let words = self.products[piece]
            .chunks_mut(CHUNK_ELEMENTS)
            .zip(self.first.chunks(CHUNK_ELEMENTS));
        let wrong = parallel::map(words, &|(got, first)| {
            let of_one = |(got, first): (&mut T, &T)| {
                let is_wrong = got.to_bits_u64() != first.to_bits_u64() || got.to_f64().is_nan();
                *got = T::POISON;
                u64::from(is_wrong)
            };
            got.iter_mut().zip(first).map(of_one).sum::<u64>()
        });
        self.wrong += wrong.into_iter().sum::<u64>();
        Ok(())
    }

    fn count_wrong_words(&mut self) -> Result<u64, RunError> {
        Ok(self.wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: u64 = 256;

    fn check_flipped_bit<T: CpuProduct>(flip: impl Fn(T) -> T) {
        let bytes = SIDE * SIDE * CpuBurn::<T>::ELEMENT_BYTES * 11;
        assert!(
            CpuBurn::<T>::new(bytes - 1).unwrap().is_none(),
            "there is no room"
        );
        let mut work = CpuBurn::<T>::new(bytes).unwrap().unwrap();
        assert_eq!(
            (work.matrix_side(), work.piece_count(), work.used_bytes()),
            (SIDE, 8, bytes)
        );
        assert!(!work.factors.verify(&work.first).ok, "it is not there yet");
        let first = work.compute_first().unwrap();
        assert!(
            first.ok && first.checked == SIDE * SIDE && first.largest_error < 1.0,
            "{first:?}"
        );
        work.fill_piece_with_products(1, false).unwrap();
        work.products[1][777] = flip(work.products[1][777]);
        work.fill_piece_with_products(1, true).unwrap();
        assert_eq!(work.count_wrong_words().unwrap(), 1);
        work.compare_and_poison_piece(1).unwrap();
        assert_eq!(work.count_wrong_words().unwrap(), 1);
        work.compare_and_poison_piece(1).unwrap();
        assert_eq!(
            work.count_wrong_words().unwrap(),
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
    fn flipped_bit_and_missing_product_are_found() {
        check_flipped_bit(|value: f32| f32::from_bits(value.to_bits() ^ 1));
        check_flipped_bit(|value: f64| f64::from_bits(value.to_bits() ^ 1));
    }
}
