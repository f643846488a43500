//! Demonstrations of running out of memory that are safe but real. They are meant for people who
//! want to understand an out-of-memory error, or to see how their dashboards show one.
//!
//! - A [`Scenario`] is one demonstration. [`allocator_scenarios`] and [`limit_scenarios`] contain
//!   all of them.
//! - [`ScenarioContext`] is the environment of a scenario. It enforces the rules: a reserve always
//!   stays free for others; the real error is caused by requesting more memory than exists, never
//!   by filling the GPU's memory; and all memory is released when a scenario ends in any way.
//! - [`device`] is the memory that a scenario uses: that of a GPU, or a [`model`] on the CPU that
//!   follows the same rules.
//! - [`second_process`] is the second process, for scenarios that need one.

pub mod second_process;

mod allocator_scenarios;
mod device;
mod limit_scenarios;
mod model;
mod scenario;

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use self::{
    allocator_scenarios::{ASYNC, CACHE, FRAGMENT},
    device::{CudaDevice, DemoDevice},
    limit_scenarios::{CONTEND, FILL, HUGE, LEAK, NOT_MEMORY},
    model::ModelDevice,
};
#[cfg(test)]
use crate::protocol::MemoryLevel;
use crate::{
    bench::ExecutionPlace,
    protocol::{Phase, Report, Topic},
};

pub use self::scenario::Scenario;
pub(crate) use self::{device::DemoError, scenario::ScenarioContext};

/// All scenarios, in a suitable order for learning.
static SCENARIOS: [&Scenario; 8] = [
    &HUGE,
    &FILL,
    &LEAK,
    &FRAGMENT,
    &CACHE,
    &ASYNC,
    &CONTEND,
    &NOT_MEMORY,
];

/// The settings of a demonstration that are not part of the job.
#[derive(Debug, Clone, Default)]
pub(crate) struct DemoSettings {
    /// A limit for the memory in use at a time, in addition to the reserve; `None` if only the
    /// reserve limits the memory.
    pub(crate) cap_bytes: Option<u64>,
    /// The command that starts the second process (see [`second_process`]). The device's UUID is
    /// added as the last argument. If the command is empty, scenarios that need a second process
    /// fail.
    pub(crate) second: Vec<OsString>,
}

pub fn list_scenarios() -> &'static [&'static Scenario] {
    &SCENARIOS
}

pub(crate) fn find_scenario(id: &str) -> Option<&'static Scenario> {
    list_scenarios()
        .iter()
        .copied()
        .find(|scenario| scenario.id == id)
}

/// Runs a scenario, reports its progress, releases all memory, and returns the exit code. If
/// `interrupted` is set, the memory is released immediately.
pub(crate) fn run_scenario(
    scenario: &Scenario,
    hold_seconds: f64,
    place: &ExecutionPlace<'_>,
    setting: &DemoSettings,
    say: &mut dyn FnMut(Report),
    interrupted: &AtomicBool,
) -> u8 {
    let (backend, id) = (place.backend(), || scenario.id.to_owned());
    let shown = open_device(place, setting).and_then(|device| {
        say(Report::Begun {
            title: scenario.title.to_owned(),
            devices: vec![device.name()],
            steps: 1,
        });
        let mut context = ScenarioContext::new(
            device.as_ref(),
            setting.cap_bytes,
            hold_seconds,
            (scenario.id, backend),
            &mut *say,
            interrupted,
        )?;
        run_and_explain_scenario(scenario, &mut context)
    });
    match shown {
        Ok(()) => 0,
        // The error may have been caused by the interruption.
        Err(_) if interrupted.load(Relaxed) => DemoError::Interrupted.exit_code(),
        Err(error) => {
            let code = error.exit_code();
            say(Report::Failed {
                id: id(),
                backend,
                gpu: None,
                error: error.to_string(),
                code,
            });
            code
        }
    }
}

fn open_device<'a>(
    place: &'a ExecutionPlace<'_>,
    setting: &'a DemoSettings,
) -> Result<Box<dyn DemoDevice + 'a>, DemoError> {
    Ok(match place {
        ExecutionPlace::Cuda(gpu) => Box::new(CudaDevice::new(gpu, &setting.second)?),
        ExecutionPlace::Cpu(_) => Box::new(ModelDevice::new()),
    })
}

/// Runs a scenario. Then reports the cause of the error, the remedies, and the proof that all
/// memory was released.
fn run_and_explain_scenario(
    scenario: &Scenario,
    context: &mut ScenarioContext<'_>,
) -> Result<(), DemoError> {
    context.report_phase(Phase::Preparing);
    if context.device.is_model() {
        context.report_step(
            "This scenario runs on a model of GPU memory that follows the same rules as a GPU. No \
             GPU is used.",
        );
    }
    context.device.release_driver_memory();
    let before = context.read_free_memory()?;
    let shown = (scenario.run)(context);
    context.report_phase(Phase::GivingBack);
    let proof = context.wait_and_describe_release(before.free_bytes);
    shown?;
    context.report_sentence(Topic::Cause, scenario.cause);
    for fix in scenario.fixes {
        context.report_sentence(Topic::Fix, *fix);
    }
    context.report_sentence(Topic::Lesson, scenario.lesson);
    context.report_sentence(Topic::Proof, proof?);
    Ok(())
}

#[cfg(test)]
mod tests;
