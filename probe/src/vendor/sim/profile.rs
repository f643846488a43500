//! The workloads of programs on a simulated GPU, with one function per kind of workload.

use super::{
    Profile,
    noise::{Noise, ease_in_out},
};

/// A GPU's load at a certain time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Load {
    pub(super) gpu_percent: f64,
    /// The share of time during which device memory is read or written, in percent.
    pub(super) memory_percent: f64,
    pub(super) encoder_percent: f64,
    pub(super) decoder_percent: f64,
    /// The power that the kernels would draw at the highest clocks, as a share of the power limit.
    /// This share can exceed 1.
    pub(super) demand: f64,
    /// Whether the kernels only wait, as in a collective. Waiting kernels occupy multiprocessors
    /// but do not move data.
    pub(super) waits: bool,
    pub(super) tenants: [Option<Tenant>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tenant {
    pub(super) program: Program,
    /// The number of this run of the program. Each run has a different PID.
    pub(super) run: i64,
    /// The time at which this run started, in seconds on the timeline.
    pub(super) started_s: f64,
    /// The program's memory, as a share of the memory that is available to programs.
    pub(super) memory: f64,
    /// The program's share of the GPU's utilization, from 0 to 1.
    pub(super) part: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Training,
    Server,
    Leak,
    Notebook,
    /// One rank of a job that uses several GPUs.
    Collective,
}

impl Profile {
    pub(super) fn compute_load(self, noise: Noise, seconds: f64) -> Load {
        match self {
            Self::Training => compute_training_load(noise, seconds),
            Self::Inference => compute_inference_load(noise, seconds),
            Self::Leak => compute_leak_load(noise, seconds),
            Self::Held => compute_held_load(noise, seconds),
            Self::Hang => compute_hang_load(noise, seconds),
            Self::Idle => Load::default(),
        }
    }

    /// Returns a GPU's default profile. The profiles differ by index, so that a machine shows all
    /// kinds of workloads.
    pub(super) fn default_for(index: u32) -> Self {
        const MIX: [Profile; 8] = [
            Profile::Training,
            Profile::Inference,
            Profile::Leak,
            Profile::Held,
            Profile::Training,
            Profile::Training,
            Profile::Inference,
            Profile::Idle,
        ];
        MIX[index as usize % MIX.len()]
    }
}

// A profile with an idle notebook that keeps its memory allocated.

/// The interval at which a user restarts the notebook's kernel, in seconds.
const NOTEBOOK_RESTART_INTERVAL_S: f64 = 28_800.0;

fn compute_held_load(noise: Noise, seconds: f64) -> Load {
    let memory = 0.15 + 0.15 * noise.derive_stream("memory").random_unit(0);
    Load {
        tenants: [
            Some(make_notebook_tenant(noise, seconds, memory, 1.0)),
            None,
        ],
        ..Load::default()
    }
}

/// Returns the process of the notebook's kernel. `memory` is the process's share of the memory that
/// is available to programs, and `part` is its share of the GPU's utilization.
fn make_notebook_tenant(noise: Noise, seconds: f64, memory: f64, part: f64) -> Tenant {
    let phase_s =
        NOTEBOOK_RESTART_INTERVAL_S * (0.2 + 0.6 * noise.derive_stream("notebook").random_unit(0));
    let kernels = Cycle {
        period_s: NOTEBOOK_RESTART_INTERVAL_S,
        phase_s,
    };
    let (run, _) = kernels.round_and_offset(seconds);
    Tenant {
        part,
        ..kernels.make_tenant(Program::Notebook, run, memory)
    }
}

// A profile with a collective that waits for a process that never joins. The collective's kernels
// run all the time, but no data moves.

/// The time until a user notices the hang and restarts the job, in seconds.
const HANG_RUN_S: f64 = 86_400.0;

fn compute_hang_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: HANG_RUN_S,
        phase_s: 0.3 * HANG_RUN_S,
    };
    let (run, _) = runs.round_and_offset(seconds);
    let memory = 0.5 + 0.2 * noise.derive_stream("memory").random_unit(run);
    let rank = runs.make_tenant(Program::Collective, run, memory);
    Load {
        tenants: [Some(rank), None],
        ..Load::from_waiting_kernels(100.0)
    }
}

