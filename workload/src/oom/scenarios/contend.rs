//! Two processes, and memory for one.

use std::time::Duration;

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// How often the other process is waited for, and for how long at most: it starts a driver.
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: u32 = 600;
/// No request is for less more than this.
const LEAST_BYTES: u64 = 2 << 20;

pub(super) static CONTEND: Scenario = Scenario {
    id: "contend",
    title: "two processes with memory for one",
    shows: "A second process requests memory that would fit on an empty device while a first process holds most of it.",
    cause: "Processes share the memory of a device without coordination: each keeps what it allocated until it frees it or \
        ends. An idle notebook still holds its memory.",
    fixes: &[
        "Find the process that holds the memory: gpumon shows each with its notebook or job. Shut down idle kernels.",
        "gpumon wait --free 20GiB -- python train.py waits for free memory.",
        "Limit each process: torch.cuda.set_per_process_memory_fraction(0.4), XLA_PYTHON_CLIENT_MEM_FRACTION=.40, TensorFlow's \
         memory_limit, or MIG, which partitions the GPU.",
    ],
    lesson: "The program that fails is often not the one that uses too much. The message states the free memory, not which \
        process holds the rest.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
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
    // As long as the first holds its part there cannot be so much, whoever else lets go of what.
    let impossible_bytes = total_bytes - own_bytes + LEAST_BYTES;
    let empty_bytes = usable_bytes.saturating_sub(context_bytes);
    let would_fit = impossible_bytes < empty_bytes;
    let needed_bytes = impossible_bytes + empty_bytes.saturating_sub(impossible_bytes) / 2;
    let who = second.pid().map_or_else(
        || "The second".to_owned(),
        |pid| format!("The second process, {pid},"),
    );
    let answer = second.ask(needed_bytes, false, &mut looks(context))?;
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
        "{who} needs {needed}, and finds {free} free. Refused: {refusal}."
    ));
    context.step("The first process is not affected.");
    context.hold()?;
    drop(held);
    if would_fit {
        let answer = second.ask(needed_bytes, true, &mut looks(context))?;
        let free = gib(answer.free_bytes);
        context.step(match answer.refusal {
            None => {
                format!("The first process frees its memory: now the second finds {free} free, and gets its {needed}.")
            }
            Some(refusal) => {
                format!("The first process frees its memory: the second finds {free} free: {refusal}.")
            }
        });
    }
    Ok(())
}

/// What is done while the other process is waited for.
fn looks<'a>(context: &'a mut ScenarioContext<'_>) -> impl FnMut() -> Result<(), Stop> + 'a {
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
