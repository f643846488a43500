//! Messages between the worker process and the process that started it. A [`Job`] is sent to the
//! worker process, and a [`ReportLine`] is returned for each [`Report`]. Both are JSON, and they
//! are defined only in this crate.
//!
//! - [`job`] defines requests, [`report`] progress reports, and [`exit_code`] exit codes.
//! - [`outcome`], [`tutorial`] and [`check`] define the results of a step, [`framework_run`] the
//!   results of other frameworks, and [`load`] the driver's readings during a step.
//! - [`vocabulary`] defines terms used in several of these modules.
//!
//! This crate depends on the probe's model, but not on the runner. It is a separate crate so that
//! it can be optimized for size, while the runner is optimized for speed.

pub mod exit_code;
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
        DeviceName, Environment, KernelUse, MeasureEnd, Roofline, RunOutcome, Throughput, Times,
        Verification,
    },
    report::{InvalidReport, MemoryLevel, Phase, Report, ReportLine, Topic},
    vocabulary::{Backend, Cost, Dtype, Engine, Extent, LimitingResource, Shape},
};
pub use outcome::{FrameworkRun, FrameworkTime, TutorialReport, VariantOutcome};
pub use readings::{Load, OtherProcesses, ReadingCheck, Unit, Verdict};
