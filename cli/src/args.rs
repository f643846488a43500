//! What can be typed. Each command's own arguments stand with the command, what several share in `options`.

use clap::{Parser, Subcommand};

use crate::{
    commands::{
        bench, burn, collect, completions, doctor, info, man, oom, pause, schema, seeds, selftest, serve, show, smi,
        top, wait, work,
    },
    options::SourceArgs,
};

macro_rules! exit_codes {
    () => {
        "Exit codes: 0 success, 1 error, 2 invalid argument, 4 permission denied, 6 no GPU, 9 driver not loaded, \
12 NVML library not found, 18 NVML library and driver versions differ"
    };
}

/// Monitors NVIDIA GPUs in JupyterLab, the browser and the terminal
///
/// Without a command, gpumon prints every GPU and its processes as a table.
#[derive(Debug, Parser)]
#[command(name = "gpumon", version, allow_negative_numbers = true, max_term_width = 100, after_help = exit_codes!(), after_long_help = NOTES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) show: show::ShowArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const NOTES: &str = concat!(
    "\
Examples:
  gpumon
      Show every GPU and its processes.
  gpumon --json | jq '.sample.gpus[].memory.free_bytes'
      Print the free memory of every GPU.
  gpumon --source sim:4
      Show four simulated GPUs.
  gpumon wait --free 20GiB -- python train.py
      Start training when a GPU has 20 GiB of free memory.

Environment:
  GPUMON_SOURCE  default of --source
  GPUMON_NVML_LIB  default of --nvml-lib
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  GPUMON_CONTROL  default of --control
  NO_COLOR  disables colors if set

",
    exit_codes!()
);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Collect(collect::CollectArgs),
    Serve(serve::ServeArgs),
    Doctor(doctor::DoctorArgs),
    Info(info::InfoArgs),
    Bench(bench::BenchArgs),
    Burn(burn::BurnArgs),
    #[command(hide = true)]
    Work(work::WorkArgs),
    Seeds(seeds::SeedsArgs),
    Oom(oom::OomArgs),
    Selftest(selftest::SelftestArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Schema(schema::SchemaArgs),
    Smi(smi::SmiArgs),
    Top(top::TopArgs),
    Wait(Box<wait::WaitArgs>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Collect(_) => "collect",
            Self::Serve(_) => "serve",
            Self::Doctor(_) => "doctor",
            Self::Info(_) => "info",
            Self::Bench(_) => "bench",
            Self::Burn(_) => "burn",
            Self::Work(_) => "work",
            Self::Seeds(_) => "seeds",
            Self::Oom(_) => "oom",
            Self::Selftest(_) => "selftest",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Schema(_) => "schema",
            Self::Smi(_) => "smi",
            Self::Top(_) => "top",
            Self::Wait(_) => "wait",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }
}
