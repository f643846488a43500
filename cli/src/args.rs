//! What can be typed. Each command's own arguments stand with the command.

use std::{ffi::OsString, sync::Arc, time::Duration};

use clap::{Parser, Subcommand};
use gpumon_probe::source::{Source, SourceChoice, SourceError};

use crate::commands::{collect, serve, show};

/// Shows what a GPU does: now, as a table. Commands collect samples and serve them.
#[derive(Debug, Parser)]
#[command(name = "gpumon", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    #[command(flatten)]
    pub(crate) show: show::ShowArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 bad argument, 4 no permission, 6 no GPU, 9 driver not loaded, \
12 no NVIDIA library, 18 library and driver do not match";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Collect(collect::CollectArgs),
    Serve(serve::ServeArgs),
}

/// Where readings come from; the same for every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SourceArgs {
    /// auto, nvml, sim, sim:N for N simulated GPUs (1 to 64), or sim:FILE.toml for a scenario
    #[arg(long, global = true, env = "GPUMON_SOURCE", default_value = "auto", value_name = "SOURCE")]
    pub(crate) source: SourceChoice,

    /// NVIDIA's management library, where the loader does not find libnvidia-ml.so.1 by itself
    #[arg(long, global = true, env = "GPUMON_NVML_LIB", value_name = "PATH")]
    pub(crate) nvml_lib: Option<OsString>,
}

impl SourceArgs {
    pub(crate) fn open(&self) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(self.nvml_lib.clone()).map(Arc::from)
    }

    /// The same, to be typed to another gpumon.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![OsString::from("--source"), self.source.to_string().into()];
        if let Some(library) = &self.nvml_lib {
            arguments.extend(["--nvml-lib".into(), library.clone()]);
        }
        arguments
    }
}

/// The time between samples; the same for every command that takes more than one.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct IntervalArgs {
    /// Time between samples in milliseconds, 100 to 60000
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u32).range(100..=60_000))]
    pub(crate) interval_ms: u32,
}

impl IntervalArgs {
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.interval_ms))
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
