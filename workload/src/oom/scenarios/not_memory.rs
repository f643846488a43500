//! Errors that only look like out-of-memory.

use crate::{
    cuda::CudaError,
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: i32 = 1;
/// `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
/// A block as large as can be, and one for which the registers do.
const LARGE_BLOCK: u32 = 1024;
const SMALL_BLOCK: u32 = 512;

/// What the kernel needs, with room to spare.
const LITTLE_BYTES: u64 = 4 << 20;

pub(super) static NOT_MEMORY: Scenario = Scenario {
    id: "not-memory",
    title: "errors that only look like out-of-memory",
    shows: "Two errors that are mistaken for out-of-memory, on a device with free memory: an allocation of 0 bytes, and a \
        block that needs more registers than a multiprocessor has.",
    cause: "\"Out of resources\" (701) concerns the registers and shared memory of a multiprocessor, \"invalid value\" (1) an \
        argument. Neither depends on free device memory.",
    fixes: &[
        "701: launch smaller blocks, or limit the registers of the kernel: __launch_bounds__(1024) in CUDA C, max_registers= \
         in Numba's @cuda.jit, num_warps= in Triton.",
        "1: check the arguments: an empty tensor, a size that has overflowed 32 bits, a block of more than 1024 threads.",
        "Neither torch.cuda.empty_cache() nor a larger GPU helps.",
    ],
    lesson: "Check the error code: only code 2, CUDA_ERROR_OUT_OF_MEMORY, means out of memory.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    context.make_sure_of(LITTLE_BYTES)?;
    context.phase(Phase::Measuring);
    let free = gib(context.free()?.free_bytes);
    context.step(format!("{free} are free."));
    context.pause()?;
    let refusal = expect(context.device.allocate(0), INVALID_VALUE)?;
    context.step(format!("An allocation of 0 bytes: {refusal}."));
    context.pause()?;
    let refusal = expect(context.device.start(LARGE_BLOCK), LAUNCH_OUT_OF_RESOURCES)?;
    context.step(format!(
        "{LARGE_BLOCK} threads in a block, each with more than 64 registers: {refusal}."
    ));
    context.pause()?;
    context.device.start(SMALL_BLOCK)?;
    let free = gib(context.free()?.free_bytes);
    context.step(format!(
        "The same kernel with {SMALL_BLOCK} threads in a block runs. {free} are still free."
    ));
    context.pause()
}

/// The error, where it has this code.
fn expect<T>(done: Result<T, CudaError>, code: i32) -> Result<CudaError, Stop> {
    match done {
        Err(error) if error.code == code => Ok(error),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Stop::NotShown(format!(
            "what should fail with code {code} was done"
        ))),
    }
}
