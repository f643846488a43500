//! The execution of workloads, one after another on each requested backend.

use super::{
    JobContext, JobFailure, Reporter,
    bench_plan::{BenchPlan, Step},
    exit_code_of,
    placement::{Placement, ReservedGpu},
    worse_code,
};
use crate::{
    bench::{self, ExecutionPlace, WorkloadRequest},
    cuda::CudaError,
    error::RunError,
    frameworks::Frameworks,
    measure::{MeasureLimits, MeasureProgress, SETTLE_TIME},
    protocol::{
        Backend, BenchJob, FrameworkRun, LimitingResource, Load, Phase, Report, RunOutcome, Where,
        report::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NO_GPU},
    },
};

/// Runs all workloads of the job. After an error of the driver, no further workloads run. After any
/// other error, they do.
pub(super) fn run_bench(
    job: &BenchJob,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let plan = BenchPlan::new(job)?;
    let device = if job.pairs {
        Some("all".to_owned())
    } else {
        job.place.device.clone()
    };
    let place = Where {
        device,
        ..job.place.clone()
    };
    let mut placement = Placement::reserve_gpus(&place, plan.needs_gpu, context.driver)?;
    if job.pairs {
        return run_gpu_pairs(job, &plan, &placement, context, report);
    }
    let gpus = match placement.reserve_neighbor_gpus(plan.max_gpus(), &job.place, context.driver) {
        Err(error) if plan.is_named => return Err(error),
        widened => widened.unwrap_or(1),
    };
    let places = placement
        .gpus
        .iter()
        .map(|held| Some(&*held.device.uuid))
        .chain(placement.runs_on_cpu.then_some(None));
    let steps = places.map(|place| plan.steps_on(place, gpus).count()).sum();
    let frameworks = context.frameworks()?;
    placement.report_start(plan.title(job), steps, report);
    if let Some(frameworks) = &frameworks {
        report(frameworks.installed_report());
    }
    let mut bench = Bench {
        job,
        frameworks,
        context,
        placement: &placement,
        report,
        step: 0,
        worst: 0,
    };
    for held in &placement.gpus {
        match held.open() {
            Ok(gpu) => {
                let is_over = bench.run_steps(
                    plan.steps_on(Some(&held.device.uuid), gpus),
                    &ExecutionPlace::Cuda(&gpu),
                );
                if is_over {
                    return Ok(bench.worst);
                }
            }
            Err(error) => bench.report_failure(
                "bench",
                Backend::Cuda,
                Some(held.device.index),
                &error.to_string(),
                EXIT_NO_GPU,
            ),
        }
    }
    if placement.runs_on_cpu {
        bench.run_steps(
            plan.steps_on(None, gpus),
            &ExecutionPlace::Cpu(&placement.cpu),
        );
    }
    Ok(bench.worst)
}

/// Runs each workload on every ordered pair of GPUs. All GPUs stay open while the workloads run.
fn run_gpu_pairs(
    job: &BenchJob,
    plan: &BenchPlan,
    placement: &Placement,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let found = placement.gpus.len();
    if let (0 | 1, Some(workload)) = (found, plan.workloads.first()) {
        let few = RunError::TooFewGpus {
            id: workload.about.id,
            needed: 2,
            found,
        };
        return Err(JobFailure::general_error(few));
    }
    let gpus: Result<Vec<_>, CudaError> = placement.gpus.iter().map(ReservedGpu::open).collect();
    let mut gpus = gpus?;
    let on = |gpu: usize| plan.steps_on(Some(&placement.gpus[gpu].device.uuid), found);
    let steps = (0..found).map(|from| on(from).count() * (found - 1)).sum();
    placement.report_start(plan.title(job), steps, report);
    let mut bench = Bench {
        job,
        frameworks: None,
        context,
        placement,
        report,
        step: 0,
        worst: 0,
    };
    let pairs = (0..found)
        .flat_map(|from| (0..found).map(move |to| (from, to)))
        .filter(|(from, to)| from != to);
    for (from, to) in pairs {
        let other = gpus[to].as_neighbor();
        gpus[from].set_neighbor(other);
        if bench.run_steps(on(from), &ExecutionPlace::Cuda(&gpus[from])) {
            break;
        }
    }
    Ok(bench.worst)
}

struct Bench<'a> {
    job: &'a BenchJob,
    frameworks: Option<Frameworks<'a>>,
    context: &'a JobContext<'a>,
    placement: &'a Placement,
    report: &'a mut Reporter<'a>,
    step: usize,
    worst: u8,
}

