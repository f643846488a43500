//! Messages between the worker process and the process that started it: a [`Job`] in one direction,
//! and a [`Line`] for each [`Report`] in the other. Both are JSON, and this crate has their only
//! definitions.
//!
//! - [`job`] defines requests, [`report`] progress reports, and [`exit_code`] exit codes.
//! - [`outcome`], [`tutorial`] and [`check`] define results of a step, [`framework_run`] results of
//!   frameworks, and [`load`] the driver's readings meanwhile.
//! - [`vocabulary`] defines the terms that they share.
//!
//! The crate depends on the probe's model, and not on the runner. It is a separate crate so that it
//! is optimized for size, while the runner is optimized for speed.

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
    check::{Check, Unit, Verdict},
    framework_run::FrameworkRun,
    job::{
        Amount, BackendChoice, BenchJob, BenchWork, BurnJob, Job, OomJob, SelftestJob,
        TutorialsJob, Where,
    },
    load::{Load, OtherProcesses},
    outcome::{
        DeviceName, Environment, KernelUse, Outcome, Rate, Roofline, Stopped, Times, Verification,
    },
    report::{Line, MemoryLevel, NotAReport, Phase, Report, Topic},
    tutorial::{Found, FrameworkTime, TutorialReport},
    vocabulary::{Backend, Bound, Cost, Dtype, Engine, Extent, Shape},
};
