//! The execution of workloads, one after another, on each requested backend.

use super::{
    Context, JobFailure, Reporter,
    bench_plan::{BenchPlan, Step},
    failure::code_of,
    placement::{Placement, ReservedGpu},
    worse,
};
use crate::{
    bench::{self, Place, Request},
    beside::Frameworks,
    cuda::CudaError,
    error::RunError,
    measure::{Limits, Now, SETTLING},
    protocol::{
        Amount, Backend, BenchJob, Bound, Dtype, FrameworkRun, Load, Outcome, Phase, Report, Where,
        exit_code::{FAILED, INTERRUPTED, NO_GPU},
    },
    workload::Workload,
};

/// Runs all workloads. An error only stops the others if the driver fails.
pub(super) fn run(
    job: &BenchJob,
    context: &Context<'_>,
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
    let mut placement = Placement::take(&place, plan.needs_gpu, context.driver)?;
    if job.pairs {
        return run_pairs(job, &plan, &placement, context, report);
    }
    let gpus = match placement.add_neighbors(plan.gpus(), &job.place, context.driver) {
        Err(error) if plan.is_named => return Err(error),
        widened => widened.unwrap_or(1),
    };
    let places = placement
        .gpus
        .iter()
        .map(|held| Some(&*held.device.uuid))
        .chain(placement.runs_on_cpu.then_some(None));
    let steps = places.map(|place| plan.on(place, gpus).count()).sum();
    let frameworks = context.frameworks()?;
    placement.begin(plan.title(job), steps, report);
    if let Some(frameworks) = &frameworks {
        report(frameworks.said());
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
                let is_over = bench.all(plan.on(Some(&held.device.uuid), gpus), &Place::Cuda(&gpu));
                if is_over {
                    return Ok(bench.worst);
                }
            }
            Err(error) => bench.failed(
                "bench",
                Backend::Cuda,
                Some(held.device.index),
                &error.to_string(),
                NO_GPU,
            ),
        }
    }
    if placement.runs_on_cpu {
        bench.all(plan.on(None, gpus), &Place::Cpu(&placement.cpu));
    }
    Ok(bench.worst)
}

/// Runs all workloads from each GPU to each other one. All GPUs stay open meanwhile.
fn run_pairs(
    job: &BenchJob,
    plan: &BenchPlan,
    placement: &Placement,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let found = placement.gpus.len();
    if let (0 | 1, Some(workload)) = (found, plan.workloads.first()) {
        let few = RunError::TooFewGpus {
            id: workload.about.id,
            needed: 2,
            found,
        };
        return Err(JobFailure::failed(few));
    }
    let gpus: Result<Vec<_>, CudaError> = placement.gpus.iter().map(ReservedGpu::open).collect();
    let mut gpus = gpus?;
    let on = |gpu: usize| plan.on(Some(&placement.gpus[gpu].device.uuid), found);
    let steps = (0..found).map(|from| on(from).count() * (found - 1)).sum();
    placement.begin(plan.title(job), steps, report);
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
        gpus[from].pair_with(other);
        if bench.all(on(from), &Place::Cuda(&gpus[from])) {
            break;
        }
    }
    Ok(bench.worst)
}

struct Bench<'a> {
    job: &'a BenchJob,
    frameworks: Option<Frameworks<'a>>,
    context: &'a Context<'a>,
    placement: &'a Placement,
    report: &'a mut Reporter<'a>,
    step: usize,
    worst: u8,
}

impl Bench<'_> {
    /// Runs steps on one backend, and returns `true` if no further steps can run.
    fn all(&mut self, steps: impl Iterator<Item = Step>, place: &Place<'_>) -> bool {
        for step in steps {
            let Step {
                workload,
                dtype,
                amount,
                is_one_of_all,
            } = step;
            if let (true, Place::Cuda(gpu), Some(dtype)) = (is_one_of_all, place, dtype)
                && workload.program.check_device(gpu, dtype).is_err()
            {
                self.step += 1;
                continue;
            }
            match self.one(workload, dtype, amount, place) {
                Ok(outcome) => self.outcome(outcome, place),
                Err(error) => {
                    let (id, gpu) = (workload.about.id, place.name().index);
                    self.failed(
                        id,
                        place.backend(),
                        gpu,
                        &error.to_string(),
                        code_of(&error),
                    );
                    if let RunError::Cuda(_) = error {
                        return true;
                    }
                }
            }
            self.step += 1;
            if self.context.is_interrupted() {
                self.count(INTERRUPTED);
                return true;
            }
        }
        false
    }

    /// Runs one step. If a size is requested for all workloads, it only applies to those that have
    /// a size.
    fn one(
        &mut self,
        workload: &Workload,
        dtype: Option<Dtype>,
        amount: Option<Amount>,
        place: &Place<'_>,
    ) -> Result<Outcome, RunError> {
        let must_settle =
            self.job.settle && place.gpu().is_some() && workload.about.bound == Bound::Compute;
        let mut limits = Limits::new(self.job.quick);
        if must_settle {
            limits.warm_up = SETTLING;
        }
        let Self {
            job,
            context,
            placement,
            report,
            step,
            ..
        } = self;
        let request = Request {
            dtype,
            amount,
            engine: job.engine,
            limits,
        };
        let (id, backend) = (workload.about.id, place.backend());
        bench::run(
            workload,
            place,
            &placement.cpu,
            &request,
            context.interrupted,
            &mut |now| report(now.into_report(*step, id, backend)),
        )
    }

    fn outcome(&mut self, outcome: Outcome, place: &Place<'_>) {
        // A workload that was interrupted before anything was checked is not wrong.
        if outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial {
            self.count(FAILED);
        }
        let load = load(self.placement, &outcome);
        let beside = self.beside(&outcome, place);
        (self.report)(Report::Result {
            outcome: Box::new(outcome),
            load,
            beside,
        });
    }

    /// Returns the results of frameworks for the same operation, if they were requested.
    fn beside(&mut self, outcome: &Outcome, place: &Place<'_>) -> Vec<FrameworkRun> {
        let limits = Limits::new(self.job.quick);
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
        frameworks.run(outcome, place.gpu(), &limits, &mut |name| {
            let id = format!("{} beside {name}", outcome.id);
            report(Now::Phase(Phase::Measuring).into_report(*step, &id, outcome.backend));
        })
    }

    fn failed(&mut self, id: &str, backend: Backend, gpu: Option<u32>, error: &str, code: u8) {
        self.count(code);
        (self.report)(Report::Failed {
            id: id.to_owned(),
            backend,
            gpu,
            error: error.to_owned(),
            code,
        });
    }

    fn count(&mut self, code: u8) {
        self.worst = worse(self.worst, code);
    }
}

/// Returns the driver's readings of the outcome's GPU while it was timed.
pub(super) fn load(placement: &Placement, outcome: &Outcome) -> Option<Load> {
    let (from_ms, to_ms) = (outcome.environment.from_ms, outcome.environment.to_ms);
    let load = placement
        .readings
        .between(outcome.device.uuid.as_deref()?, from_ms, to_ms)?;
    let share_at_clock = load
        .sm_mhz
        .and_then(|mhz| outcome.roofline.share_at(mhz.mean));
    Some(Load {
        share_at_clock,
        ..load
    })
}
