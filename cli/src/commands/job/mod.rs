//! `gpumon job ID`: how well a job used its GPUs.

mod advice;
mod find;
mod measure;
mod report;

use gpumon_probe::model::now_ms;

pub(super) use self::{find::find, measure::Measured, report::as_json};
use crate::{exit::Failure, past::PastArgs, terminal::output::print_report};

/// Report how well a Slurm, PBS or LSF job, pod, notebook, container or service used its GPUs
///
/// ID is the ID of the Slurm, PBS or LSF job, the namespace and name or the UID of a pod, the path or the file name of a notebook, the ID of
/// a container, or the name of a service. For each GPU, the time, utilization, SM active and Tensor active, the share of
/// time in which nothing ran, peak memory, energy, and the share of time with reduced clocks are reported, as of the GPU:
/// what others did on it at the same time is part of them, and the report says who they were. A job is known for as long
/// as history is, also after it has ended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct JobArgs {
    /// Job: ID or name
    #[arg(value_name = "ID")]
    id: String,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon job 88123
      Report on a Slurm job, while it runs or after it has ended.
  gpumon job research/train-0
      Report on a pod.
  gpumon job train.ipynb --json
      Report on a notebook, as JSON.
  gpumon job $SLURM_JOB_ID >> report.txt
      At the end of a job script, keep the report.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 error or no server, 2 invalid argument or unknown job";

pub(crate) fn run(args: &JobArgs) -> Result<(), Failure> {
    let job = find(&args.id, &args.past)?;
    let measured = Measured::new(&job, &args.past)?;
    print_report(
        args.json,
        || as_json(&job, &measured),
        |terminal| report::draw(&job, &measured, now_ms(), terminal),
    )
}
