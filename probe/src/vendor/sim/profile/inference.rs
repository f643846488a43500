//! A model server, which uses most of the memory from the start, and works when requests arrive.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::{Noise, ease};

/// The mean interval between bursts of requests.
const BURST_EVERY_S: f64 = 9.0;
/// The time in which a burst grows, and in which it fades.
const EDGE_S: f64 = 0.6;
/// The interval at which a new version of the model is deployed, about eight days.
const DEPLOY_EVERY_S: f64 = 700_000.0;

pub(super) fn load(noise: Noise, seconds: f64) -> Load {
    let deployments = Cycle {
        period_s: DEPLOY_EVERY_S,
        phase_s: DEPLOY_EVERY_S * (0.1 + 0.5 * noise.stream("deployed").unit(0)),
    };
    let (run, _) = deployments.at(seconds);
    let memory = 0.88 + 0.04 * noise.stream("memory").unit(0);
    let server = Tenant {
        program: Program::Server,
        run,
        started_s: deployments.start_s(run),
        memory,
        part: 1.0,
    };
    let busy = burst(noise, seconds);
    let jitter = noise.stream("jitter").smooth(seconds * 2.0);
    let gpu_percent = (92.0 * busy + 4.0 * jitter * busy).clamp(0.0, 100.0);
    // Decoding reads all weights for every token, so that the memory is almost as busy as the
    // multiprocessors.
    Load {
        gpu_percent,
        memory_percent: gpu_percent * 0.72,
        demand: 0.75 * busy,
        tenants: [Some(server), None],
        ..Load::default()
    }
}

/// Returns the amount of requested work, 0 to 1.
fn burst(noise: Noise, seconds: f64) -> f64 {
    let (number, into_s) = Cycle {
        period_s: BURST_EVERY_S,
        phase_s: 0.0,
    }
    .at(seconds);
    let length_s = 2.0 + 5.5 * noise.stream("length").unit(number);
    let begin_s = noise.stream("begin").unit(number) * (BURST_EVERY_S - length_s);
    let height = 0.3 + 0.7 * noise.stream("height").unit(number);
    let swell = ease((into_s - begin_s) / EDGE_S);
    let fade = ease((begin_s + length_s - into_s) / EDGE_S);
    height * swell.min(fade)
}
