//! Fills the device step by step.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

const STEPS: u64 = 8;

pub(super) static FILL: Scenario = Scenario {
    id: "fill",
    title: "stepwise filling up to the limit",
    shows: "Allocates memory step by step until only the reserve for other processes is free. The next request fails.",
    cause: "All allocations together fill the device, without a warning before the last one. The request that fails is \
        not necessarily the largest consumer.",
    fixes: &[
        "Find what fills the memory rather than what failed: weights, optimizer states, activations, caches.",
        "PyTorch: torch.cuda.memory_summary() lists what holds memory; torch.utils.checkpoint recomputes activations \
         instead of storing them.",
        "JAX preallocates 75 % of the device. XLA_PYTHON_CLIENT_MEM_FRACTION=.50 preallocates less, \
         XLA_PYTHON_CLIENT_PREALLOCATE=false allocates on demand.",
        "TensorFlow allocates nearly all memory. tf.config.experimental.set_memory_growth(gpu, True) allocates on demand.",
    ],
    lesson: "Out-of-memory is the sum of all allocations. Monitor total memory use to see it before it happens.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let usable_bytes = context.usable_bytes()?;
    let step_bytes = context.part_of_usable(STEPS)?;
    let (step, reserve) = (gib(step_bytes), gib(context.reserve_bytes()));
    context.step(format!(
        "{} can be allocated, in {STEPS} steps of {step}. {reserve} stay free for others.",
        gib(usable_bytes)
    ));
    context.phase(Phase::Measuring);
    let mut held = Vec::new();
    for _ in 0..STEPS {
        // Others may have taken some meanwhile, which is theirs.
        match context.take(step_bytes) {
            Err(Stop::NoRoom { .. }) => {
                context
                    .step("Another program has allocated memory meanwhile: no further step fits.");
                break;
            }
            taken => held.push(taken?),
        }
        let memory = context.free()?;
        context.step(format!(
            "Step {}: {} free of {}.",
            held.len(),
            gib(memory.free_bytes),
            gib(memory.total_bytes)
        ));
        context.pause()?;
    }
    let memory = context.free()?;
    // With something of it held here, so much cannot be free.
    let refusal = context.refused(memory.total_bytes)?;
    let [asked, free] = [memory.total_bytes, memory.free_bytes].map(gib);
    context.step(format!(
        "One more request for {asked}, with {free} free. Refused: {refusal}."
    ));
    context.hold()
}
