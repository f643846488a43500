//! A staircase to the limit.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// So many steps.
const STEPS: u64 = 8;

pub(super) static FILL: Scenario = Scenario {
    id: "fill",
    title: "a staircase to the limit",
    shows: "Memory is taken step by step until only what stays free for others is left; the next request fails.",
    cause: "Nothing warns before the last allocation. All of them together filled the device, and the one that fails need \
        not be the one that is too much.",
    cures: &[
        "Look at what fills it, and not at what failed: weights, optimizer, activations, caches.",
        "PyTorch: torch.cuda.memory_summary() tells what holds it; torch.utils.checkpoint computes activations again \
         instead of keeping them.",
        "JAX takes 75 % of the device at its start: XLA_PYTHON_CLIENT_MEM_FRACTION=.50 takes less, \
         XLA_PYTHON_CLIENT_PREALLOCATE=false only what it needs.",
        "TensorFlow takes nearly all: tf.config.experimental.set_memory_growth(gpu, True) takes what it needs.",
    ],
    lesson: "An out-of-memory is a sum. Whoever watches the sum sees it come.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let usable_bytes = context.usable_bytes()?;
    let step_bytes = context.part_of_usable(STEPS)?;
    let (step, reserve) = (gib(step_bytes), gib(context.reserve_bytes()));
    context.step(format!(
        "{} may be taken, in {STEPS} steps of {step}. {reserve} stay free for others.",
        gib(usable_bytes)
    ));
    context.phase(Phase::Measuring);
    let mut held = Vec::new();
    for _ in 0..STEPS {
        // Others may have taken some meanwhile, which is theirs.
        match context.take(step_bytes) {
            Err(Stop::NoRoom { .. }) => {
                context.step("Another program has taken memory meanwhile: the staircase ends here.");
                break;
            }
            taken => held.push(taken?),
        }
        let memory = context.free()?;
        context.step(format!("Step {}: {} free of {}.", held.len(), gib(memory.free_bytes), gib(memory.total_bytes)));
        context.pause()?;
    }
    let memory = context.free()?;
    // With something of it held here, so much cannot be free.
    let refusal = context.refused(memory.total_bytes)?;
    let [asked, free] = [memory.total_bytes, memory.free_bytes].map(gib);
    context.step(format!("One more request, for {asked}, while {free} are free. Refused: {refusal}."));
    context.hold()
}
