//! Devices: which there are, which one is chosen, and what happens where it is not there.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use crate::{
    bench::{self, Place, Request},
    catalogue,
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    measure::Limits,
    protocol::{Amount, Engine, Found},
    random::{SEED_A, bits},
};

const BRIEF: Limits = Limits {
    warm_up: Duration::ZERO,
    least: Duration::ZERO,
    time: Duration::ZERO,
};

pub(super) fn list(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<Found, RunError> {
    let devices = gpu.device().driver().devices()?;
    let names: Vec<_> = devices
        .iter()
        .map(|device| format!("GPU {}: {}", device.index, device.name))
        .collect();
    let text = format!(
        "{}; CPU: {}; GPU {} chosen",
        names.join(", "),
        cpu.name,
        gpu.device().index
    );
    Ok(Found::Shown { ok: true, text })
}

/// Asks for a GPU behind the last one, and computes on the CPU instead.
pub(super) fn fall_back(gpu: &Gpu, cpu: &Cpu, _: bool) -> Result<Found, RunError> {
    let count = gpu.device().driver().devices()?.len();
    let Some(work) = catalogue::find("vector-add") else {
        return Ok(Found::missing("vector-add"));
    };
    let request = Request {
        dtype: None,
        amount: Some(Amount::Count(1000)),
        engine: Engine::Own,
        limits: BRIEF,
    };
    let outcome = bench::run(
        work,
        &Place::Cpu(cpu),
        cpu,
        &request,
        &AtomicBool::new(false),
        &mut |_| {},
    )?;
    let text = format!("there is no GPU {count}, so that the CPU has added the vectors");
    Ok(Found::Shown {
        ok: outcome.verify.ok,
        text,
    })
}

/// Whoever has what is asked for hands it over as it is.
pub(super) fn already_there(gpu: &Gpu, _: &Cpu, _: bool) -> Result<Found, RunError> {
    let words: Vec<u64> = (0..1000).map(|index| bits(SEED_A, index)).collect();
    let memory = gpu.upload(&words)?;
    let begun = Instant::now();
    // What `copyto` comes to: the device is compared, and the array is the answer.
    let (target, source) = (gpu.device().index, memory.device().index);
    let is_there = target == source;
    let ns = begun.elapsed().as_nanos();
    let ok = is_there && gpu.download::<u64>(&memory)? == words;
    Ok(Found::Shown {
        ok,
        text: format!("on GPU {target} already: nothing is copied, in {ns} ns"),
    })
}
