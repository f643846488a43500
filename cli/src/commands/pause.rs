//! `gpumon pause` and `gpumon resume`: make a running server release the GPUs and read them again.

use std::time::Duration;

use gpumon_server::frame::{CollectorState, CollectorStatus};

use crate::{
    exit::Result, local_server::ServerArgs, options::parse_time, terminal::output::print_raw,
};

/// Release the GPUs until `gpumon resume`, for a GPU reset or a MIG change
///
/// The running server ends its collector process, which releases the GPUs for `nvidia-smi
/// --gpu-reset`. Clients stay connected and show the pause. The state of the collector is printed
/// as JSON.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct PauseArgs {
    /// Resume automatically after this time, for example 30s, 10m or 2h, up to 7 days
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    time: Option<Duration>,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon pause --for 10m && sudo nvidia-smi --gpu-reset -i 0; gpumon resume
      Reset a GPU that a running server monitors. Monitoring resumes after ten minutes at the latest.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server or request refused, 2 invalid argument";

/// Resume monitoring after `gpumon pause`
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn pause(args: &PauseArgs) -> Result {
    let query = args
        .time
        .map(|time| format!("?for_ms={}", time.as_millis()))
        .unwrap_or_default();
    request_and_print_status(&args.server, &format!("/api/v1/pause{query}"))
}

pub(crate) fn resume(args: &ResumeArgs) -> Result {
    request_and_print_status(&args.server, "/api/v1/resume")
}

fn request_and_print_status(server: &ServerArgs, target: &str) -> Result {
    let reply = server.request("POST", target, "", "cannot be paused")?;
    let status: CollectorStatus = reply.parse()?;
    if let (CollectorState::Paused, Some(message)) = (status.state, &status.message) {
        crate::exit::print_message(message);
    }
    // Printing the raw reply keeps fields that a newer server adds.
    print_raw(&format!("{}\n", reply.body.trim()))
}
