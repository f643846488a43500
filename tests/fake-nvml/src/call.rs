//! The one way into the library: every exported function goes through here.
//!
//! A call is counted, takes its time, hangs while a fault says so, and only then is answered or refused.

use std::{
    hint, ptr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::source::sim::{GpuIdentity, GpuState, Machine, Totals, Wear, World};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::{
    code::{Code, Outcome, returned},
    session::{Session, session},
};

/// How often a hung call looks whether its fault is over.
const HANG_POLL: Duration = Duration::from_millis(5);

/// A GPU that a function asks about, at the moment of the call.
pub(crate) struct Gpu {
    pub(crate) session: &'static Session,
    pub(crate) index: u32,
    pub(crate) elapsed_ms: u64,
}

impl Gpu {
    /// The machine that it is in.
    pub(crate) fn machine(&self) -> &'static Machine {
        &self.session.machine
    }

    /// What it does.
    pub(crate) fn state(&self) -> Arc<GpuState> {
        self.machine().state(self.index, self.elapsed_ms)
    }

    /// Who it is.
    pub(crate) fn identity(&self) -> &'static GpuIdentity {
        self.machine().world.identity(self.index)
    }

    /// What it has gone through.
    pub(crate) fn wear(&self) -> Wear {
        self.machine().world.wear(self.index, self.elapsed_ms)
    }

    /// What has flowed through it.
    pub(crate) fn totals(&self) -> Totals {
        self.machine().totals(self.index, self.elapsed_ms)
    }

    /// What C holds for it: no address of anything, since the index is all there is to know.
    pub(crate) fn handle(&self) -> nvmlDevice_t {
        ptr::without_provenance_mut(self.index as usize + 1)
    }
}

/// A function that needs no initialised library.
pub(crate) fn before_init(function: &'static str, body: impl FnOnce(&'static Session) -> Outcome) -> nvmlReturn_t {
    let session = session();
    wait(session, function, None);
    returned(refuse(session, function).and_then(|()| body(session)))
}

/// A function about the system.
pub(crate) fn system(function: &'static str, body: impl FnOnce(&'static Session) -> Outcome) -> nvmlReturn_t {
    let session = session();
    wait(session, function, None);
    let allowed = session.check_initialized().and_then(|()| refuse(session, function));
    returned(allowed.and_then(|()| body(session)))
}

/// A function about the GPU behind a handle.
pub(crate) fn device(function: &'static str, handle: nvmlDevice_t, body: impl FnOnce(&Gpu) -> Outcome) -> nvmlReturn_t {
    lookup(function, |_| (handle.addr() as u32).checked_sub(1).ok_or(Code::INVALID_ARGUMENT), body)
}

/// The GPU behind a function's second handle, if it is there.
pub(crate) fn other(session: &Session, handle: nvmlDevice_t) -> Result<u32, Code> {
    let world = &session.machine.world;
    let index = (handle.addr() as u32).checked_sub(1).filter(|index| *index < world.gpu_count());
    let index = index.ok_or(Code::INVALID_ARGUMENT)?;
    let lost = world.scenario().is_lost(index, session.machine.timeline.elapsed_s());
    if lost { Err(Code::GPU_IS_LOST) } else { Ok(index) }
}

/// A function that finds its GPU by something else than a handle.
pub(crate) fn lookup(
    function: &'static str,
    find: impl FnOnce(&World) -> Result<u32, Code>,
    body: impl FnOnce(&Gpu) -> Outcome,
) -> nvmlReturn_t {
    let session = session();
    let world = &session.machine.world;
    let found =
        find(world).and_then(|index| if index < world.gpu_count() { Ok(index) } else { Err(Code::INVALID_ARGUMENT) });
    wait(session, function, found.ok());
    let answer = || {
        session.check_initialized()?;
        refuse(session, function)?;
        let index = found?;
        if world.scenario().is_lost(index, session.machine.timeline.elapsed_s()) {
            return Err(Code::GPU_IS_LOST);
        }
        body(&Gpu { session, index, elapsed_ms: session.machine.timeline.elapsed_ms() })
    };
    returned(answer())
}

/// Counts the call, then lets it take its time: what the scenario says, and as long as it hangs.
fn wait(session: &Session, function: &'static str, gpu: Option<u32>) {
    session.counts.add(function, gpu);
    let scenario = session.machine.world.scenario();
    take(scenario.latency(function));
    while scenario.hangs(gpu, Some(function), session.machine.timeline.elapsed_s()) {
        thread::sleep(HANG_POLL);
    }
}

/// Fails where the scenario says that the function is missing or always fails.
fn refuse(session: &Session, function: &'static str) -> Outcome {
    let scenario = session.machine.world.scenario();
    if scenario.hidden_functions().any(|hidden| hidden == function) {
        return Err(Code::FUNCTION_NOT_FOUND);
    }
    scenario.forced_return(function).map_or(Ok(()), |code| Err(Code(code)))
}

/// Spends time as the driver does: asleep where it waits for the board, busy where it is done in microseconds.
fn take(latency: Duration) {
    if latency >= Duration::from_millis(1) {
        thread::sleep(latency);
    } else if !latency.is_zero() {
        let begun = Instant::now();
        while begun.elapsed() < latency {
            hint::spin_loop();
        }
    }
}
