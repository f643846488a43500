//! A collective that waits for a process which never joins. Its kernels run all the time, but no
//! data moves.

use super::{Cycle, Load, Program, Tenant};
use crate::vendor::sim::noise::Noise;

/// The time after which a user notices the hang and restarts the job.
const RUN_S: f64 = 86_400.0;

pub(super) fn load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: RUN_S,
        phase_s: 0.3 * RUN_S,
    };
    let (run, _) = runs.at(seconds);
    let memory = 0.5 + 0.2 * noise.stream("memory").unit(run);
    let rank = Tenant {
        program: Program::Collective,
        run,
        started_s: runs.start_s(run),
        memory,
        part: 1.0,
    };
    Load {
        tenants: [Some(rank), None],
        ..Load::waiting(100.0)
    }
}
