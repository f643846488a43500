//! A pool that keeps memory after it was freed.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

pub(super) static CACHE: Scenario = Scenario {
    id: "cache",
    title: "a cache that keeps what was freed",
    shows: "All of a program's arrays are freed, and the device is as full as before: its pool keeps the memory until it is \
        trimmed.",
    cause: "Asking the driver is slow, so that frameworks keep what was freed for the next time. To nvidia-smi, and to every \
        other program, it is taken.",
    cures: &[
        "PyTorch: torch.cuda.empty_cache() gives it back; memory_reserved() minus memory_allocated() is what it keeps.",
        "CuPy: cupy.get_default_memory_pool().free_all_blocks().",
        "JAX: XLA_PYTHON_CLIENT_ALLOCATOR=platform keeps nothing, and is slow; XLA_PYTHON_CLIENT_MEM_FRACTION keeps less.",
        "CUDA: cuMemPoolTrimTo, or a release threshold with cuMemPoolSetAttribute.",
    ],
    lesson: "Used on the device is not used by arrays. Before another program gets memory, a cache has to let go of it.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    // The pool takes whole pieces, for which the other half has room.
    let bytes = context.part_of_usable(2)?;
    context.phase(Phase::Measuring);
    let pool = context.device.pool(u64::MAX)?;
    context.make_sure_of(bytes)?;
    let array = pool.allocate(bytes)?;
    pool.finish()?;
    context.leave_enough()?;
    let free = gib(context.free()?.free_bytes);
    context.step(format!("An array of {} from a pool: {free} of the device are free.", gib(bytes)));
    context.pause()?;
    drop(array);
    pool.finish()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let [used, kept] = [size.used_bytes, size.reserved_bytes].map(gib);
    context.step(format!("The array is freed: {used} are in use, the pool keeps {kept}, and still {free} are free."));
    if size.used_bytes > 0 || size.reserved_bytes < bytes {
        return Err(Stop::NotShown(format!("the pool keeps {kept} with {used} in use")));
    }
    context.hold()?;
    pool.trim()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let kept = gib(size.reserved_bytes);
    context.step(format!("The pool is trimmed: it keeps {kept}, and {free} are free, for anybody."));
    if size.reserved_bytes >= bytes {
        return Err(Stop::NotShown(format!("the pool still keeps {kept}")));
    }
    context.pause()
}
