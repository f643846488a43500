//! What crosses the pipe between the process that works and the one that started it: a [`Job`] one
//! way, a [`Line`] for each [`Report`] the other. Both are JSON, and these are their only
//! definitions.
//!
//! - [`job`] is what can be requested, [`report`] what is reported meanwhile, [`exit_code`] how it
//!   ends.
//! - [`outcome`], [`tutorial`] and [`check`] are results of a step, [`framework_run`] what a
//!   framework takes for it, [`load`] what the driver read beside them.
//! - [`vocabulary`] has the words that they share.
//!
//! It depends on the probe's model and on nothing of the runner: a crate of its own, which is
//! compiled for size, while the runner is compiled for speed.

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
