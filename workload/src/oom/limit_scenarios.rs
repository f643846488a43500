//! Scenarios about requests that the device refuses: a request that is too large, a request on a
//! full device, a request by a second process, and errors that only look like out-of-memory errors.

use std::time::Duration;

use crate::{
    cuda::CudaError,
    error::format_gib,
    oom::{DemoError, Scenario, ScenarioContext},
    protocol::Phase,
};

/// The value of `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: i32 = 1;
/// The value of `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
/// The maximum number of threads in a block. With so many threads, a multiprocessor has too few
/// registers for the kernel. With `SMALL_BLOCK` threads, it has enough.
const LARGE_BLOCK: u32 = 1024;
const SMALL_BLOCK: u32 = 512;

/// The memory in bytes that the kernel needs, rounded up generously.
const KERNEL_BYTES: u64 = 4 << 20;

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

fn show_other_errors(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    context.check_free_memory(KERNEL_BYTES)?;
    context.report_phase(Phase::Measuring);
    let free = format_gib(context.read_free_memory()?.free_bytes);
    context.report_step(format!("{free} are free."));
    context.pause_between_steps()?;
    let refusal = require_error_code(context.device.allocate(0), INVALID_VALUE)?;
    context.report_step(format!("An allocation of 0 bytes: {refusal}."));
    context.pause_between_steps()?;
    let refusal = require_error_code(
        context.device.launch_register_heavy_kernel(LARGE_BLOCK),
        LAUNCH_OUT_OF_RESOURCES,
    )?;
    context.report_step(format!(
        "{LARGE_BLOCK} threads in a block, each with more than 64 registers: {refusal}."
    ));
    context.pause_between_steps()?;
    context.device.launch_register_heavy_kernel(SMALL_BLOCK)?;
    let free = format_gib(context.read_free_memory()?.free_bytes);
    context.report_step(format!(
        "The same kernel with {SMALL_BLOCK} threads in a block runs. {free} are still free."
    ));
    context.pause_between_steps()
}

