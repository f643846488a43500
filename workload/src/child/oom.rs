//! The job that demonstrates running out of memory.

use std::env;

use super::{
    Context, JobFailure, Reporter,
    placement::{Placement, ReservedGpu},
};
use crate::{
    bench::Place,
    oom::{self, Setting},
    protocol::{OomJob, Report, Topic},
    suggest::did_you_mean,
};

/// The divisor of the free memory that limits a demonstration on a GPU that others use, too.
const SHARED_PART: u64 = 4;

pub(super) fn run(
    job: &OomJob,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let scenario = oom::find(&job.scenario).ok_or_else(|| {
        let valid = oom::all()
            .iter()
            .map(|scenario| scenario.id)
            .chain(["list"]);
        let fix = did_you_mean(&job.scenario, valid, "see `gpumon oom list`");
        JobFailure::usage(format!("unknown scenario '{}': {fix}", job.scenario))
    })?;
    let placement = Placement::take(&job.place, false, context.driver)?;
    let held = placement.gpus.first();
    let gpu = held.map(ReservedGpu::open).transpose()?;
    let cap_bytes = match (&gpu, held) {
        (Some(gpu), Some(held)) if held.is_shared => {
            Some(gpu.memory_budget()?.free_bytes / SHARED_PART)
        }
        _ => None,
    };
    let program = env::current_exe().map_err(|error| {
        JobFailure::failed(format!("cannot find gpumon's own program: {error}"))
    })?;
    let setting = Setting {
        cap_bytes,
        second: vec![program.into(), "oom".into(), "--second".into()],
    };
    let place = gpu.as_ref().map_or(Place::Cpu(&placement.cpu), Place::Cuda);
    let mut with_note = |step: Report| {
        let is_begun = matches!(step, Report::Begun { .. });
        report(step);
        if let (true, Some(note)) = (is_begun, &placement.note) {
            report(Report::Said {
                topic: Topic::Step,
                text: format!("{note}, on a model of a GPU's memory"),
            });
        }
    };
    Ok(oom::run(
        scenario,
        job.hold_seconds,
        &place,
        &setting,
        &mut with_note,
        context.interrupted,
    ))
}
