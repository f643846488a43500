//! An asynchronous free: the memory is free once the stream has reached it.

use std::time::{Duration, Instant};

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// As long as the stream is kept busy at most: long enough to be seen, and no display stands still for longer.
const BUSY: Duration = Duration::from_secs(1);

pub(super) static ASYNC: Scenario = Scenario {
    id: "async",
    title: "asynchronous free",
    shows: "Frees memory behind running work in a stream. The call returns at once; the memory is free when the work is done.",
    cause: "cuMemFreeAsync, and every framework that uses it, frees in stream order. Until the device reaches that point, \
        earlier work may still read the memory.",
    fixes: &[
        "Synchronize the stream before you read free memory, or before another program needs it: torch.cuda.synchronize(), \
         cupy.cuda.Stream.null.synchronize(), jax.block_until_ready(x).",
        "Within the same stream no action is needed: the next allocation follows the free, and reuses the memory.",
        "PyTorch: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync frees in stream order; tensors that another stream uses need \
         tensor.record_stream(stream).",
    ],
    lesson: "The host runs ahead of the device: memory that the host has freed becomes free on the device later.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let bytes = context.part_of_usable(4)?;
    let busy = context.hold_time().min(BUSY);
    context.phase(Phase::Measuring);
    let pool = context.device.pool(0)?;
    let before_bytes = context.free()?.free_bytes;
    context.make_sure_of(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.finish()?;
    context.leave_enough()?;
    let taken_bytes = context.free()?.free_bytes;
    let free = gib(taken_bytes);
    context.step(format!(
        "An array of {}, and {:.1} s of work in the same stream: {free} are free.",
        gib(bytes),
        busy.as_secs_f64()
    ));
    pool.keep_busy(busy)?;
    let begun = Instant::now();
    drop(array);
    let call_us = begun.elapsed().as_secs_f64() * 1e6;
    // In the middle of the work.
    context.wait(busy / 2)?;
    let during_bytes = context.free()?.free_bytes;
    context.step(format!(
        "The free returns after {call_us:.0} us. While the work runs, {} are free.",
        gib(during_bytes)
    ));
    pool.finish()?;
    let end_bytes = context.free()?.free_bytes;
    let ms = begun.elapsed().as_millis();
    context.step(format!(
        "The stream completes {ms} ms after the call: {} are free.",
        gib(end_bytes)
    ));
    // Others may move some meanwhile, and pools have pieces: by half of it one sees which it was.
    if during_bytes > taken_bytes + bytes / 2 {
        return Err(Stop::NotShown(
            "the memory was free before the work was done".to_owned(),
        ));
    }
    if end_bytes + bytes / 2 < before_bytes {
        return Err(Stop::NotShown(
            "the memory was not free when the work was done".to_owned(),
        ));
    }
    context.pause()
}
