//! The execution of tutorial benchmarks, one after another.

use super::{
    JobContext, JobFailure, Reporter,
    placement::{Placement, ReservedGpu},
    select_items, worse_code,
};
use crate::{
    error::RunError,
    measure::MeasureLimits,
    protocol::{
        Backend, BackendChoice, Report, TutorialReport, TutorialsJob, VariantOutcome,
        report::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_REFUSED},
    },
    tutorials::{self, CASES, Case, RunOptions, TutorialPlaces},
};

/// The number of GPUs that cases for several GPUs use.
const GPU_COUNT: usize = 2;
/// The cases that use several GPUs.
const MULTI_GPU_CASES: [&str; 2] = ["k2", "k5"];

pub(super) fn run_tutorials(
    job: &TutorialsJob,
    context: &JobContext<'_>,
    report: &mut Reporter<'_>,
) -> Result<u8, JobFailure> {
    let mut cases = find_cases(&job.cases)?;
    let mut placement = Placement::reserve_gpus(&job.place, false, context.driver)?;
    let is_several = |case: &Case| MULTI_GPU_CASES.contains(&case.id);
    if cases.iter().any(|case| is_several(case))
        && let Err(error) = placement.reserve_neighbor_gpus(GPU_COUNT, &job.place, context.driver)
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
    placement.report_start(
        title,
        tutorials::list_variants_on_backend(&cases, only).count(),
        report,
    );
    if let Some(frameworks) = &frameworks {
        report(frameworks.installed_report());
    }
    let places = TutorialPlaces {
        gpu: gpu.as_ref(),
        cpu: &placement.cpu,
        only,
    };
    let how = RunOptions {
        limits: MeasureLimits::new(job.quick),
        quick: job.quick,
    };
    let mut worst = 0;
    let mut count_and_report = |new: Report| {
        if let Report::Tutorial { tutorial } = &new {
            worst = worse_code(worst, exit_code_of(tutorial));
        }
        report(new);
    };
    match tutorials::run_cases(
        &cases,
        &places,
        how,
        frameworks.as_mut(),
        &mut count_and_report,
        context.interrupted,
    ) {
        _ if context.is_interrupted() => Ok(EXIT_INTERRUPTED),
        // The error was already reported for the variant in which it occurred.
        Err(RunError::Cuda(_)) => Ok(EXIT_FAILED),
        Err(error) => Err(JobFailure::general_error(error)),
        Ok(()) => Ok(worst),
    }
}

fn exit_code_of(tutorial: &TutorialReport) -> u8 {
    match &tutorial.found {
        _ if tutorial.has_wrong_result() => EXIT_FAILED,
        VariantOutcome::Failed { refused: true, .. } => EXIT_REFUSED,
        VariantOutcome::Failed { .. } => EXIT_FAILED,
        _ => 0,
    }
}

fn find_cases(ids: &[String]) -> Result<Vec<&'static Case>, JobFailure> {
    let there_are = format!(
        "use one of {}",
        CASES
            .iter()
            .map(|case| case.id)
            .collect::<Vec<_>>()
            .join(", ")
    );
    let ids: Vec<_> = ids.iter().map(|id| id.to_lowercase()).collect();
    select_items(&ids, CASES, |case| case.id, "case", &there_are)
}
