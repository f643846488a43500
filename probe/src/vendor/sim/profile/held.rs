//! A notebook that holds memory but is idle.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The interval at which a user restarts the notebook's kernel.
const RESTART_EVERY_S: f64 = 28_800.0;

pub(super) fn load(noise: Noise, seconds: f64) -> Load {
    let memory = 0.15 + 0.15 * noise.stream("memory").unit(0);
    Load {
        tenants: [Some(tenant(noise, seconds, memory, 1.0)), None],
        ..Load::default()
    }
}

/// Returns the notebook's kernel. `memory` is its share of the memory, and `part` its share of the
/// GPU's work.
pub(super) fn tenant(noise: Noise, seconds: f64, memory: f64, part: f64) -> Tenant {
    let phase_s = RESTART_EVERY_S * (0.2 + 0.6 * noise.stream("notebook").unit(0));
    let kernels = Cycle {
        period_s: RESTART_EVERY_S,
        phase_s,
    };
    let (run, _) = kernels.at(seconds);
    Tenant {
        program: Program::Notebook,
        run,
        started_s: kernels.start_s(run),
        memory,
        part,
    }
}