impl Bench<'_> {
    /// Runs steps on one backend. Returns `true` if no further steps can run.
    fn run_steps(&mut self, steps: impl Iterator<Item = Step>, place: &ExecutionPlace<'_>) -> bool {
        for step in steps {
            let workload = step.workload;
            if let (true, Some(gpu), Some(dtype)) = (step.is_one_of_all, place.gpu(), step.dtype)
                && workload.program.check_device(gpu, dtype).is_err()
            {
                self.step += 1;
                continue;
            }
            match self.run_step(step, place) {
                Ok(outcome) => self.report_outcome(outcome, place),
                Err(error) => {
                    let (id, gpu) = (workload.about.id, place.name().index);
                    self.report_failure(
                        id,
                        place.backend(),
                        gpu,
                        &error.to_string(),
                        exit_code_of(&error),
                    );
                    if let RunError::Cuda(_) = error {
                        return true;
                    }
                }
            }
            self.step += 1;
            if self.context.is_interrupted() {
                self.record_exit_code(EXIT_INTERRUPTED);
                return true;
            }
        }
        false
    }

    /// Runs one step. A size that was requested for all workloads does not apply to a workload with
    /// a fixed size.
    fn run_step(
        &mut self,
        Step {
            workload,
            dtype,
            amount,
            ..
        }: Step,
        place: &ExecutionPlace<'_>,
    ) -> Result<RunOutcome, RunError> {
        let must_settle = self.job.settle
            && place.gpu().is_some()
            && workload.about.bound == LimitingResource::Compute;
        let mut limits = MeasureLimits::new(self.job.quick);
        if must_settle {
            limits.warm_up = SETTLE_TIME;
        }
        let Self {
            job,
            context,
            placement,
            report,
            step,
            ..
        } = self;
        let request = WorkloadRequest {
            dtype,
            amount,
            engine: job.engine,
            limits,
        };
        let (id, backend) = (workload.about.id, place.backend());
        bench::run_workload(
            workload,
            place,
            &placement.cpu,
            &request,
            context.interrupted,
            &mut |now| report(now.into_report(*step, id, backend)),
        )
    }

    fn report_outcome(&mut self, outcome: RunOutcome, place: &ExecutionPlace<'_>) {
        // A workload that was interrupted before any check does not count as wrong.
        if outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial {
            self.record_exit_code(EXIT_FAILED);
        }
        let load = gpu_load_during_run(self.placement, &outcome);
        let beside = self.run_frameworks(&outcome, place);
        (self.report)(Report::Result {
            outcome: Box::new(outcome),
            load,
            beside,
        });
    }

    /// Runs the same operation in other frameworks if this was requested, and returns their
    /// results.
    fn run_frameworks(
        &mut self,
        outcome: &RunOutcome,
        place: &ExecutionPlace<'_>,
    ) -> Vec<FrameworkRun> {
        let limits = MeasureLimits::new(self.job.quick);
        let Self {
            frameworks: Some(frameworks),
            report,
            step,
            ..
        } = self
        else {
            return Vec::new();
        };
        if outcome.partial {
            return Vec::new();
        }
        frameworks.run_frameworks(outcome, place.gpu(), &limits, &mut |name| {
            let id = format!("{} in {name}", outcome.id);
            report(MeasureProgress::Phase(Phase::Measuring).into_report(
                *step,
                &id,
                outcome.backend,
            ));
        })
    }

    fn report_failure(
        &mut self,
        id: &str,
        backend: Backend,
        gpu: Option<u32>,
        error: &str,
        code: u8,
    ) {
        self.record_exit_code(code);
        (self.report)(Report::Failed {
            id: id.to_owned(),
            backend,
            gpu,
            error: error.to_owned(),
            code,
        });
    }

    fn record_exit_code(&mut self, code: u8) {
        self.worst = worse_code(self.worst, code);
    }
}

/// Returns a summary of the driver's readings of the outcome's GPU during the time in which the
/// workload was timed.
pub(super) fn gpu_load_during_run(placement: &Placement, outcome: &RunOutcome) -> Option<Load> {
    let (from_ms, to_ms) = (outcome.environment.from_ms, outcome.environment.to_ms);
    let load = placement
        .readings
        .load_between(outcome.device.uuid.as_deref()?, from_ms, to_ms)?;
    let share_at_clock = load
        .sm_mhz
        .and_then(|mhz| outcome.roofline.peak_share_at_clock(mhz.mean));
    Some(Load {
        share_at_clock,
        ..load
    })
}
