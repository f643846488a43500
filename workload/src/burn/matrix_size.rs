//! The choice of a matrix size: as large as memory allows, but small enough that an interruption
//! takes effect soon.

use std::time::Duration;

use crate::error::RunError;

/// The sides to choose from, which are multiples of every tile. The larger a product, the smaller
/// the share of time for its comparison: 2 % with 16384 rows on an H200. The comparison cannot run
/// concurrently, because Hopper's kernels occupy all registers.
pub(super) const SIDES: [u64; 7] = [16384, 8192, 4096, 2048, 1024, 512, 256];
/// The largest side on a CPU, which computes each element of the first product again in higher
/// precision.
pub(super) const MOST_ON_CPU: u64 = 1024;
/// The maximum duration of a product.
const LONGEST: Duration = Duration::from_millis(50);
/// The duration of the products that are started together without waiting for each one. A GPU that
/// waited for the host after each product would cool down meanwhile.
const AT_ONCE: Duration = Duration::from_millis(60);

/// Work with matrices of some side, and the duration of one product.
pub(super) struct Timed<W> {
    pub(super) work: W,
    pub(super) product: Duration,
}

impl<W> Timed<W> {
    /// Returns the number of products that are started together.
    pub(super) fn at_once(&self) -> u64 {
        (AT_ONCE.as_secs_f64() / self.product.as_secs_f64().max(1e-9)).max(1.0) as u64
    }
}

/// Creates work with the largest side that has a fast enough product. `sides` begins with the
/// largest. Each measured time decides which larger side is tried next, so that no slow product is
/// ever started. Small products use only a part of a large GPU, so predictions from their times are
/// never too short.
pub(super) fn largest<W>(
    sides: &[u64],
    mut make: impl FnMut(u64) -> Result<Timed<W>, RunError>,
) -> Result<Option<Timed<W>>, RunError> {
    let Some(mut side) = sides.last().copied() else {
        return Ok(None);
    };
    loop {
        let timed = make(side)?;
        let foreseen =
            |next: u64| timed.product.as_secs_f64() * (next as f64 / side as f64).powi(3);
        let next = sides
            .iter()
            .find(|next| **next > side && foreseen(**next) <= LONGEST.as_secs_f64());
        match next {
            Some(next) => side = *next,
            None => return Ok(Some(timed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the side that is chosen for a device with this speed and start time, and all sides
    /// that were tried.
    fn chosen(per_second: f64, begin_us: f64, sides: &[u64]) -> (u64, Vec<u64>) {
        let mut tried = Vec::new();
        let timed = largest(sides, |side| {
            tried.push(side);
            let seconds = 2.0 * (side as f64).powi(3) / per_second + begin_us * 1e-6;
            assert!(seconds < 0.05, "{side} takes {seconds} s");
            Ok(Timed {
                work: side,
                product: Duration::from_secs_f64(seconds),
            })
        });
        (timed.unwrap().unwrap().work, tried)
    }

    #[test]
    fn a_fast_gpu_gets_the_largest_and_a_slow_one_never_begins_what_takes_long() {
        assert_eq!(chosen(760e12, 5.0, &SIDES).0, 16384);
        assert_eq!(chosen(60e12, 5.0, &SIDES).0, 8192);
        assert_eq!(chosen(1e12, 5.0, &SIDES).0, 2048);
        let (side, tried) = chosen(0.03e12, 5.0, &SIDES);
        assert_eq!((side, tried), (512, vec![256, 512]));
        assert_eq!(
            chosen(760e12, 5.0, &SIDES[4..]).0,
            1024,
            "where there is no room for more"
        );
    }

    #[test]
    fn where_nothing_fits_nothing_is_made() {
        assert!(
            largest::<()>(&[], |_| panic!("nothing fits"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn as_many_are_begun_at_once_as_nobody_has_to_wait_long_for() {
        let at_once = |us| {
            Timed {
                work: (),
                product: Duration::from_micros(us),
            }
            .at_once()
        };
        assert_eq!([1490, 29_000, 70_000].map(at_once), [40, 2, 1]);
        assert!(
            at_once(0) > 1000,
            "a clock that saw nothing pass does not divide by it"
        );
    }
}
