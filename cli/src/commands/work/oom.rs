//! A demonstration of memory that runs out.

use std::env;

use anyhow::{Context, anyhow};
use gpumon_workload::{
    bench::Place,
    job::OomJob,
    oom::{self, Setting},
    report::Topic,
};

use super::{Around, NO_GPU, Report, floor::Floor};
use crate::{exit::Failure, suggest::nearest};

/// Beside others it holds no more than this part of what is free.
const SHARED_PART: u64 = 4;

pub(super) fn run(job: &OomJob, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    if oom::find(&job.scenario).is_none() {
        let cure = nearest(&job.scenario, oom::all().iter().map(|scenario| scenario.about().id).chain(["list"]));
        let cure = cure.map_or("see `gpumon oom list`".to_owned(), |id| format!("did you mean '{id}'?"));
        return Err(Failure::usage(anyhow!("unknown scenario '{}': {cure}", job.scenario)));
    }
    let floor = Floor::take(&job.place, false, around.source)?;
    let held = floor.gpus.first();
    let gpu = held.map(super::floor::Held::open).transpose().map_err(|error| Failure::with_code(error, NO_GPU))?;
    let cap_bytes = match (&gpu, held) {
        (Some(gpu), Some(held)) if held.is_shared => {
            let room = gpu.room().map_err(|error| Failure::with_code(error, NO_GPU))?;
            Some(room.free_bytes / SHARED_PART)
        }
        _ => None,
    };
    let program = env::current_exe().context("cannot find gpumon's own program")?;
    let setting = Setting { cap_bytes, second: vec![program.into(), "oom".into(), "--second".into()] };
    let place = gpu.as_ref().map_or(Place::Cpu(&floor.cpu), Place::Cuda);
    let mut tell = |report| {
        let is_begun = matches!(report, Report::Begun { .. });
        // What ends the job is told when everything is given back.
        if !matches!(report, Report::Ended { .. }) {
            say(report);
        }
        if let (true, Some(note)) = (is_begun, &floor.note) {
            say(Report::Said { topic: Topic::Step, text: format!("{note}, on a model of a GPU's memory") });
        }
    };
    Ok(oom::run(job, &place, &setting, &mut tell, around.interrupted))
}
