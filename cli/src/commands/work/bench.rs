//! Workloads, one after the other, on each place that was asked for.

use gpumon_workload::{
    Backend, Dtype, Limits, Now, Outcome, RunError, Workload,
    bench::{self, Place, Request},
    job::{BenchJob, Where},
};

use super::{
    Around, FAILED, INTERRUPTED, Load, NO_GPU, REFUSED, Report,
    floor::{Floor, Held},
    plan::{Plan, Step},
};
use crate::exit::Failure;

/// Runs all of it. What fails does not keep the rest from running, but for a driver that fails.
pub(super) fn run(job: &BenchJob, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    let plan = Plan::new(job)?;
    let device = if job.pairs { "all" } else { &job.place.device }.to_owned();
    let place = Where { device, ..job.place.clone() };
    let mut floor = Floor::take(&place, plan.needs_gpu, around.source)?;
    if job.pairs {
        return run_pairs(job, &plan, &floor, around, say);
    }
    let gpus = match floor.widen(plan.gpus(), &job.place, around.source) {
        Err(error) if plan.is_named => return Err(error),
        widened => widened.unwrap_or(1),
    };
    let steps = |backend| plan.on(backend, gpus).count() * floor.count(backend);
    let steps = steps(Backend::Cuda) + steps(Backend::Cpu);
    say(Report::Begun { title: plan.title(job), devices: floor.names(), steps });
    if let Some(note) = &floor.note {
        say(Report::Said { topic: gpumon_workload::report::Topic::Step, text: note.clone() });
    }
    let mut bench = Bench { job, around, floor: &floor, say, step: 0, worst: 0 };
    for held in &floor.gpus {
        match held.open() {
            Ok(gpu) => {
                let is_over = bench.all(plan.on(Backend::Cuda, gpus), &Place::Cuda(&gpu));
                if is_over {
                    return Ok(bench.worst);
                }
            }
            Err(error) => bench.failed("bench", Backend::Cuda, &error.to_string(), NO_GPU),
        }
    }
    if floor.runs_on_cpu {
        bench.all(plan.on(Backend::Cpu, gpus), &Place::Cpu(&floor.cpu));
    }
    Ok(bench.worst)
}

/// Runs all of it from each GPU to each other one. All of them stay ready for work meanwhile.
fn run_pairs(
    job: &BenchJob,
    plan: &Plan,
    floor: &Floor,
    around: &Around<'_>,
    say: &mut dyn FnMut(Report),
) -> Result<u8, Failure> {
    let found = floor.gpus.len();
    if let (0 | 1, Some(workload)) = (found, plan.workloads.first()) {
        let few = RunError::TooFewGpus { id: workload.about().id, needed: 2, found };
        return Err(Failure::with_code(few, FAILED));
    }
    let gpus: Result<Vec<_>, _> = floor.gpus.iter().map(Held::open).collect();
    let mut gpus = gpus.map_err(|error| Failure::with_code(error, NO_GPU))?;
    let steps = plan.on(Backend::Cuda, found).count() * found * (found - 1);
    say(Report::Begun { title: plan.title(job), devices: floor.names(), steps });
    let mut bench = Bench { job, around, floor, say, step: 0, worst: 0 };
    let pairs = (0..found).flat_map(|from| (0..found).map(move |to| (from, to))).filter(|(from, to)| from != to);
    for (from, to) in pairs {
        let other = gpus[to].as_neighbour();
        gpus[from].pair_with(other);
        if bench.all(plan.on(Backend::Cuda, found), &Place::Cuda(&gpus[from])) {
            break;
        }
    }
    Ok(bench.worst)
}

/// A bench as far as it has come.
struct Bench<'a> {
    job: &'a BenchJob,
    around: &'a Around<'a>,
    floor: &'a Floor,
    say: &'a mut dyn FnMut(Report),
    step: usize,
    /// The exit code so far: a wrong result counts more than one that could not be had.
    worst: u8,
}

impl Bench<'_> {
    /// Runs these in one place, and says whether that was the end of it.
    fn all(&mut self, steps: impl Iterator<Item = Step>, place: &Place<'_>) -> bool {
        for step in steps {
            let Step { workload, dtype, is_one_of_all } = step;
            if let (true, Place::Cuda(gpu), Some(dtype)) = (is_one_of_all, place, dtype)
                && workload.check_device(gpu, dtype).is_err()
            {
                self.step += 1;
                continue;
            }
            match self.one(workload, dtype, place) {
                Ok(outcome) => self.outcome(outcome),
                Err(error) => {
                    let code = if matches!(error, RunError::TooLarge { .. }) { REFUSED } else { FAILED };
                    self.failed(workload.about().id, place.backend(), &error.to_string(), code);
                    if let RunError::Cuda(_) = error {
                        return true;
                    }
                }
            }
            self.step += 1;
            if self.around.is_interrupted() {
                self.count(INTERRUPTED);
                return true;
            }
        }
        false
    }

    /// A size that was asked of everything is asked of what has one.
    fn one(&mut self, workload: &dyn Workload, dtype: Option<Dtype>, place: &Place<'_>) -> Result<Outcome, RunError> {
        let Self { job, around, floor, say, step, .. } = self;
        let limits = if job.quick { Limits::QUICK } else { Limits::FULL };
        let request = Request { dtype, amount: job.size, engine: job.engine, limits };
        let (id, backend) = (workload.about().id, place.backend());
        bench::run(workload, place, &floor.cpu, &request, around.interrupted, &mut |now| {
            say(match now {
                Now::Phase(phase) => Report::Phase { step: *step, id: id.to_owned(), backend, phase },
                Now::Share(share) => Report::Progress { share, text: String::new() },
            });
        })
    }

    fn outcome(&mut self, outcome: Outcome) {
        // What was interrupted before anything was checked is not wrong.
        if outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial {
            self.count(FAILED);
        }
        let load = load(self.floor, &outcome);
        (self.say)(Report::Result { outcome: Box::new(outcome), load });
    }

    fn failed(&mut self, id: &str, backend: Backend, error: &str, code: u8) {
        self.count(code);
        (self.say)(Report::Failed { id: id.to_owned(), backend, error: error.to_owned(), code });
    }

    fn count(&mut self, code: u8) {
        if self.worst != FAILED {
            self.worst = code;
        }
    }
}

/// What NVML read of an outcome's GPU while it was timed.
pub(super) fn load(floor: &Floor, outcome: &Outcome) -> Option<Load> {
    let (from_ms, to_ms) = (outcome.environment.from_ms, outcome.environment.to_ms);
    let load = floor.watch.between(outcome.device.uuid.as_deref()?, from_ms, to_ms)?;
    let share_at_clock = load.sm_mhz.and_then(|mhz| outcome.roofline.share_at(mhz.mean));
    Some(Load { share_at_clock, ..load })
}
