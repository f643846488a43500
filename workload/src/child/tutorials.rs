//! Tutorial benchmarks, one after the other.

use super::{
    Context, JobFailure, Reporter,
    placement::{Placement, ReservedGpu},
    worse,
};
use crate::{
    error::RunError,
    measure::{Limits, Now},
    protocol::{
        Backend, BackendChoice, Found, Report, Topic, TutorialReport, TutorialsJob,
        exit_code::{FAILED, INTERRUPTED, REFUSED},
    },
    suggest::nearest,
    tutorials::{self, CASES, Case, How, News, Places},
};

/// As many GPUs as the cases with several of them have.
const GPUS: usize = 2;
/// Those cases.
const ON_SEVERAL: [&str; 2] = ["k2", "k5"];

pub(super) fn run(job: &TutorialsJob, context: &Context<'_>, report: &mut Reporter<'_>) -> Result<u8, JobFailure> {
    let mut cases = named(&job.cases)?;
    let mut placement = Placement::take(&job.place, false, context.driver)?;
    let is_several = |case: &Case| ON_SEVERAL.contains(&case.id);
    if cases.iter().any(|case| is_several(case))
        && let Err(error) = placement.add_neighbors(GPUS, &job.place, context.driver)
    {
        if !job.cases.is_empty() {
            return Err(error);
        }
        cases.retain(|case| !is_several(case));
    }
    let gpu = placement.gpus.first().map(ReservedGpu::open).transpose()?;
    let only = match job.place.backend {
        BackendChoice::Auto if gpu.is_none() => Some(Backend::Cpu),
        BackendChoice::Auto | BackendChoice::Both => None,
        BackendChoice::Cuda => Some(Backend::Cuda),
        BackendChoice::Cpu => Some(Backend::Cpu),
    };
    let title = if job.cases.is_empty() { "seeds".to_owned() } else { format!("seeds {}", job.cases.join(", ")) };
    report(Report::Begun { title, devices: placement.names(), steps: tutorials::steps(&cases, only).count() });
    if let Some(note) = &placement.note {
        report(Report::Said { topic: Topic::Step, text: note.clone() });
    }
    let places = Places { gpu: gpu.as_ref(), cpu: &placement.cpu, only };
    let how = How { limits: if job.quick { Limits::QUICK } else { Limits::FULL }, quick: job.quick };
    let mut worst = 0;
    let mut on_news = |news| {
        report(match news {
            News::Now { step, case, variant, now: Now::Phase(phase) } => {
                Report::Phase { step, id: format!("{} {}", case.id, variant.name), backend: variant.backend, phase }
            }
            News::Now { now: Now::Share(share), .. } => Report::Progress { share, text: String::new(), memory: None },
            News::Found(tutorial) => {
                worst = worse(worst, code(&tutorial));
                Report::Tutorial { tutorial }
            }
        });
    };
    match tutorials::run(&cases, &places, how, &mut on_news, context.interrupted) {
        _ if context.is_interrupted() => Ok(INTERRUPTED),
        // It was reported with the variant that it ended.
        Err(RunError::Cuda(_)) => Ok(FAILED),
        Err(error) => Err(JobFailure::failed(error)),
        Ok(()) => Ok(worst),
    }
}

fn code(tutorial: &TutorialReport) -> u8 {
    match &tutorial.found {
        _ if tutorial.is_wrong() => FAILED,
        Found::Failed { refused: true, .. } => REFUSED,
        Found::Failed { .. } => FAILED,
        _ => 0,
    }
}

/// Each once, in the order in which they were named.
fn named(ids: &[String]) -> Result<Vec<&'static Case>, JobFailure> {
    if ids.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let names = || CASES.iter().map(|case| case.id);
    let mut cases: Vec<&'static Case> = Vec::new();
    for id in ids {
        let found = tutorials::find(&id.to_lowercase()).ok_or_else(|| {
            let cure = nearest(id, names()).map(|near| format!("did you mean '{near}'?"));
            let cure = cure.unwrap_or_else(|| format!("there are {}", names().collect::<Vec<_>>().join(", ")));
            JobFailure::usage(format!("unknown row '{id}': {cure}"))
        })?;
        if !cases.iter().any(|case| case.id == found.id) {
            cases.push(found);
        }
    }
    Ok(cases)
}
