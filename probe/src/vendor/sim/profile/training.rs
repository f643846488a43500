//! A profile with a training loop that repeats its runs. On some GPUs, there is also a notebook.

use super::{Cycle, Load, Program, Tenant, held};
use crate::vendor::sim::noise::{Noise, ease_in_out};

/// The length of a run in seconds, after which the sweep's next run starts.
const RUN_S: f64 = 2_400.0;
/// The pause between two runs, in seconds.
const PAUSE_S: f64 = 12.0;
/// The time for loading data, running the first kernels, and growing the memory pool, in seconds.
const WARM_UP_S: f64 = 15.0;
/// The interval between validations, in seconds. The constant below is the duration of a validation
/// at the interval's end.
const VALIDATION_INTERVAL_S: f64 = 300.0;
const VALIDATION_S: f64 = 20.0;
/// The interval between checkpoints, in seconds. While a checkpoint is written to disk, the GPU
/// waits.
const CHECKPOINT_INTERVAL_S: f64 = 600.0;
const CHECKPOINT_S: f64 = 6.0;
/// The mean interval between times when the data loader is too slow, in seconds.
const DIP_INTERVAL_S: f64 = 45.0;
const DIP_S: f64 = 2.5;
/// The duration of a training step (forward, backward, and optimizer), in seconds.
const STEP_S: f64 = 1.2;

pub(super) fn compute_training_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: RUN_S + PAUSE_S,
        phase_s: 600.0 + 900.0 * noise.derive_stream("run phase").random_unit(0),
    };
    let (run, age_s) = runs.find_round(seconds);
    let notebook = (noise.derive_stream("guest").random_unit(0) < 0.4)
        .then(|| held::make_notebook_tenant(noise, seconds, 0.09, 0.02));
    if age_s >= RUN_S {
        return Load {
            tenants: [notebook, None],
            ..Load::default()
        };
    }
    let steady = 0.46 + 0.2 * noise.derive_stream("memory").random_unit(run);
    let memory = 0.01 + (steady - 0.01) * ease_in_out(age_s / WARM_UP_S);
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
        ..compute_work(noise, seconds, age_s)
    }
}

/// Returns the training script's load, `age_s` seconds after the start of the current run.
fn compute_work(noise: Noise, seconds: f64, age_s: f64) -> Load {
    let jitter = noise.derive_stream("jitter").smooth_curve(seconds * 2.0);
    let (gpu_percent, demand) = if age_s < WARM_UP_S {
        let warm = ease_in_out(age_s / WARM_UP_S);
        (4.0 + 85.0 * warm + 6.0 * jitter, 0.9 * warm)
    } else if age_s % CHECKPOINT_INTERVAL_S >= CHECKPOINT_INTERVAL_S - CHECKPOINT_S {
        (1.0 + jitter, 0.02)
    } else if age_s % VALIDATION_INTERVAL_S >= VALIDATION_INTERVAL_S - VALIDATION_S {
        (66.0 + 7.0 * jitter, 0.55)
    } else if is_starved(noise, age_s) {
        (40.0 + 16.0 * jitter, 0.38)
    } else {
        // The optimizer is limited by memory bandwidth, so it draws less power.
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

fn is_starved(noise: Noise, age_s: f64) -> bool {
    let (dip, into_s) = Cycle {
        period_s: DIP_INTERVAL_S,
        phase_s: 0.0,
    }
    .find_round(age_s);
    let begin_s = noise.derive_stream("dip").random_unit(dip) * (DIP_INTERVAL_S - DIP_S);
    (begin_s..begin_s + DIP_S).contains(&into_s)
}