/// Returns the error if its code is `code`. Any other result is an error.
fn require_error_code<T>(done: Result<T, CudaError>, code: i32) -> Result<CudaError, DemoError> {
    match done {
        Err(error) if error.code == code => Ok(error),
        Err(error) => Err(error.into()),
        Ok(_) => Err(DemoError::NotShown(format!(
            "a call that should fail with code {code} succeeded"
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

fn request_too_much(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    context.report_phase(Phase::Measuring);
    let memory = context.read_free_memory()?;
    // The request exceeds the total memory, not only the free memory. It therefore cannot succeed
    // and take memory from other processes.
    let needed_bytes = memory.total_bytes + memory.total_bytes / 8;
    let [needed, free, total] =
        [needed_bytes, memory.free_bytes, memory.total_bytes].map(format_gib);
    context.report_step(format!(
        "Requests {needed} at once. {free} of {total} are free."
    ));
    context.pause_between_steps()?;
    let refusal = context.request_impossible_size(needed_bytes)?;
    context.report_step(format!("Refused: {refusal}."));
    let lacking = format_gib(needed_bytes.saturating_sub(memory.free_bytes));
    context.report_step(format!(
        "{needed} needed, but only {free} of {total} free: {lacking} short. The program continues."
    ));
    context.pause_between_steps()
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
    lesson: "The device runs out of memory because of the sum of all allocations. Monitor total \
     memory use to see it coming.",
    run: fill_device,
};

fn fill_device(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    let usable_bytes = context.usable_bytes()?;
    let step_bytes = context.usable_part(STEPS)?;
    let (step, reserve) = (format_gib(step_bytes), format_gib(context.reserve_bytes()));
    context.report_step(format!(
        "{} can be allocated, in {STEPS} steps of {step}. {reserve} stay free for others.",
        format_gib(usable_bytes)
    ));
    context.report_phase(Phase::Measuring);
    let mut held = Vec::new();
    for _ in 0..STEPS {
        // Another process may have allocated memory in the meantime.
        match context.allocate(step_bytes) {
            Err(DemoError::NoRoom { .. }) => {
                context.report_step(
                    "Another program has allocated memory in the meantime: no further step fits.",
                );
                break;
            }
            taken => held.push(taken?),
        }
        let memory = context.read_free_memory()?;
        context.report_step(format!(
            "Step {}: {} free of {}.",
            held.len(),
            format_gib(memory.free_bytes),
            format_gib(memory.total_bytes)
        ));
        context.pause_between_steps()?;
    }
    let memory = context.read_free_memory()?;
    // The scenario already uses some of the memory, so the total memory cannot be free.
    let refusal = context.request_impossible_size(memory.total_bytes)?;
    let [asked, free] = [memory.total_bytes, memory.free_bytes].map(format_gib);
    context.report_step(format!(
        "One more request for {asked}, with {free} free. Refused: {refusal}."
    ));
    context.hold_memory()
}

/// The number of iterations needed to fill the device.
const ROUNDS: u64 = 12;
/// The number of iterations after which the forecast is made.
const ROUNDS_BEFORE_FORECAST: usize = 4;
/// The maximum relative error of the forecast.
const FORECAST_TOLERANCE: f64 = 0.5;

pub(super) static LEAK: Scenario = Scenario {
    id: "leak",
    title: "a memory leak with its forecast",
    shows: "A loop keeps more memory in every iteration. The growth rate predicts when the \
     device will be full.",
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
    lesson: "Steady growth makes the time of the failure predictable: gpumon's panel shows this \
             forecast.",
    run: leak_memory,
};

fn leak_memory(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    let round_bytes = context.usable_part(ROUNDS)?;
    context.report_step(format!(
        "A loop that leaks {} per iteration.",
        format_gib(round_bytes)
    ));
    context.report_phase(Phase::Measuring);
    let begun = context.start_stopwatch();
    let begun_bytes = context.read_free_memory()?.free_bytes;
    let (mut held, mut forecast) = (Vec::new(), None);
    while context.usable_bytes()? >= round_bytes {
        held.push(context.allocate(round_bytes)?);
        context.pause_between_steps()?;
        if held.len() == ROUNDS_BEFORE_FORECAST {
            let elapsed = context.elapsed_since(&begun);
            let grown_bytes = begun_bytes.saturating_sub(context.read_free_memory()?.free_bytes);
            let per_second = grown_bytes as f64 / elapsed.seconds_without_delays();
            let left_seconds = context.usable_bytes()? as f64 / per_second;
            let grown = format_gib(grown_bytes);
            context.report_step(format!(
                "Memory grew by {grown} in {elapsed}. Forecast: full in {left_seconds:.1} s."
            ));
            forecast = Some((context.start_stopwatch(), left_seconds));
        }
    }
    let free = format_gib(context.read_free_memory()?.free_bytes);
    let Some((forecast_at, expected)) = forecast else {
        return Err(DemoError::NotShown(
            "the device was full before a forecast was possible".to_owned(),
        ));
    };
    let elapsed = context.elapsed_since(&forecast_at);
    context.report_step(format!(
        "Full after {} iterations and {elapsed}; the forecast was {expected:.1} s. {free} stay \
             free for others.",
        held.len()
    ));
    if (elapsed.seconds_without_delays() - expected).abs()
        > (FORECAST_TOLERANCE * expected).max(1.0)
    {
        return Err(DemoError::NotShown(format!(
            "the forecast was {expected:.1} s, but it took {elapsed}"
        )));
    }
    let refusal = context.request_impossible_size(context.read_free_memory()?.total_bytes)?;
    context.report_step(format!("The next allocation fails: {refusal}."));
    context.hold_memory()
}

/// The interval at which the response of the second process is checked. `MAX_CHECKS` is the maximum
/// number of checks. The process first has to initialize the driver.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
const MAX_CHECKS: u32 = 600;
/// The minimum number of bytes by which the request exceeds the memory that can be free.
const MIN_EXCESS_BYTES: u64 = 2 << 20;

pub(super) static CONTEND: Scenario = Scenario {
    id: "contend",
    title: "two processes, but memory for only one",
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

fn contend_for_memory(context: &mut ScenarioContext<'_>) -> Result<(), DemoError> {
    let total_bytes = context.read_free_memory()?.total_bytes;
    let usable_bytes = context.usable_bytes()?;
    let context_bytes = context.device.second_process_context_bytes()?;
    context.check_free_memory(2 * context_bytes + MIN_EXCESS_BYTES)?;
    let own_bytes = (3 * context.usable_part(4)?).min(usable_bytes - context_bytes);
    context.report_phase(Phase::Measuring);
    let held = context.allocate(own_bytes)?;
    context.report_step(format!(
        "The first process holds {} of {}.",
        format_gib(own_bytes),
        format_gib(total_bytes)
    ));
    context.pause_between_steps()?;
    let mut second = context.device.start_second_process()?;
    // This much memory cannot be free as long as the first process keeps its memory.
    let impossible_bytes = total_bytes - own_bytes + MIN_EXCESS_BYTES;
    let empty_bytes = usable_bytes.saturating_sub(context_bytes);
    let would_fit = impossible_bytes < empty_bytes;
    let needed_bytes = impossible_bytes + empty_bytes.saturating_sub(impossible_bytes) / 2;
    let subject = second.pid().map_or_else(
        || "The second".to_owned(),
        |pid| format!("The second process, {pid},"),
    );
    let answer = second.request_memory(needed_bytes, false, &mut make_wait_callback(context))?;
    let refusal = match answer.refusal {
        Some(refusal) if answer.is_out_of_memory => refusal,
        Some(other) => {
            return Err(DemoError::Second(format!(
                "failed with another error: {other}"
            )));
        }
        None => {
            return Err(DemoError::NotShown(
                "the second process received more memory than was free".to_owned(),
            ));
        }
    };
    let [needed, free] = [needed_bytes, answer.free_bytes].map(format_gib);
    context.report_step(format!(
        "{subject} needs {needed}, but {free} are free. Refused: {refusal}."
    ));
    context.report_step("The first process is not affected.");
    context.hold_memory()?;
    drop(held);
    if would_fit {
        let answer = second.request_memory(needed_bytes, true, &mut make_wait_callback(context))?;
        let free = format_gib(answer.free_bytes);
        context.report_step(match answer.refusal {
            None => {
                format!(
                    "The first process frees its memory: now the second finds {free} free, \
                     and gets its {needed}."
                )
            }
            Some(refusal) => {
                format!(
                    "The first process frees its memory: the second finds {free} free, but fails: \
                     {refusal}."
                )
            }
        });
    }
    Ok(())
}

/// Returns a callback that is called while waiting for the second process. The callback returns an
/// error if the wait takes too long.
fn make_wait_callback<'a>(
    context: &'a mut ScenarioContext<'_>,
) -> impl FnMut() -> Result<(), DemoError> + 'a {
    let mut looks = 0;
    move || {
        looks += 1;
        if looks > MAX_CHECKS {
            return Err(DemoError::Second(format!(
                "did not respond within {} s",
                (CHECK_INTERVAL * MAX_CHECKS).as_secs()
            )));
        }
        context.wait(CHECK_INTERVAL)
    }
}
