//! Demonstrations of running out of memory that are safe but real. They are for people who want to
//! understand an out-of-memory error, or to see how their dashboards show it.
//!
//! - A [`Scenario`] is one demonstration. All of them are in `scenarios`.
//! - [`ScenarioContext`] is the environment of a scenario, which enforces the rules: a reserve
//!   always stays free for others, the real error comes from requesting more memory than exists and
//!   never from using up the card, and all memory is released when a scenario ends in any way.
//! - `device` is the memory in use: that of a GPU (`on_cuda`), or a model on the CPU that follows
//!   the same rules (`model`).
//! - [`second`] is the second process, for scenarios that need one.

pub mod second;

mod device;
mod model;
mod on_cuda;
mod scenario;
mod scenario_context;
mod scenarios;
mod stop;

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use self::{device::Device, model::Model, on_cuda::OnCuda};
pub use self::{scenario::Scenario, scenarios::all};
pub(crate) use self::{scenario_context::ScenarioContext, scenarios::find, stop::Stop};
#[cfg(test)]
use crate::protocol::MemoryLevel;
use crate::{
    bench::Place,
    protocol::{Phase, Report, Topic},
};

/// The settings of a demonstration in addition to the job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    /// The maximum memory to use at a time, if that is less than the reserve allows.
    pub(crate) cap_bytes: Option<u64>,
    /// The command that starts the second process, see [`second`]. The UUID of the device is added
    /// as its last argument. Without a command, scenarios that need another process fail.
    pub(crate) second: Vec<OsString>,
}

/// Runs a scenario, reports its progress, releases all memory, and returns the exit code. Setting
/// `interrupted` releases the memory at once.
pub(crate) fn run(
    scenario: &Scenario,
    hold_seconds: f64,
    place: &Place<'_>,
    setting: &Setting,
    say: &mut dyn FnMut(Report),
    interrupted: &AtomicBool,
) -> u8 {
    let (backend, id) = (place.backend(), || scenario.id.to_owned());
    let shown = open(place, setting).and_then(|device| {
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
        show(scenario, &mut context)
    });
    match shown {
        Ok(()) => 0,
        // The interruption may be the reason for the error.
        Err(_) if interrupted.load(Relaxed) => Stop::Interrupted.exit_code(),
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

fn open<'a>(place: &'a Place<'_>, setting: &'a Setting) -> Result<Box<dyn Device + 'a>, Stop> {
    Ok(match place {
        Place::Cuda(gpu) => Box::new(OnCuda::new(gpu, &setting.second)?),
        Place::Cpu(_) => Box::new(Model::new()),
    })
}

/// Runs a scenario, and then reports the cause, the remedies, and the proof that all memory was
/// released.
fn show(scenario: &Scenario, context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    context.phase(Phase::Preparing);
    if context.device.is_model() {
        context.step("This is a model of GPU memory with the same rules. No GPU is used.");
    }
    context.device.settle();
    let before = context.free()?;
    let shown = (scenario.run)(context);
    context.phase(Phase::GivingBack);
    let proof = context.proof(before.free_bytes);
    shown?;
    context.say(Topic::Cause, scenario.cause);
    for fix in scenario.fixes {
        context.say(Topic::Fix, *fix);
    }
    context.say(Topic::Lesson, scenario.lesson);
    context.say(Topic::Proof, proof?);
    Ok(())
}

#[cfg(test)]
mod tests;
