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
        "Exit codes: 0 done, 1 failed, 2 bad argument, 4 no permission, 6 no GPU, 9 driver not loaded, \
12 no NVIDIA library, 18 library and driver do not match"
    };
}

/// Shows what a GPU does: now, as a table. Commands collect samples and serve them.
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
      Every GPU and who is on it, now.
  gpumon --json | jq '.sample.gpus[].memory.free_bytes'
      The same for programs.
  gpumon --source sim:4
      Four simulated GPUs, on a machine without any.
  gpumon wait --free 20GiB -- python train.py
      Train as soon as a GPU has 20 GiB to spare.

Environment:
  GPUMON_SOURCE  as --source
  GPUMON_NVML_LIB  as --nvml-lib
  GPUMON_LIBCUDA  CUDA's library for info, bench, seeds, burn, oom and selftest, where the loader does not find libcuda.so.1
  GPUMON_CONTROL  local socket of the server that is asked
  NO_COLOR  set to anything, no colours

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
    /// As it is typed.
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
