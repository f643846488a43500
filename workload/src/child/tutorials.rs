//! The execution of tutorial benchmarks, one after another.

use super::{
    Context, JobFailure, Reporter, named_once,
    placement::{Placement, ReservedGpu},
    worse,
};
use crate::{
    error::RunError,
    measure::Limits,
    protocol::{
        Backend, BackendChoice, Found, Report, TutorialReport, TutorialsJob,
        exit_code::{FAILED, INTERRUPTED, REFUSED},
    },
    tutorials::{self, CASES, Case, How, Places},
};

/// The number of GPUs for the cases that use several.
const GPUS: usize = 2;
/// The cases that use several GPUs.
const ON_SEVERAL: [&str; 2] = ["k2", "k5"];

pub(super) fn run(
    job: &TutorialsJob,
    context: &Context<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
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
    let title = if job.cases.is_empty() {
        "tutorials".to_owned()
    } else {
        format!("tutorials {}", job.cases.join(", "))
    };
    let mut frameworks = context.frameworks()?;
    placement.begin(title, tutorials::steps(&cases, only).count(), report);
    if let Some(frameworks) = &frameworks {
        report(frameworks.said());
    }
    let places = Places {
        gpu: gpu.as_ref(),
        cpu: &placement.cpu,
        only,
    };
    let how = How {
        limits: Limits::new(job.quick),
        quick: job.quick,
    };
    let mut worst = 0;
    let mut count_and_report = |new: Report| {
        if let Report::Tutorial { tutorial } = &new {
            worst = worse(worst, code(tutorial));
        }
        report(new);
    };
    match tutorials::run(
        &cases,
        &places,
        how,
        frameworks.as_mut(),
        &mut count_and_report,
        context.interrupted,
    ) {
        _ if context.is_interrupted() => Ok(INTERRUPTED),
        // The error was reported for the variant that it ended.
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

fn named(ids: &[String]) -> Result<Vec<&'static Case>, JobFailure> {
    let there_are = format!(
        "there are {}",
        CASES
            .iter()
            .map(|case| case.id)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let ids: Vec<_> = ids.iter().map(|id| id.to_lowercase()).collect();
    named_once(&ids, CASES, |case| case.id, "case", &there_are)
}
