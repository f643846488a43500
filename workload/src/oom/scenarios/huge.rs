//! One allocation that is larger than the device.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

pub(super) static HUGE: Scenario = Scenario {
    id: "huge",
    title: "one allocation that is too large",
    shows: "One request for more than the device has: the driver refuses it whole, and nothing else changes.",
    cause: "An allocation is granted whole or not at all. A matrix of 150,000 x 150,000 numbers of 64 bits takes 168 GiB, \
        which no setting makes fit.",
    cures: &[
        "Make it smaller: fp32 or bf16 instead of fp64 (NumPy's and CuPy's usual type), a smaller batch, or piece by piece.",
        "CuPy: cupy.zeros(shape, dtype=cupy.float32). PyTorch: smaller batches with gradient accumulation give the same \
         result, and torch.autocast takes half for activations.",
    ],
    lesson: "Reckon before you allocate: the product of the shape times the bytes of an element, against what is free.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    context.phase(Phase::Measuring);
    let memory = context.free()?;
    // More than there is, and not only than is free: nobody's memory is at stake, whatever is freed meanwhile.
    let needed_bytes = memory.total_bytes + memory.total_bytes / 8;
    let [needed, free, total] = [needed_bytes, memory.free_bytes, memory.total_bytes].map(gib);
    context.step(format!("Asks for {needed} at once. {free} of {total} are free."));
    context.pause()?;
    let refusal = context.refused(needed_bytes)?;
    context.step(format!("Refused: {refusal}."));
    let lacking = gib(needed_bytes.saturating_sub(memory.free_bytes));
    context
        .step(format!("Needed {needed}, free {free}, of {total} in all: {lacking} are lacking. The program lives on."));
    context.pause()
}
