//! Stateless random numbers: the same seed and position always produce the same number.

/// A stream of random numbers. Each purpose and each GPU has its own stream, so that the numbers
/// are independent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise(u64);

impl Noise {
    /// Creates the random stream for a GPU.
    pub(super) fn new(seed: u64, gpu: u32) -> Self {
        Self(hash_bits(seed ^ hash_bits(u64::from(gpu) + 1)))
    }

    /// Derives an independent stream for `purpose`.
    pub(super) fn derive_stream(self, purpose: &str) -> Self {
        Self(
            purpose
                .bytes()
                .fold(self.0, |hash, byte| hash_bits(hash ^ u64::from(byte))),
        )
    }

    /// Returns the 64 random bits at position `n`.
    pub(super) fn random_bits(self, n: i64) -> u64 {
        hash_bits(self.0 ^ hash_bits(n.cast_unsigned()))
    }

    /// Returns the random number at position `n`, from 0 (inclusive) to 1 (exclusive).
    pub(super) fn random_unit(self, n: i64) -> f64 {
        // An `f64` can represent 53 bits exactly.
        (self.random_bits(n) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the value at `x` of a smooth random curve between -1 and 1. The curve passes through
    /// a new random value at each integer.
    pub(super) fn smooth_curve(self, x: f64) -> f64 {
        let cell = x.floor();
        let (left, right) = (
            self.random_unit(cell as i64),
            self.random_unit(cell as i64 + 1),
        );
        let t = ease_in_out(x - cell);
        (left + (right - left) * t) * 2.0 - 1.0
    }
}

/// Maps `t` from 0..1 to a smooth transition from 0 to 1, with slope 0 at both ends.
pub(super) fn ease_in_out(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Hashes `bits` with the last step of `SplitMix64`, its finalizer. A change of one input bit
/// changes about half of the output bits.
fn hash_bits(bits: u64) -> u64 {
    let mut z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_depends_only_on_seed_gpu_and_purpose() {
        let noise = Noise::new(7, 3).derive_stream("power");
        assert_eq!(
            noise.random_bits(5),
            Noise::new(7, 3).derive_stream("power").random_bits(5)
        );
        let others = [
            Noise::new(8, 3).derive_stream("power"),
            Noise::new(7, 4).derive_stream("power"),
            Noise::new(7, 3).derive_stream("x"),
        ];
        assert!(
            others
                .iter()
                .all(|other| other.random_bits(5) != noise.random_bits(5))
        );
    }

    #[test]
    fn numbers_fill_their_range_and_curves_are_smooth() {
        let noise = Noise::new(1, 0);
        let mean = (0..10_000).map(|n| noise.random_unit(n)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        for step in -1_000..1_000 {
            let x = f64::from(step) / 100.0;
            let value = noise.smooth_curve(x);
            assert!((-1.0..=1.0).contains(&value));
            assert!(
                (noise.smooth_curve(x + 0.01) - value).abs() < 0.05,
                "a jump at {x}"
            );
        }
    }
}
