//! A profile with a model server, which uses most of the memory from the start and works when
//! requests arrive.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::{Noise, ease_in_out};

/// The mean interval between bursts of requests, in seconds.
const BURST_INTERVAL_S: f64 = 9.0;
/// The time that a burst takes to grow or to fade, in seconds.
const RAMP_S: f64 = 0.6;
/// The interval at which a new model version is deployed, in seconds (about eight days).
const DEPLOY_INTERVAL_S: f64 = 700_000.0;

pub(super) fn compute_inference_load(noise: Noise, seconds: f64) -> Load {
    let deployments = Cycle {
        period_s: DEPLOY_INTERVAL_S,
        phase_s: DEPLOY_INTERVAL_S * (0.1 + 0.5 * noise.derive_stream("deployed").random_unit(0)),
    };
    let (run, _) = deployments.find_round(seconds);
    let memory = 0.88 + 0.04 * noise.derive_stream("memory").random_unit(0);
    let server = Tenant {
        program: Program::Server,
        run,
        started_s: deployments.start_s(run),
        memory,
        part: 1.0,
    };
    let busy = compute_burst(noise, seconds);
    let jitter = noise.derive_stream("jitter").smooth_curve(seconds * 2.0);
    let gpu_percent = (92.0 * busy + 4.0 * jitter * busy).clamp(0.0, 100.0);
    // Decoding reads all weights for every token, so the memory is almost as busy as the
    // multiprocessors.
    Load {
        gpu_percent,
        memory_percent: gpu_percent * 0.72,
        demand: 0.75 * busy,
        tenants: [Some(server), None],
        ..Load::default()
    }
}

/// Returns the amount of work that requests require at a given time, from 0 to 1.
fn compute_burst(noise: Noise, seconds: f64) -> f64 {
    let (number, into_s) = Cycle {
        period_s: BURST_INTERVAL_S,
        phase_s: 0.0,
    }
    .find_round(seconds);
    let length_s = 2.0 + 5.5 * noise.derive_stream("length").random_unit(number);
    let begin_s = noise.derive_stream("begin").random_unit(number) * (BURST_INTERVAL_S - length_s);
    let height = 0.3 + 0.7 * noise.derive_stream("height").random_unit(number);
    let swell = ease_in_out((into_s - begin_s) / RAMP_S);
    let fade = ease_in_out((begin_s + length_s - into_s) / RAMP_S);
    height * swell.min(fade)
}
