//! One allocation that is larger than the device.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

pub(super) static HUGE: Scenario = Scenario {
    id: "huge",
    title: "one allocation that is too large",
    shows: "Requests more memory than the device has. The driver refuses the request, and nothing else changes.",
    cause: "An allocation succeeds completely or not at all. A matrix of 150,000 x 150,000 64-bit numbers takes 168 GiB; \
        no setting makes it fit.",
    fixes: &[
        "Reduce the size: fp32 or bf16 instead of fp64 (the default of NumPy and CuPy), a smaller batch, or processing in chunks.",
        "CuPy: cupy.zeros(shape, dtype=cupy.float32). PyTorch: smaller batches with gradient accumulation give the same \
         result, and torch.autocast halves the memory of activations.",
    ],
    lesson: "Before you allocate, compare the product of the shape and the bytes per element with the free memory.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    context.phase(Phase::Measuring);
    let memory = context.free()?;
    // More than there is, and not only than is free: nobody's memory is at stake, whatever is freed meanwhile.
    let needed_bytes = memory.total_bytes + memory.total_bytes / 8;
    let [needed, free, total] = [needed_bytes, memory.free_bytes, memory.total_bytes].map(gib);
    context.step(format!(
        "Requests {needed} at once. {free} of {total} are free."
    ));
    context.pause()?;
    let refusal = context.refused(needed_bytes)?;
    context.step(format!("Refused: {refusal}."));
    let lacking = gib(needed_bytes.saturating_sub(memory.free_bytes));
    context.step(format!(
        "Needed {needed}, free {free}, of {total} in total: {lacking} short. The program continues."
    ));
    context.pause()
}
