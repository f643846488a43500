//! Random data that can be reproduced, because each element depends only on the seed and its index.
//! The kernels in `random.cu` generate the same data on a GPU.

use crate::parallel::{self, CHUNK_ELEMENTS};

/// The seed of a workload's first input. `SEED_B` is that of the second input, which may be any
/// different number.
pub(crate) const SEED_A: u64 = 0x6770_756d_6f6e_0001;
pub(crate) const SEED_B: u64 = 0x6770_756d_6f6e_0002;
/// The first seed as shown in results. It is a string, because not every JSON parser represents
/// 64-bit numbers exactly.
pub(crate) const SEED_TEXT: &str = "0x6770756d6f6e0001";

pub(crate) fn generate_bits(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Sets each element to a value that is computed from its index. All threads are used.
pub(crate) fn fill_elements<T: Send>(out: &mut [T], element: impl Fn(u64) -> T + Sync) {
    parallel::for_each(
        (0..)
            .step_by(CHUNK_ELEMENTS)
            .zip(out.chunks_mut(CHUNK_ELEMENTS)),
        &|(first, out)| {
            out.iter_mut()
                .zip(first..)
                .for_each(|(out, index)| *out = element(index));
        },
    );
}

/// Returns an array whose elements are computed from their indices. All threads are used.
pub(crate) fn generate_array<T: Default + Clone + Send>(
    elements: u64,
    element: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let mut array = vec![T::default(); elements as usize];
    fill_elements(&mut array, element);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_text_matches_seed() {
        assert_eq!(
            (format!("{SEED_A:#x}").as_str(), SEED_B),
            (SEED_TEXT, SEED_A + 1)
        );
    }

    #[test]
    fn random_words_differ_and_are_balanced() {
        let words: Vec<_> = (0..1000)
            .map(|index| generate_bits(SEED_A, index))
            .collect();
        let mut unique = words.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 1000);
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones}");
        assert_ne!(generate_bits(SEED_A, 7), generate_bits(SEED_B, 7));
    }

    #[test]
    fn array_is_filled_across_chunk_borders() {
        let mut out = vec![0; CHUNK_ELEMENTS * 2 + 3];
        fill_elements(&mut out, |index| index + 1);
        assert!(out.iter().zip(1..).all(|(out, expected)| *out == expected));
    }
}
