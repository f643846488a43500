//! A training loop with one run after another. Some GPUs also have a notebook.

use super::{Cycle, Load, Program, Tenant, held};
use crate::vendor::sim::noise::{Noise, ease};

/// The length of a run, after which the next run of the sweep starts.
const RUN_S: f64 = 2_400.0;
/// The pause between two runs.
const PAUSE_S: f64 = 12.0;
/// The time for loading data, running the first kernels and growing the memory pool.
const WARM_UP_S: f64 = 15.0;
/// The interval of validations. A validation takes the last 20 seconds of the interval.
const VALIDATE_EVERY_S: f64 = 300.0;
const VALIDATE_S: f64 = 20.0;
/// The interval of checkpoints. While the model is written to disk, the GPU waits.
const CHECKPOINT_EVERY_S: f64 = 600.0;
const CHECKPOINT_S: f64 = 6.0;
/// The mean interval at which the data loader cannot keep up.
const DIP_EVERY_S: f64 = 45.0;
const DIP_S: f64 = 2.5;
/// The duration of one training step: forward, backward and optimizer.
const STEP_S: f64 = 1.2;

pub(super) fn load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: RUN_S + PAUSE_S,
        phase_s: 600.0 + 900.0 * noise.stream("run phase").unit(0),
    };
    let (run, age_s) = runs.at(seconds);
    let notebook =
        (noise.stream("guest").unit(0) < 0.4).then(|| held::tenant(noise, seconds, 0.09, 0.02));
    if age_s >= RUN_S {
        return Load {
            tenants: [notebook, None],
            ..Load::default()
        };
    }
    let steady = 0.46 + 0.2 * noise.stream("memory").unit(run);
    let memory = 0.01 + (steady - 0.01) * ease(age_s / WARM_UP_S);
    let part = if notebook.is_some() { 0.98 } else { 1.0 };
    let script = Tenant {
        program: Program::Training,
        run,
        started_s: runs.start_s(run),
        memory,
        part,
    };
    Load {
        tenants: [Some(script), notebook],
        ..work(noise, seconds, age_s)
    }
}

/// Returns the load of the script, `age_s` seconds after the start of its run.
fn work(noise: Noise, seconds: f64, age_s: f64) -> Load {
    let jitter = noise.stream("jitter").smooth(seconds * 2.0);
    let (gpu_percent, demand) = if age_s < WARM_UP_S {
        let warm = ease(age_s / WARM_UP_S);
        (4.0 + 85.0 * warm + 6.0 * jitter, 0.9 * warm)
    } else if age_s % CHECKPOINT_EVERY_S >= CHECKPOINT_EVERY_S - CHECKPOINT_S {
        (1.0 + jitter, 0.02)
    } else if age_s % VALIDATE_EVERY_S >= VALIDATE_EVERY_S - VALIDATE_S {
        (66.0 + 7.0 * jitter, 0.55)
    } else if starves(noise, age_s) {
        (40.0 + 16.0 * jitter, 0.38)
    } else {
        // The optimizer is limited by the memory bandwidth, and draws less power.
        let optimizer = (age_s % STEP_S) / STEP_S > 0.85;
        (
            98.5 + 1.5 * jitter,
            if optimizer { 0.95 } else { 1.3 + 0.05 * jitter },
        )
    };
    let memory_percent = gpu_percent * (0.4 + 0.04 * jitter);
    Load {
        gpu_percent,
        memory_percent,
        demand,
        ..Load::default()
    }
}

fn starves(noise: Noise, age_s: f64) -> bool {
    let (dip, into_s) = Cycle {
        period_s: DIP_EVERY_S,
        phase_s: 0.0,
    }
    .at(age_s);
    let begin_s = noise.stream("dip").unit(dip) * (DIP_EVERY_S - DIP_S);
    (begin_s..begin_s + DIP_S).contains(&into_s)
}
