//! Random data that anybody can reproduce, because each element depends only on the seed and its
//! index. The kernels in `random.cu` generate the same data on a GPU.

use crate::parallel::{self, CHUNK};

/// The seeds of a workload's inputs. Any two different numbers would do.
pub(crate) const SEED_A: u64 = 0x6770_756d_6f6e_0001;
pub(crate) const SEED_B: u64 = 0x6770_756d_6f6e_0002;
/// The first seed as shown in results. It is a text, because not every JSON parser represents
/// 64-bit numbers exactly.
pub(crate) const SEED: &str = "0x6770756d6f6e0001";

pub(crate) fn bits(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Sets each element to a value computed from its index, on all threads.
pub(crate) fn fill<T: Send>(out: &mut [T], element: impl Fn(u64) -> T + Sync) {
    parallel::for_each((0..).step_by(CHUNK).zip(out.chunks_mut(CHUNK)), &|(
        first,
        out,
    )| {
        out.iter_mut()
            .zip(first..)
            .for_each(|(out, index)| *out = element(index));
    });
}

/// Returns an array of elements computed from their indices, on all threads.
pub(crate) fn array<T: Default + Clone + Send>(
    elements: u64,
    element: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let mut array = vec![T::default(); elements as usize];
    fill(&mut array, element);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_told_as_it_is() {
        assert_eq!(
            (format!("{SEED_A:#x}").as_str(), SEED_B),
            (SEED, SEED_A + 1)
        );
    }

    #[test]
    fn words_differ_by_index_and_seed_and_half_of_their_bits_are_set() {
        let words: Vec<_> = (0..1000).map(|index| bits(SEED_A, index)).collect();
        let mut unique = words.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), 1000);
        let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
        assert!((31_000..33_000).contains(&ones), "{ones}");
        assert_ne!(bits(SEED_A, 7), bits(SEED_B, 7));
    }

    #[test]
    fn an_array_is_filled_across_the_borders_of_chunks() {
        let mut out = vec![0; CHUNK * 2 + 3];
        fill(&mut out, |index| index + 1);
        assert!(out.iter().zip(1..).all(|(out, expected)| *out == expected));
    }
}
