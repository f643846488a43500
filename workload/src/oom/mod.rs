//! Memory that runs out, shown safely and as it really is: demonstrations for people who want to
//! understand an out-of-memory, or to see what it looks like in their dashboard.
//!
//! - A [`Scenario`] is one demonstration; [`all`] has them, a file each in `scenarios`.
//! - [`ScenarioContext`] is what a scenario stands on. It keeps to the rules: a reserve stays free
//!   for others at all times, the real error comes from asking for more than there is, never from
//!   draining the card, and everything is given back when a scenario ends, however it ends.
//! - `device` is the memory that it is shown on: a GPU's (`on_cuda`), or a model of one that keeps
//!   the same accounts (`model`), on the CPU.
//! - [`second`] is the other process, where one does not do.

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

/// What a demonstration is given beside the job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting {
    /// As much as it may hold at a time, where that is less than what the reserve leaves.
    pub(crate) cap_bytes: Option<u64>,
    /// The program, with arguments, that works as the other process: it calls [`second::work`] with
    /// the UUID of the device, which is added to them. Without one, what needs another process
    /// fails.
    pub(crate) second: Vec<OsString>,
}

/// Shows a scenario, reports what happens, gives everything back, and returns the exit code.
/// Setting `interrupted` frees the memory at once.
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
        // Whoever interrupts may well be the reason why something failed.
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

/// The scenario, then why it was so, what to do about it, and the proof that nothing is left.
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
