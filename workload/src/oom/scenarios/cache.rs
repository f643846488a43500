//! A pool that keeps memory after it was freed.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

pub(super) static CACHE: Scenario = Scenario {
    id: "cache",
    title: "an allocator cache that keeps freed memory",
    shows: "Frees all arrays of a program, yet the device stays as full as before: the memory pool keeps freed memory until \
        it is trimmed.",
    cause: "Allocations from the driver are slow, so that frameworks cache freed memory for reuse. nvidia-smi and other \
        programs see it as used.",
    fixes: &[
        "PyTorch: torch.cuda.empty_cache() releases the cache; memory_reserved() minus memory_allocated() is its size.",
        "CuPy: cupy.get_default_memory_pool().free_all_blocks().",
        "JAX: XLA_PYTHON_CLIENT_ALLOCATOR=platform caches nothing, and is slow; XLA_PYTHON_CLIENT_MEM_FRACTION limits the pool.",
        "CUDA: cuMemPoolTrimTo, or a release threshold with cuMemPoolSetAttribute.",
    ],
    lesson: "Memory that is used on the device is not necessarily used by arrays. A cache must release it before other programs can use it.",
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
    context.step(format!(
        "An array of {} is allocated from a pool: {free} of the device are free.",
        gib(bytes)
    ));
    context.pause()?;
    drop(array);
    pool.finish()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let [used, kept] = [size.used_bytes, size.reserved_bytes].map(gib);
    context.step(format!(
        "The array is freed: {used} are in use, the pool keeps {kept}, and still {free} are free."
    ));
    if size.used_bytes > 0 || size.reserved_bytes < bytes {
        return Err(Stop::NotShown(format!(
            "the pool keeps {kept} with {used} in use"
        )));
    }
    context.hold()?;
    pool.trim()?;
    let size = pool.size()?;
    let free = gib(context.free()?.free_bytes);
    let kept = gib(size.reserved_bytes);
    context.step(format!(
        "The pool is trimmed: it keeps {kept}, and {free} are free, for anybody."
    ));
    if size.reserved_bytes >= bytes {
        return Err(Stop::NotShown(format!("the pool still keeps {kept}")));
    }
    context.pause()
}
