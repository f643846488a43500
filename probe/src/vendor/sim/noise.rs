//! Stateless random numbers: the same seed and position always give the same number.

/// A stream of random numbers. Each purpose and GPU has its own stream, so that their values are
/// independent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise(u64);

impl Noise {
    /// Creates the stream of one GPU.
    pub(super) fn new(seed: u64, gpu: u32) -> Self {
        Self(mix(seed ^ mix(u64::from(gpu) + 1)))
    }

    /// Derives the stream for a purpose.
    pub(super) fn stream(self, purpose: &str) -> Self {
        Self(
            purpose
                .bytes()
                .fold(self.0, |hash, byte| mix(hash ^ u64::from(byte))),
        )
    }

    /// Returns 64 random bits at position `n`.
    pub(super) fn bits(self, n: i64) -> u64 {
        mix(self.0 ^ mix(n.cast_unsigned()))
    }

    /// Returns a random number from 0 (inclusive) to 1 (exclusive).
    pub(super) fn unit(self, n: i64) -> f64 {
        // An `f64` represents 53 bits exactly.
        (self.bits(n) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the value of a smooth random curve between -1 and 1. It has a new random value at
    /// each integer `x`.
    pub(super) fn smooth(self, x: f64) -> f64 {
        let cell = x.floor();
        let (left, right) = (self.unit(cell as i64), self.unit(cell as i64 + 1));
        let t = ease(x - cell);
        (left + (right - left) * t) * 2.0 - 1.0
    }
}

/// Rises from 0 to 1, with slope 0 at both ends.
pub(super) fn ease(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// Returns a hash by the finalizer of `SplitMix64`, in which every input bit changes about half of
/// the output bits.
fn mix(bits: u64) -> u64 {
    let mut z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_seed_gpu_and_purpose_alone() {
        let noise = Noise::new(7, 3).stream("power");
        assert_eq!(noise.bits(5), Noise::new(7, 3).stream("power").bits(5));
        let others = [
            Noise::new(8, 3).stream("power"),
            Noise::new(7, 4).stream("power"),
            Noise::new(7, 3).stream("x"),
        ];
        assert!(others.iter().all(|other| other.bits(5) != noise.bits(5)));
    }

    #[test]
    fn numbers_fill_their_range_and_curves_are_smooth() {
        let noise = Noise::new(1, 0);
        let mean = (0..10_000).map(|n| noise.unit(n)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        for step in -1_000..1_000 {
            let x = f64::from(step) / 100.0;
            let value = noise.smooth(x);
            assert!((-1.0..=1.0).contains(&value));
            assert!(
                (noise.smooth(x + 0.01) - value).abs() < 0.05,
                "a jump at {x}"
            );
        }
    }
}
