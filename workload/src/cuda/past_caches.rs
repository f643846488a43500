//! Copies that leave the caches as they are, for memory that a device reads next. What lies in a processor's cache has to
//! be written back before it goes over the bus: on a processor of 16 cores that was half of the time.

use super::queue::Plain;

/// Copies a piece as long as where it goes.
#[cfg(target_arch = "x86_64")]
pub(super) fn copy_past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    // SAFETY: every pattern of bits is a value of both types.
    let (start, packs, end) = unsafe { to.align_to_mut::<__m128i>() };
    let of_pack = size_of::<__m128i>() / size_of::<T>();
    let (from_start, rest) = from.split_at(start.len());
    let (from_packs, from_end) = rest.split_at(packs.len() * of_pack);
    start.copy_from_slice(from_start);
    end.copy_from_slice(from_end);
    for (pack, from) in packs.iter_mut().zip(from_packs.chunks_exact(of_pack)) {
        // SAFETY: a pack is aligned, and so much is there to be read.
        unsafe { _mm_stream_si128(pack, _mm_loadu_si128(from.as_ptr().cast())) };
    }
    // These stores are in no order with others until a fence says so.
    // SAFETY: every processor of 64 bits has it.
    unsafe { _mm_sfence() };
}

/// Copies a piece as long as where it goes.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn copy_past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_every_length_arrive_wherever_they_begin() {
        let from: Vec<f32> = (0..100_u8).map(f32::from).collect();
        for (start, end) in [(0, 0), (0, 100), (1, 100), (2, 3), (3, 50), (0, 4), (5, 97)] {
            let mut to = [-1.0; 100];
            copy_past_caches(&mut to[start..end], &from[start..end]);
            for (at, number) in to.iter().enumerate() {
                let expected = if (start..end).contains(&at) {
                    from[at]
                } else {
                    -1.0
                };
                assert!(
                    number.to_bits() == f32::to_bits(expected),
                    "{start}..{end} at {at}"
                );
            }
        }
        copy_past_caches::<u8>(&mut [], &[]);
    }
}
