//! The job that demonstrates running out of memory.

use std::env;

use super::{
    JobContext, JobFailure, Reporter,
    placement::{Placement, ReservedGpu},
};
use crate::{
    bench::ExecutionPlace,
    oom::{self, DemoSettings},
    protocol::{OomJob, Report, Topic},
    suggest::suggest_word,
};

/// The divisor of the free memory on a GPU that other users are using. A demonstration uses at most
/// the resulting amount.
const SHARED_DIVISOR: u64 = 4;

pub(super) fn run_oom(
    job: &OomJob,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let scenario = oom::find_scenario(&job.scenario).ok_or_else(|| {
        let valid = oom::list_scenarios()
            .iter()
            .map(|scenario| scenario.id)
            .chain(["list"]);
        let fix = suggest_word(&job.scenario, valid, "see `gpumon oom list`");
        JobFailure::usage_error(format!("unknown scenario '{}': {fix}", job.scenario))
    })?;
    let placement = Placement::reserve_gpus(&job.place, false, context.driver)?;
    let held = placement.gpus.first();
    let gpu = held.map(ReservedGpu::open).transpose()?;
    let cap_bytes = match (&gpu, held) {
        (Some(gpu), Some(held)) if held.is_shared => {
            Some(gpu.memory_budget()?.free_bytes / SHARED_DIVISOR)
        }
        _ => None,
    };
    let program = env::current_exe().map_err(|error| {
        JobFailure::general_error(format!("cannot find the gpumon executable: {error}"))
    })?;
    let setting = DemoSettings {
        cap_bytes,
        second: vec![program.into(), "oom".into(), "--second".into()],
    };
    let place = gpu
        .as_ref()
        .map_or(ExecutionPlace::Cpu(&placement.cpu), ExecutionPlace::Cuda);
    let mut with_note = |step: Report| {
        let is_begun = matches!(step, Report::Begun { .. });
        report(step);
        if let (true, Some(note)) = (is_begun, &placement.note) {
            report(Report::Said {
                topic: Topic::Step,
                text: format!("{note}, with a model of a GPU's memory"),
            });
        }
    };
    Ok(oom::run_scenario(
        scenario,
        job.hold_seconds,
        &place,
        &setting,
        &mut with_note,
        context.interrupted,
    ))
}
