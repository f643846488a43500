//! The kernel of `spin.cu`, which keeps multiprocessors busy for a given time.

use std::time::Duration;

use super::Known;
use crate::{state::state, streams};

/// Arguments: three words for each block, and the time in nanoseconds.
pub(super) const KERNELS: &[Known] = &[("spin", |given, blocks| {
    let (out, ns) = (
        given.array_at::<u64>(0, 3 * blocks),
        given.read_argument::<u64>(1),
    );
    let (multiprocessors, sm_mhz) = {
        let state = state();
        (
            u64::from(state.scenario.multiprocessors),
            state.scenario.sm_mhz,
        )
    };
    let cycles = (u128::from(ns) * u128::from(sm_mhz) / 1000) as u64;
    for (block, out) in (0..).zip(out.as_chunks_mut::<3>().0) {
        *out = [cycles, ns, block % multiprocessors];
    }
    streams::set_wait_time(Duration::from_nanos(ns));
    (given.read_argument(0), size_of_val(out))
})];

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::{super::Arguments, *};

    #[test]
    fn spin_kernel_reports_cycles_and_delays_stream() {
        let (mut out, ns) = ([0_u64; 3 * 134], 5_000_u64);
        let address = out.as_mut_ptr() as u64;
        let places = [ptr::from_ref(&address).cast(), ptr::from_ref(&ns).cast()];
        let (written, bytes) = KERNELS[0].1(Arguments(places.as_ptr()), 134);
        assert_eq!(
            (written, bytes, streams::take_wait_time()),
            (address, size_of_val(&out), Duration::from_micros(5))
        );
        assert_eq!(
            (&out[..3], &out[3 * 133..]),
            (&[9_900, 5_000, 0][..], &[9_900, 5_000, 1][..])
        );
    }
}
