//! `gpumon work`: the worker process. `gpumon_workload::child` runs the job; this module provides
//! its arguments and the driver's readings.

use std::{ops::ControlFlow, path::PathBuf, sync::Arc, time::Duration};

use anyhow::anyhow;
use gpumon_probe::{
    model::{Gpu, GpuSample, Record},
    owner::CommandLines,
    sampler::{self, Options},
    vendor::ReadDepth,
};
use gpumon_workload::child::{self, JobFailure, ReadDriver};

use crate::{
    exit::Failure,
    options::{SourceArgs, options_in_environment},
};

/// Run one job of the workload runner, and report its progress, one JSON object per line
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Job as JSON; `-` for standard input
    job: String,

    /// PID of the parent; exit at once if the parent has another PID
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,

    /// Python interpreter whose frameworks run for comparison
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

pub(crate) fn run(source: &SourceArgs, args: &WorkArgs) -> Result<(), Failure> {
    source.source.check()?;
    let driver: Arc<dyn ReadDriver> = Arc::new(Driver(source.clone()));
    match child::run(&args.job, args.parent, args.python.as_deref(), &driver) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::reported(code)),
        Err(JobFailure { message, code }) => Err(Failure::with_code(anyhow!(message), code)),
    }
}

struct Driver(SourceArgs);

impl ReadDriver for Driver {
    fn list_gpus(&self) -> Vec<Gpu> {
        let interval = Duration::from_secs(1);
        let options = Options {
            depth: ReadDepth::OneShot,
            ..Options::new(interval, CommandLines::Own)
        };
        let source = self.0.open();
        let read = source.and_then(|source| sampler::once(&source, &options));
        read.map(|read| read.inventory.gpus).unwrap_or_default()
    }

    fn read(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    ) {
        let options = Options {
            depth,
            ..options_in_environment(interval, CommandLines::Own)
        };
        let on_record = |record: &Record| match record {
            Record::Sample(sample) => on_sample(&sample.gpus),
            _ => ControlFlow::Continue(()),
        };
        // Without readings, the job continues; `gpumon doctor` reports why they are missing.
        let _ = self
            .0
            .open()
            .and_then(|source| sampler::run(&source, &options, on_record));
    }
}