// A profile with a model server, which uses most of the memory from the start and works when
// requests arrive.

/// The mean interval between bursts of requests, in seconds.
const BURST_INTERVAL_S: f64 = 9.0;
/// The time that a burst takes to grow or to fade, in seconds.
const BURST_RAMP_S: f64 = 0.6;
/// The interval at which a new model version is deployed, in seconds (about eight days).
const DEPLOY_INTERVAL_S: f64 = 700_000.0;

fn compute_inference_load(noise: Noise, seconds: f64) -> Load {
    let deployments = Cycle {
        period_s: DEPLOY_INTERVAL_S,
        phase_s: DEPLOY_INTERVAL_S * (0.1 + 0.5 * noise.derive_stream("deployed").random_unit(0)),
    };
    let (run, _) = deployments.round_and_offset(seconds);
    let memory = 0.88 + 0.04 * noise.derive_stream("memory").random_unit(0);
    let server = deployments.make_tenant(Program::Server, run, memory);
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
    .round_and_offset(seconds);
    let length_s = 2.0 + 5.5 * noise.derive_stream("length").random_unit(number);
    let begin_s = noise.derive_stream("begin").random_unit(number) * (BURST_INTERVAL_S - length_s);
    let height = 0.3 + 0.7 * noise.derive_stream("height").random_unit(number);
    let swell = ease_in_out((into_s - begin_s) / BURST_RAMP_S);
    let fade = ease_in_out((begin_s + length_s - into_s) / BURST_RAMP_S);
    height * swell.min(fade)
}

// A profile with a program that leaks memory. Its memory grows until none is left, and then the
// program is restarted.

/// The time from the first allocation to the last, in seconds.
const LEAK_GROWTH_S: f64 = 280.0;
/// The time from the last allocation until a user restarts the program, in seconds.
const LEAK_RESTART_S: f64 = 8.0;
/// The share of the memory that the program uses at its start.
const LEAK_FIRST_SHARE: f64 = 0.08;

fn compute_leak_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: LEAK_GROWTH_S + LEAK_RESTART_S,
        phase_s: 100.0 * noise.derive_stream("run phase").random_unit(0),
    };
    let (run, age_s) = runs.round_and_offset(seconds);
    if age_s >= LEAK_GROWTH_S {
        return Load::default();
    }
    let memory = LEAK_FIRST_SHARE + (0.998 - LEAK_FIRST_SHARE) * age_s / LEAK_GROWTH_S;
    let jitter = noise.derive_stream("jitter").smooth_curve(seconds * 1.5);
    let gpu_percent = if age_s < 3.0 {
        8.0
    } else {
        72.0 + 9.0 * jitter
    };
    let script = runs.make_tenant(Program::Leak, run, memory);
    Load {
        gpu_percent,
        memory_percent: gpu_percent * 0.45,
        demand: gpu_percent / 100.0 * 0.8,
        tenants: [Some(script), None],
        ..Load::default()
    }
}

// A profile with a training script that is run again and again. On some GPUs, there is also a
// notebook.

/// The length of a training run, in seconds. The next run starts after a pause.
const TRAINING_RUN_S: f64 = 2_400.0;
/// The pause between two runs, in seconds.
const TRAINING_PAUSE_S: f64 = 12.0;
/// The time for loading data, running the first kernels, and growing the memory pool, in seconds.
const TRAINING_WARM_UP_S: f64 = 15.0;
/// The interval between validations, in seconds. A validation takes the last `VALIDATION_S` of the
/// interval.
const VALIDATION_INTERVAL_S: f64 = 300.0;
const VALIDATION_S: f64 = 20.0;
/// The interval between checkpoints, in seconds. While a checkpoint is written to disk, the GPU
/// waits.
const CHECKPOINT_INTERVAL_S: f64 = 600.0;
const CHECKPOINT_S: f64 = 6.0;
/// The mean interval between dips in the load, in seconds. Dips occur when the data loader is too
/// slow.
const DIP_INTERVAL_S: f64 = 45.0;
const DIP_S: f64 = 2.5;
/// The duration of a training step (forward, backward, and optimizer), in seconds.
const TRAINING_STEP_S: f64 = 1.2;

