//! A profile with an idle notebook that keeps its memory allocated.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The interval at which a user restarts the notebook's kernel, in seconds.
const RESTART_INTERVAL_S: f64 = 28_800.0;

pub(super) fn compute_held_load(noise: Noise, seconds: f64) -> Load {
    let memory = 0.15 + 0.15 * noise.derive_stream("memory").random_unit(0);
    Load {
        tenants: [Some(make_notebook_tenant(noise, seconds, memory, 1.0)), None],
        ..Load::default()
    }
}

/// Returns the process of the notebook's kernel. `memory` is its share of the GPU's memory, and
/// `part` is its share of the GPU's work.
pub(super) fn make_notebook_tenant(noise: Noise, seconds: f64, memory: f64, part: f64) -> Tenant {
    let phase_s = RESTART_INTERVAL_S * (0.2 + 0.6 * noise.derive_stream("notebook").random_unit(0));
    let kernels = Cycle {
        period_s: RESTART_INTERVAL_S,
        phase_s,
    };
    let (run, _) = kernels.find_round(seconds);
    Tenant {
        program: Program::Notebook,
        run,
        started_s: kernels.start_s(run),
        memory,
        part,
    }
}
