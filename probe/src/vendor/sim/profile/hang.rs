//! A profile with a collective that waits for a process that never joins. The collective's kernels
//! run all the time, but no data moves.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The time until a user notices the hang and restarts the job, in seconds.
const RUN_LENGTH_S: f64 = 86_400.0;

pub(super) fn compute_hang_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: RUN_LENGTH_S,
        phase_s: 0.3 * RUN_LENGTH_S,
    };
    let (run, _) = runs.find_round(seconds);
    let memory = 0.5 + 0.2 * noise.derive_stream("memory").random_unit(run);
    let rank = Tenant {
        program: Program::Collective,
        run,
        started_s: runs.start_s(run),
        memory,
        part: 1.0,
    };
    Load {
        tenants: [Some(rank), None],
        ..Load::from_waiting_kernels(100.0)
    }
}
