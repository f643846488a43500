//! A leak in a loop, and the forecast of its end.

use std::time::Instant;

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// So many rounds fill the device.
const ROUNDS: u64 = 12;
/// After so many it is foretold when that will be.
const SEEN: usize = 4;
/// A forecast that is wrong by more of the time than this is none.
const TOLERANCE: f64 = 0.5;

pub(super) static LEAK: Scenario = Scenario {
    id: "leak",
    title: "a leak, and when it will be full",
    shows: "A loop keeps a little more with every round. From how fast that goes follows when the device will be full.",
    cause: "Each round keeps something that the last one needed: a loss with its graph, an output in a list, a notebook's \
        Out[] of old cells.",
    cures: &[
        "PyTorch: total += loss.item() instead of total += loss, which keeps the graph of each round; outputs.append(y.detach().cpu()); \
         with torch.no_grad() where nothing is learnt.",
        "Notebooks: del what is no more needed, %reset out, and restart the kernel after an error, which holds what its \
         traceback refers to.",
        "CuPy: del array, then cupy.get_default_memory_pool().free_all_blocks().",
    ],
    lesson: "Memory that grows evenly has a date at which it ends, known long before: gpumon's panel says it.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
    let round_bytes = context.part_of_usable(ROUNDS)?;
    context.step(format!("A loop that keeps {} more each round, and forgets to let go.", gib(round_bytes)));
    context.phase(Phase::Measuring);
    let begun = Instant::now();
    let begun_bytes = context.free()?.free_bytes;
    let (mut held, mut forecast) = (Vec::new(), None);
    while context.usable_bytes()? >= round_bytes {
        held.push(context.take(round_bytes)?);
        context.pause()?;
        if held.len() == SEEN {
            let seconds = begun.elapsed().as_secs_f64();
            let free_bytes = context.free()?.free_bytes;
            let per_second = begun_bytes.saturating_sub(free_bytes) as f64 / seconds;
            let left_seconds = context.usable_bytes()? as f64 / per_second;
            let rate = gib(per_second as u64);
            context.step(format!("It grows by {rate} a second: forecast, full in {left_seconds:.1} s."));
            forecast = Some((Instant::now(), left_seconds));
        }
    }
    let free = gib(context.free()?.free_bytes);
    let Some((foretold, expected)) = forecast else {
        return Err(Stop::NotShown("it was full before anything could be foretold".to_owned()));
    };
    let seconds = foretold.elapsed().as_secs_f64();
    context.step(format!(
        "Full after {} rounds and {seconds:.1} s, foretold {expected:.1} s. {free} stay free for others.",
        held.len()
    ));
    if (seconds - expected).abs() > (TOLERANCE * expected).max(1.0) {
        return Err(Stop::NotShown(format!("the forecast was {expected:.1} s, and it took {seconds:.1} s")));
    }
    let refusal = context.refused(context.free()?.total_bytes)?;
    context.step(format!("A program that goes on gets this: {refusal}."));
    context.hold()
}
