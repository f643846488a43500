//! Scenarios about requests that the device refuses: too large, on a full device, from another
//! process, and errors that only look like out-of-memory.

use std::time::Duration;

use crate::{
    cuda::CudaError,
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// The value of `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: i32 = 1;
/// The value of `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
/// The largest possible block, and one for which the registers are enough.
const LARGE_BLOCK: u32 = 1024;
const SMALL_BLOCK: u32 = 512;

/// The memory that the kernel needs, with room to spare.
const LITTLE_BYTES: u64 = 4 << 20;

pub(super) static NOT_MEMORY: Scenario = Scenario {
    id: "not-memory",
    title: "errors that only look like out-of-memory",
    shows: "Two errors that are mistaken for out-of-memory, on a device with free memory: an \
         allocation of 0 bytes, and a \
        block that needs more registers than a multiprocessor has.",
    cause: "\"Out of resources\" (701) concerns the registers and shared memory of a \
         multiprocessor, \"invalid value\" (1) an \
        argument. Neither depends on free device memory.",
    fixes: &[
        "701: launch smaller blocks, or limit the registers of the kernel: \
             __launch_bounds__(1024) in CUDA C, max_registers= \
         in Numba's @cuda.jit, num_warps= in Triton.",
        "1: check the arguments: an empty tensor, a size that has overflowed 32 bits, a block of \
             more than 1024 threads.",
        "Neither torch.cuda.empty_cache() nor a larger GPU helps.",
    ],
    lesson: "Check the error code: only code 2, CUDA_ERROR_OUT_OF_MEMORY, means out of memory.",
    run: show_other_errors,
};

fn show_other_errors(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
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

/// Returns the error if it has this code.
fn expect<T>(done: Result<T, CudaError>, code: i32) -> Result<CudaError, Stop> {
    match done {
        Err(error) if error.code == code => Ok(error),
        Err(error) => Err(error.into()),
        Ok(_) => Err(Stop::NotShown(format!(
            "what should fail with code {code} was done"
        ))),
    }
}

pub(super) static HUGE: Scenario = Scenario {
    id: "huge",
    title: "one allocation that is too large",
    shows: "Requests more memory than the device has. The driver refuses the request, and nothing \
         else changes.",
    cause: "An allocation succeeds completely or not at all. A matrix of 150,000 x 150,000 64-bit \
         numbers takes 168 GiB; \
        no setting makes it fit.",
    fixes: &[
        "Reduce the size: fp32 or bf16 instead of fp64 (the default of NumPy and CuPy), a smaller \
             batch, or processing in chunks.",
        "CuPy: cupy.zeros(shape, dtype=cupy.float32). PyTorch: smaller batches with gradient \
             accumulation give the same \
         result, and torch.autocast halves the memory of activations.",
    ],
    lesson: "Before you allocate, compare the product of the shape and the bytes per element with \
         the free memory.",
    run: request_too_much,
};

fn request_too_much(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    context.phase(Phase::Measuring);
    let memory = context.free()?;
    // The request exceeds the total memory, and not only the free memory, so it cannot succeed and
    // take memory from others.
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

const STEPS: u64 = 8;

pub(super) static FILL: Scenario = Scenario {
    id: "fill",
    title: "stepwise filling up to the limit",
    shows: "Allocates memory step by step until only the reserve for other processes is free. The \
         next request fails.",
    cause: "All allocations together fill the device, without a warning before the last one. The \
         request that fails is \
        not necessarily the largest consumer.",
    fixes: &[
        "Find what fills the memory rather than what failed: weights, optimizer states, \
             activations, caches.",
        "PyTorch: torch.cuda.memory_summary() lists what holds memory; torch.utils.checkpoint \
             recomputes activations \
         instead of storing them.",
        "JAX preallocates 75 % of the device. XLA_PYTHON_CLIENT_MEM_FRACTION=.50 preallocates \
             less, \
         XLA_PYTHON_CLIENT_PREALLOCATE=false allocates on demand.",
        "TensorFlow allocates nearly all memory. tf.config.experimental.set_memory_growth(gpu, \
             True) allocates on demand.",
    ],
    lesson: "Out-of-memory is the sum of all allocations. Monitor total memory use to see it \
         before it happens.",
    run: fill_up,
};

fn fill_up(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
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
        // Another process may have allocated memory in the meantime.
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
    // The scenario itself uses some of the memory, so this much cannot be free.
    let refusal = context.refused(memory.total_bytes)?;
    let [asked, free] = [memory.total_bytes, memory.free_bytes].map(gib);
    context.step(format!(
        "One more request for {asked}, with {free} free. Refused: {refusal}."
    ));
    context.hold()
}

/// The number of iterations that fill the device.
const ROUNDS: u64 = 12;
/// The number of iterations before the forecast.
const SEEN: usize = 4;
/// The maximum relative error of the forecast.
const FORECAST_TOLERANCE: f64 = 0.5;

pub(super) static LEAK: Scenario = Scenario {
    id: "leak",
    title: "a memory leak with its forecast",
    shows: "A loop keeps more memory in every iteration. Its growth rate forecasts when the \
         device is full.",
    cause: "Each iteration keeps a reference to its data: a loss with its graph, an output in a \
         list, or the Out[] of old \
        notebook cells.",
    fixes: &[
        "PyTorch: total += loss.item() instead of total += loss, which keeps the graph of each \
             iteration; outputs.append(y.detach().cpu()); \
         with torch.no_grad() for inference.",
        "Notebooks: delete unused variables with del, run %reset out, and restart the kernel \
             after an error, whose \
         traceback keeps references.",
        "CuPy: del array, then cupy.get_default_memory_pool().free_all_blocks().",
    ],
    lesson: "Steady growth makes the time of the failure predictable: the panel of gpumon shows \
         this forecast.",
    run: leak_memory,
};

fn leak_memory(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let round_bytes = context.part_of_usable(ROUNDS)?;
    context.step(format!(
        "A loop that leaks {} per iteration.",
        gib(round_bytes)
    ));
    context.phase(Phase::Measuring);
    let begun = context.stopwatch();
    let begun_bytes = context.free()?.free_bytes;
    let (mut held, mut forecast) = (Vec::new(), None);
    while context.usable_bytes()? >= round_bytes {
        held.push(context.take(round_bytes)?);
        context.pause()?;
        if held.len() == SEEN {
            let elapsed = context.elapsed(&begun);
            let grown_bytes = begun_bytes.saturating_sub(context.free()?.free_bytes);
            let per_second = grown_bytes as f64 / elapsed.punctual_seconds();
            let left_seconds = context.usable_bytes()? as f64 / per_second;
            let grown = gib(grown_bytes);
            context.step(format!(
                "Memory grew by {grown} in {elapsed}. Forecast: full in {left_seconds:.1} s."
            ));
            forecast = Some((context.stopwatch(), left_seconds));
        }
    }
    let free = gib(context.free()?.free_bytes);
    let Some((forecast_at, expected)) = forecast else {
        return Err(Stop::NotShown(
            "the device was full before a forecast was possible".to_owned(),
        ));
    };
    let elapsed = context.elapsed(&forecast_at);
    context.step(format!(
        "Full after {} iterations and {elapsed}; the forecast was {expected:.1} s. {free} stay \
             free for others.",
        held.len()
    ));
    if (elapsed.punctual_seconds() - expected).abs() > (FORECAST_TOLERANCE * expected).max(1.0) {
        return Err(Stop::NotShown(format!(
            "the forecast was {expected:.1} s, and it took {elapsed}"
        )));
    }
    let refusal = context.refused(context.free()?.total_bytes)?;
    context.step(format!("The next allocation fails: {refusal}."));
    context.hold()
}

/// How often the answer of the other process is checked, and how many times at most. The process
/// has to start a driver.
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: u32 = 600;
/// The minimum amount by which the request exceeds the available memory.
const LEAST_BYTES: u64 = 2 << 20;

pub(super) static CONTEND: Scenario = Scenario {
    id: "contend",
    title: "two processes with memory for one",
    shows: "A second process requests memory that would fit on an empty device while a first \
         process holds most of it.",
    cause: "Processes share the memory of a device without coordination: each keeps what it \
         allocated until it frees it or \
        ends. An idle notebook still holds its memory.",
    fixes: &[
        "Find the process that holds the memory: gpumon shows each with its notebook or job. Shut \
             down idle kernels.",
        "gpumon wait --free 20GiB -- python train.py waits for free memory.",
        "Limit each process: torch.cuda.set_per_process_memory_fraction(0.4), \
             XLA_PYTHON_CLIENT_MEM_FRACTION=.40, TensorFlow's \
         memory_limit, or MIG, which partitions the GPU.",
    ],
    lesson: "The program that fails is often not the one that uses too much. The message states \
         the free memory, not which \
        process holds the rest.",
    run: contend_for_memory,
};

fn contend_for_memory(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let total_bytes = context.free()?.total_bytes;
    let usable_bytes = context.usable_bytes()?;
    let context_bytes = context.device.context_bytes()?;
    context.make_sure_of(2 * context_bytes + LEAST_BYTES)?;
    let own_bytes = (3 * context.part_of_usable(4)?).min(usable_bytes - context_bytes);
    context.phase(Phase::Measuring);
    let held = context.take(own_bytes)?;
    context.step(format!(
        "The first process holds {} of {}.",
        gib(own_bytes),
        gib(total_bytes)
    ));
    context.pause()?;
    let mut second = context.device.second()?;
    // This much memory cannot be free as long as the first process keeps its part.
    let impossible_bytes = total_bytes - own_bytes + LEAST_BYTES;
    let empty_bytes = usable_bytes.saturating_sub(context_bytes);
    let would_fit = impossible_bytes < empty_bytes;
    let needed_bytes = impossible_bytes + empty_bytes.saturating_sub(impossible_bytes) / 2;
    let subject = second.pid().map_or_else(
        || "The second".to_owned(),
        |pid| format!("The second process, {pid},"),
    );
    let answer = second.ask(needed_bytes, false, &mut await_answer(context))?;
    let refusal = match answer.refusal {
        Some(refusal) if answer.is_out_of_memory => refusal,
        Some(other) => return Err(Stop::Second(format!("failed otherwise: {other}"))),
        None => {
            return Err(Stop::NotShown(
                "the second process got what cannot have been there".to_owned(),
            ));
        }
    };
    let [needed, free] = [needed_bytes, answer.free_bytes].map(gib);
    context.step(format!(
        "{subject} needs {needed}, and finds {free} free. Refused: {refusal}."
    ));
    context.step("The first process is not affected.");
    context.hold()?;
    drop(held);
    if would_fit {
        let answer = second.ask(needed_bytes, true, &mut await_answer(context))?;
        let free = gib(answer.free_bytes);
        context.step(match answer.refusal {
            None => {
                format!(
                    "The first process frees its memory: now the second finds {free} free, \
                     and gets its {needed}."
                )
            }
            Some(refusal) => {
                format!(
                    "The first process frees its memory: the second finds {free} free: \
                     {refusal}."
                )
            }
        });
    }
    Ok(())
}

/// Returns a function that is called while the other process is waited for.
fn await_answer<'a>(context: &'a mut ScenarioContext<'_>) -> impl FnMut() -> Result<(), Stop> + 'a {
    let mut looks = 0;
    move || {
        looks += 1;
        if looks > PATIENCE {
            return Err(Stop::Second(format!(
                "did not answer within {} s",
                (LOOK * PATIENCE).as_secs()
            )));
        }
        context.wait(LOOK)
    }
}
