//! `gpumon work`: the worker process. `gpumon_workload::child` runs the job. This module provides
//! the job's arguments and the driver's readings.

use std::{ops::ControlFlow, path::PathBuf, sync::Arc, time::Duration};

use anyhow::anyhow;
use gpumon_probe::{
    model::{Gpu, GpuSample, Record},
    owner::CommandLines,
    sampler::{self, Options},
    vendor::ReadDepth,
};
use gpumon_workload::child::{self, DriverReader, JobFailure};

use crate::{
    exit::{Failure, Result},
    options::{SourceArgs, read_environment_options},
};

/// Run one job of the workload runner, and report its progress, one JSON object per line
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Job as JSON, or `-` to read it from standard input
    job: String,

    /// PID of the parent; exit immediately if the parent has another PID
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,

    /// Python interpreter whose frameworks run for comparison
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(crate) fn run(source: &SourceArgs, args: &WorkArgs) -> Result {
    source.source.check_scenario_file()?;
    let driver: Arc<dyn DriverReader> = Arc::new(SourceReader(source.clone()));
    match child::run_job(&args.job, args.parent, args.python.as_deref(), &driver) {
        Ok(code) => Failure::check_exit_code(code),
        Err(JobFailure { message, code }) => Err(Failure::with_code(anyhow!(message), code)),
    }
}

struct SourceReader(SourceArgs);

impl DriverReader for SourceReader {
    fn list_gpus(&self) -> Vec<Gpu> {
        let interval = Duration::from_secs(1);
        let options = Options {
            depth: ReadDepth::OneShot,
            ..Options::new(interval, CommandLines::Own)
        };
        let source = self.0.open();
        let read = source.and_then(|source| sampler::sample_once(&source, &options));
        read.map(|read| read.inventory.gpus).unwrap_or_default()
    }

    fn read_gpus(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    ) {
        let options = Options {
            depth,
            ..read_environment_options(interval, CommandLines::Own)
        };
        let on_record = |record: &Record| match record {
            Record::Sample(sample) => on_sample(&sample.gpus),
            _ => ControlFlow::Continue(()),
        };
        // An error is ignored, because the job also runs without readings. `gpumon doctor` reports
        // why readings are missing.
        let _ = self
            .0
            .open()
            .and_then(|source| sampler::run_sampler(&source, &options, on_record));
    }
}
