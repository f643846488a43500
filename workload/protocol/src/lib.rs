//! Messages between the worker process and the process that started it. A [`Job`] is sent to the
//! worker process, and a [`ReportLine`] is returned for each [`Report`]. Both are JSON, and they
//! are defined only in this crate.
//!
//! - [`job`] defines requests, and [`report`] progress reports and exit codes.
//! - [`outcome`] defines the results of a step, including those of other frameworks. [`readings`]
//!   defines the driver's readings during a step, and their comparison with known loads.
//! - [`vocabulary`] defines terms used in several of these modules.
//!
//! This crate depends on the probe's model, but not on the runner. It is a separate crate so that
//! it can be optimized for size, while the runner is optimized for speed.

pub mod job;
pub mod outcome;
pub mod readings;
pub mod report;
pub mod vocabulary;

pub use self::{
    job::{
        Amount, BackendChoice, BenchJob, BenchWork, BurnJob, Job, OomJob, SelftestJob,
        TutorialsJob, Where,
    },
    outcome::{
        DeviceName, Environment, FrameworkRun, FrameworkTime, KernelUse, MeasureEnd, Roofline,
        RunOutcome, Throughput, Times, TutorialReport, VariantOutcome, Verification,
    },
    readings::{Load, OtherProcesses, ReadingCheck, Unit, Verdict},
    report::{InvalidReport, MemoryLevel, Phase, Report, ReportLine, Topic},
    vocabulary::{Backend, Cost, Dtype, Engine, Extent, LimitingResource, Shape},
};