fn compute_training_load(noise: Noise, seconds: f64) -> Load {
    let runs = Cycle {
        period_s: TRAINING_RUN_S + TRAINING_PAUSE_S,
        phase_s: 600.0 + 900.0 * noise.derive_stream("run phase").random_unit(0),
    };
    let (run, age_s) = runs.round_and_offset(seconds);
    let notebook = (noise.derive_stream("guest").random_unit(0) < 0.4)
        .then(|| make_notebook_tenant(noise, seconds, 0.09, 0.02));
    if age_s >= TRAINING_RUN_S {
        return Load {
            tenants: [notebook, None],
            ..Load::default()
        };
    }
    let steady = 0.46 + 0.2 * noise.derive_stream("memory").random_unit(run);
    let memory = 0.01 + (steady - 0.01) * ease_in_out(age_s / TRAINING_WARM_UP_S);
    let part = if notebook.is_some() { 0.98 } else { 1.0 };
    let script = Tenant {
        part,
        ..runs.make_tenant(Program::Training, run, memory)
    };
    Load {
        tenants: [Some(script), notebook],
        ..compute_training_work(noise, seconds, age_s)
    }
}

/// Returns the training script's load, `age_s` seconds after the start of the current run.
fn compute_training_work(noise: Noise, seconds: f64, age_s: f64) -> Load {
    let jitter = noise.derive_stream("jitter").smooth_curve(seconds * 2.0);
    let (gpu_percent, demand) = if age_s < TRAINING_WARM_UP_S {
        let warm = ease_in_out(age_s / TRAINING_WARM_UP_S);
        (4.0 + 85.0 * warm + 6.0 * jitter, 0.9 * warm)
    } else if age_s % CHECKPOINT_INTERVAL_S >= CHECKPOINT_INTERVAL_S - CHECKPOINT_S {
        (1.0 + jitter, 0.02)
    } else if age_s % VALIDATION_INTERVAL_S >= VALIDATION_INTERVAL_S - VALIDATION_S {
        (66.0 + 7.0 * jitter, 0.55)
    } else if is_starved(noise, age_s) {
        (40.0 + 16.0 * jitter, 0.38)
    } else {
        // The optimizer is limited by memory bandwidth, so it draws less power.
        let optimizer = (age_s % TRAINING_STEP_S) / TRAINING_STEP_S > 0.85;
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
    .round_and_offset(age_s);
    let begin_s = noise.derive_stream("dip").random_unit(dip) * (DIP_INTERVAL_S - DIP_S);
    (begin_s..begin_s + DIP_S).contains(&into_s)
}

/// A division of time into periods of equal length, which are called rounds.
#[derive(Debug, Clone, Copy)]
struct Cycle {
    period_s: f64,
    /// How much of a round has passed when the timeline starts, in seconds.
    phase_s: f64,
}

impl Cycle {
    /// Returns the number of the round that contains `seconds`, and how long ago this round
    /// started.
    fn round_and_offset(self, seconds: f64) -> (i64, f64) {
        let shifted = seconds + self.phase_s;
        let round = (shifted / self.period_s).floor();
        (round as i64, shifted - round * self.period_s)
    }

    fn start_s(self, round: i64) -> f64 {
        round as f64 * self.period_s - self.phase_s
    }

    /// Returns the process that a program starts in round `run`, if it starts one in each round.
    /// `memory` is the process's share of the memory that is available to programs. The process has
    /// the GPU to itself.
    fn make_tenant(self, program: Program, run: i64, memory: f64) -> Tenant {
        Tenant {
            program,
            run,
            started_s: self.start_s(run),
            memory,
            part: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_converted_to_cycle_number_and_offset() {
        let cycle = Cycle {
            period_s: 10.0,
            phase_s: 4.0,
        };
        assert_eq!(cycle.round_and_offset(0.0), (0, 4.0));
        assert_eq!(cycle.round_and_offset(6.0), (1, 0.0));
        assert_eq!(cycle.round_and_offset(17.0), (2, 1.0));
        assert!((cycle.start_s(2) - 16.0).abs() < 1e-9);
    }
}
