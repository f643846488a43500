//! The loads.
//!
//! - [`spin`] keeps multiprocessors busy that count themselves, and [`pulse`] one of them for half of the time.
//! - [`held`] holds memory.
//! - [`steady`] runs workloads of the catalogue over and over: what they move and compute is counted.

mod held;
mod pulse;
mod spin;
mod steady;

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use super::{KnownLoad, LoadContext};
use crate::error::RunError;

/// All of them, in the order in which they are put on.
pub(crate) static ALL: [&dyn KnownLoad; 12] = [
    &held::Held,
    &spin::Spin,
    &pulse::Pulse,
    &steady::READ,
    &steady::BF16,
    &steady::INT8,
    &steady::FP64,
    &steady::FP32,
    &steady::TO_DEVICE,
    &steady::TO_HOST,
    &steady::TO_NEXT,
    &steady::BOTH_WAYS,
];

/// When something was done, how often it counted, and how long that took.
struct Repeated {
    from_ms: u64,
    to_ms: u64,
    seconds: f64,
    times: u64,
}

/// Does it over and over, for as long as a load lasts. What is done before readings have come to it does not count, of
/// which it is told; what counts is done once in any case.
fn repeat(
    context: &LoadContext<'_>,
    mut once: impl FnMut(bool) -> Result<(), RunError>,
) -> Result<Repeated, RunError> {
    let (from_ms, begun) = (now_ms(), Instant::now());
    let is_stopped = || context.interrupted.load(Relaxed);
    while begun.elapsed() < context.settling && !is_stopped() {
        once(false)?;
    }
    let settled = Instant::now();
    let mut times = 0;
    while times == 0 || begun.elapsed() < context.time && !is_stopped() {
        once(true)?;
        times += 1;
    }
    Ok(Repeated {
        from_ms,
        to_ms: now_ms(),
        seconds: settled.elapsed().as_secs_f64(),
        times,
    })
}

/// Waits, as far as nobody wants to stop.
fn wait(context: &LoadContext<'_>, time: Duration) {
    const LOOK: Duration = Duration::from_millis(20);
    let begun = Instant::now();
    while begun.elapsed() < time && !context.interrupted.load(Relaxed) {
        std::thread::sleep(LOOK.min(time.saturating_sub(begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn loads_have_names_of_their_own() {
        let ids: BTreeSet<_> = ALL.iter().map(|load| load.id()).collect();
        assert_eq!(ids.len(), ALL.len());
        assert!(
            ALL.iter()
                .all(|load| !load.does().is_empty() && !load.does().ends_with('.'))
        );
    }
}
