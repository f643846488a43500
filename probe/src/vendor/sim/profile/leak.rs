//! A program with a memory leak. Its memory grows until none is left, and then it is started again.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The time from the first allocation to the last, in seconds.
const GROWTH_S: f64 = 280.0;
/// The time until a user restarts the program, in seconds.
const DOWN_S: f64 = 8.0;
/// The share of the memory that is used at the start.
const FIRST: f64 = 0.08;

pub(super) fn load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: GROWTH_S + DOWN_S,
        phase_s: 100.0 * noise.stream("run phase").unit(0),
    };
    let (run, age_s) = runs.at(seconds);
    if age_s >= GROWTH_S {
        return Load::default();
    }
    let memory = FIRST + (0.998 - FIRST) * age_s / GROWTH_S;
    let jitter = noise.stream("jitter").smooth(seconds * 1.5);
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
