//! A memory leak in a loop, with a forecast of when the device is full.

use crate::{
    error::gib,
    oom::{Scenario, ScenarioContext, Stop},
    protocol::Phase,
};

/// Iterations that fill the device.
const ROUNDS: u64 = 12;
/// Iterations before the forecast.
const SEEN: usize = 4;
/// The largest relative error of the forecast.
const TOLERANCE: f64 = 0.5;

pub(super) static LEAK: Scenario = Scenario {
    id: "leak",
    title: "a memory leak with its forecast",
    shows: "A loop keeps more memory in every iteration. Its growth rate forecasts when the device is full.",
    cause: "Each iteration keeps a reference to its data: a loss with its graph, an output in a list, or the Out[] of old \
        notebook cells.",
    fixes: &[
        "PyTorch: total += loss.item() instead of total += loss, which keeps the graph of each iteration; outputs.append(y.detach().cpu()); \
         with torch.no_grad() for inference.",
        "Notebooks: delete unused variables with del, run %reset out, and restart the kernel after an error, whose \
         traceback keeps references.",
        "CuPy: del array, then cupy.get_default_memory_pool().free_all_blocks().",
    ],
    lesson: "Steady growth makes the time of the failure predictable: the panel of gpumon shows this forecast.",
    run,
};

fn run(context: &mut ScenarioContext<'_>) -> Result<(), Stop> {
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
        "Full after {} iterations and {elapsed}; the forecast was {expected:.1} s. {free} stay free for others.",
        held.len()
    ));
    if (elapsed.punctual_seconds() - expected).abs() > (TOLERANCE * expected).max(1.0) {
        return Err(Stop::NotShown(format!(
            "the forecast was {expected:.1} s, and it took {elapsed}"
        )));
    }
    let refusal = context.refused(context.free()?.total_bytes)?;
    context.step(format!("The next allocation fails: {refusal}."));
    context.hold()
}
