//! The arguments that several commands share.

use std::{ffi::OsString, sync::Arc, time::Duration};

use gpumon_probe::source::{BadSource, Source, SourceChoice, SourceError};

/// Where readings come from; the same for every command.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SourceArgs {
    /// auto, nvml, sim, sim:N for N simulated GPUs (1 to 64), or sim:FILE.toml for a scenario
    #[arg(long, global = true, env = "GPUMON_SOURCE", default_value = "auto", value_name = "SOURCE", value_parser = parse_source)]
    pub(crate) source: SourceChoice,

    /// NVIDIA's management library, where the loader does not find libnvidia-ml.so.1 by itself
    #[arg(long, global = true, env = "GPUMON_NVML_LIB", value_name = "PATH")]
    pub(crate) nvml_lib: Option<OsString>,
}

impl SourceArgs {
    pub(crate) fn open(&self) -> Result<Arc<dyn Source>, SourceError> {
        self.source.open(self.library()).map(Arc::from)
    }

    /// The same, to be typed to another gpumon.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![OsString::from("--source"), self.source.to_string().into()];
        if let Some(library) = self.library() {
            arguments.extend(["--nvml-lib".into(), library]);
        }
        arguments
    }

    /// The library that was named. A variable that is set to nothing names none, and a file in this folder is meant
    /// where there is one, which the loader would not look for.
    fn library(&self) -> Option<OsString> {
        let named = self.nvml_lib.as_ref().filter(|name| !name.is_empty())?;
        let here = std::path::absolute(named).ok().filter(|path| path.is_file());
        Some(here.map_or_else(|| named.clone(), Into::into))
    }
}

/// A variable that is set to nothing asks for nothing special.
fn parse_source(text: &str) -> Result<SourceChoice, BadSource> {
    if text.is_empty() { Ok(SourceChoice::Auto) } else { text.parse() }
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
