//! A profile with a program that leaks memory. Its memory grows until none is left, and then the
//! program is restarted.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The time from the first allocation to the last, in seconds.
const GROWTH_S: f64 = 280.0;
/// The time after which a user restarts the program, in seconds.
const DOWN_S: f64 = 8.0;
/// The share of the memory that the program uses at its start.
const FIRST_SHARE: f64 = 0.08;

pub(super) fn compute_leak_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: GROWTH_S + DOWN_S,
        phase_s: 100.0 * noise.derive_stream("run phase").random_unit(0),
    };
    let (run, age_s) = runs.find_round(seconds);
    if age_s >= GROWTH_S {
        return Load::default();
    }
    let memory = FIRST_SHARE + (0.998 - FIRST_SHARE) * age_s / GROWTH_S;
    let jitter = noise.derive_stream("jitter").smooth_curve(seconds * 1.5);
    let gpu_percent = if age_s < 3.0 {
        8.0
    } else {
        72.0 + 9.0 * jitter
    };
    let script = Tenant {
        program: Program::Leak,
        run,
        started_s: runs.start_s(run),
        memory,
        part: 1.0,
    };
    Load {
        gpu_percent,
        memory_percent: gpu_percent * 0.45,
        demand: gpu_percent / 100.0 * 0.8,
        tenants: [Some(script), None],
        ..Load::default()
    }
}
