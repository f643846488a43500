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

pub mod check;
pub mod exit_code;
pub mod framework_run;
pub mod job;
pub mod load;
pub mod outcome;
pub mod report;
pub mod tutorial;
pub mod vocabulary;

pub use self::{
    check::{ReadingCheck, Unit, Verdict},
    framework_run::FrameworkRun,
    job::{
        Amount, BackendChoice, BenchJob, BenchWork, BurnJob, Job, OomJob, SelftestJob,
        TutorialsJob, Where,
    },
    load::{Load, OtherProcesses},
    outcome::{
        DeviceName, Environment, KernelUse, MeasureEnd, Roofline, RunOutcome, Throughput, Times,
        Verification,
    },
    report::{InvalidReport, MemoryLevel, Phase, Report, ReportLine, Topic},
    tutorial::{FrameworkTime, TutorialReport, VariantOutcome},
    vocabulary::{Backend, Cost, Dtype, Engine, Extent, LimitingResource, Shape},
};
