//! The choice of a matrix size for the stress test. Matrices are as large as memory allows, but
//! small enough that an interruption takes effect quickly.

use std::time::Duration;

use crate::error::RunError;

/// The sides to choose from, which are multiples of every tile size. The larger a product, the
/// smaller the share of time spent on comparing it: 2 % with 16384 rows on an H200. Comparison and
/// multiplication cannot run concurrently, because Hopper's kernels occupy all registers.
pub(super) const SIDES: [u64; 7] = [16384, 8192, 4096, 2048, 1024, 512, 256];
/// The largest side on a CPU. There, each element of the first product is computed again in higher
/// precision.
pub(super) const MAX_SIDE_ON_CPU: u64 = 1024;
/// The maximum time that one product may take.
const MAX_PRODUCT_TIME: Duration = Duration::from_millis(50);
/// The total time of the products that are launched together. If a GPU waited for the host after
/// each product, it would cool down between products.
const BATCH_TIME: Duration = Duration::from_millis(60);

/// Work with matrices of a certain size, and the measured time of one product.
pub(super) struct TimedWork<W> {
    pub(super) work: W,
    pub(super) product: Duration,
}

impl<W> TimedWork<W> {
    /// Returns the number of products that are launched together.
    pub(super) fn batch_size(&self) -> u64 {
        (BATCH_TIME.as_secs_f64() / self.product.as_secs_f64().max(1e-9)).max(1.0) as u64
    }
}

/// Creates work with the largest side whose product is fast enough. `sides` begins with the
/// largest. Starting with small products, each measured time decides which larger side is tried
/// next, so that no slow product is ever started. Small products use only a part of a large GPU, so
/// times predicted from them are never too short.
pub(super) fn choose_largest_side<W>(
    sides: &[u64],
    mut make: impl FnMut(u64) -> Result<TimedWork<W>, RunError>,
) -> Result<Option<TimedWork<W>>, RunError> {
    let Some(mut side) = sides.last().copied() else {
        return Ok(None);
    };
    loop {
        let timed = make(side)?;
        let foreseen =
            |next: u64| timed.product.as_secs_f64() * (next as f64 / side as f64).powi(3);
        let next = sides
            .iter()
            .find(|next| **next > side && foreseen(**next) <= MAX_PRODUCT_TIME.as_secs_f64());
        match next {
            Some(next) => side = *next,
            None => return Ok(Some(timed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the side that is chosen for a device that computes `per_second` operations per
    /// second after a start time of `begin_us`, and all sides that were tried.
    fn choose_side_on_device(per_second: f64, begin_us: f64, sides: &[u64]) -> (u64, Vec<u64>) {
        let mut tried = Vec::new();
        let timed = choose_largest_side(sides, |side| {
            tried.push(side);
            let seconds = 2.0 * (side as f64).powi(3) / per_second + begin_us * 1e-6;
            assert!(seconds < 0.05, "{side} takes {seconds} s");
            Ok(TimedWork {
                work: side,
                product: Duration::from_secs_f64(seconds),
            })
        });
        (timed.unwrap().unwrap().work, tried)
    }

    #[test]
    fn faster_gpu_gets_larger_matrix_side() {
        assert_eq!(choose_side_on_device(760e12, 5.0, &SIDES).0, 16384);
        assert_eq!(choose_side_on_device(60e12, 5.0, &SIDES).0, 8192);
        assert_eq!(choose_side_on_device(1e12, 5.0, &SIDES).0, 2048);
        let (side, tried) = choose_side_on_device(0.03e12, 5.0, &SIDES);
        assert_eq!((side, tried), (512, vec![256, 512]));
        assert_eq!(
            choose_side_on_device(760e12, 5.0, &SIDES[4..]).0,
            1024,
            "where there is no room for more"
        );
    }

    #[test]
    fn work_is_not_created_without_fitting_side() {
        assert!(
            choose_largest_side::<()>(&[], |_| panic!("nothing fits"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn batch_size_limits_waiting_time() {
        let at_once = |us| {
            TimedWork {
                work: (),
                product: Duration::from_micros(us),
            }
            .batch_size()
        };
        assert_eq!([1490, 29_000, 70_000].map(at_once), [40, 2, 1]);
        assert!(
            at_once(0) > 1000,
            "a clock that saw nothing pass does not divide by it"
        );
    }
}
