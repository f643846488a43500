//! The common part of all exported functions.
//!
//! A call is first counted and then delayed by its latency. If a fault requires it, the call also
//! hangs or crashes. After that, the call is answered or refused.

use std::{
    hint, process, ptr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::MigInstance,
    vendor::sim::{GpuIdentity, GpuState, Machine, MigState, Totals, Wear},
};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::{
    code::{Code, Outcome, to_return_code},
    done::TotalActivity,
    held,
    notes::PeriodActivity,
    session::{Session, current_session},
};

/// The GPU of a call, and the time of the call.
pub(crate) struct Gpu {
    pub(crate) session: &'static Session,
    pub(crate) index: u32,
    /// The MIG device of the call; `None` for the whole GPU.
    pub(crate) instance: Option<MigInstance>,
    pub(crate) elapsed_ms: u64,
}

/// The GPU and the MIG device that a handle refers to.
pub(crate) type Target = (u32, Option<MigInstance>);

/// The bit that distinguishes the handles of MIG devices from those of GPUs.
const MIG_BIT: usize = 0x1_0000;

impl Gpu {
    pub(crate) fn machine(&self) -> &'static Machine {
        &self.session.machine
    }

    /// Returns the state of the GPU, including memory and activity of processes on this machine
    /// that use the fake CUDA driver.
    pub(crate) fn state(&self) -> Arc<GpuState> {
        let state = self.machine().state(self.index, self.elapsed_ms);
        let Some(folder) = &self.session.state_folder else {
            return state;
        };
        let holders = fake_gpu_state::list_holders(folder, &self.identity().uuid);
        // The activity of a period is only recorded when the period has ended. So the clock is
        // taken from the total activity up to this moment.
        let sm_mhz = self.total_activity().and_then(|moment| moment.sm_mhz());
        let state = held::add_real_processes(state, &holders, sm_mhz);
        match self.latest_period_activity() {
            Some(note) => held::apply_period_activity(state, &note),
            None => state,
        }
    }

    /// Returns the activity of real processes in the latest recorded period. `None` if real
    /// processes have never been active.
    pub(crate) fn latest_period_activity(&self) -> Option<PeriodActivity> {
        self.session.notes.as_ref()?.last_period(self.index)
    }

    /// Returns all recorded periods of real processes' activity, the oldest first.
    pub(crate) fn period_activities(&self) -> Vec<PeriodActivity> {
        self.session
            .notes
            .as_ref()
            .map_or_else(Vec::new, |notes| notes.all_periods(self.index))
    }

    /// Returns the activity of real processes until now; `None` if there is no state folder.
    pub(crate) fn total_activity(&self) -> Option<TotalActivity> {
        self.session
            .state_folder
            .as_ref()
            .map(|folder| TotalActivity::read_now(folder, self.identity()))
    }

    pub(crate) fn identity(&self) -> &'static GpuIdentity {
        self.machine().world.gpu_identity(self.index)
    }

    pub(crate) fn wear(&self) -> Wear {
        self.machine()
            .world
            .compute_wear(self.index, self.elapsed_ms)
    }

    pub(crate) fn totals(&self) -> Totals {
        let totals = self.machine().compute_totals(self.index, self.elapsed_ms);
        self.total_activity()
            .map_or(totals, |moment| moment.add_to_totals(totals))
    }

    /// Returns the MIG device of the call, or the code if there is none.
    pub(crate) fn mig_device(&self) -> Result<MigState, Code> {
        let instance = self.instance.ok_or(Code::INVALID_ARGUMENT)?;
        self.state()
            .mig_device(instance)
            .cloned()
            .ok_or(Code::INVALID_ARGUMENT)
    }

    /// Returns the handle of the GPU for C.
    pub(crate) fn handle(&self) -> nvmlDevice_t {
        encode_handle(self.index, None)
    }
}

/// Returns the handle of a GPU or a MIG device. The handle is not an address, but contains the
/// indices.
pub(crate) fn encode_handle(gpu: u32, instance: Option<MigInstance>) -> nvmlDevice_t {
    ptr::without_provenance_mut(match instance {
        None => gpu as usize + 1,
        Some(own) => MIG_BIT | (gpu << 8 | own.gpu_instance << 4 | own.compute_instance) as usize,
    })
}

pub(crate) fn decode_handle(handle: nvmlDevice_t) -> Result<Target, Code> {
    let number = handle.addr();
    if number & MIG_BIT == 0 {
        return Ok((
            (number as u32)
                .checked_sub(1)
                .ok_or(Code::INVALID_ARGUMENT)?,
            None,
        ));
    }
    let number = (number ^ MIG_BIT) as u32;
    Ok((
        number >> 8,
        Some(MigInstance {
            gpu_instance: number >> 4 & 0xF,
            compute_instance: number & 0xF,
        }),
    ))
}

/// Executes a function that does not need an initialized library.
pub(crate) fn call_before_init(
    function: &'static str,
    body: impl FnOnce(&'static Session) -> Outcome,
) -> nvmlReturn_t {
    let session = current_session();
    count_and_delay_call(session, function, None);
    to_return_code(check_faults(session, function, None).and_then(|()| body(session)))
}

/// Executes a function about the system.
pub(crate) fn system(
    function: &'static str,
    body: impl FnOnce(&'static Session) -> Outcome,
) -> nvmlReturn_t {
    let session = current_session();
    count_and_delay_call(session, function, None);
    let allowed = session
        .check_initialized()
        .and_then(|()| check_faults(session, function, None));
    to_return_code(allowed.and_then(|()| body(session)))
}

/// Executes a function about a whole GPU. The call fails for MIG devices.
pub(crate) fn device(
    function: &'static str,
    handle: nvmlDevice_t,
    body: impl FnOnce(&Gpu) -> Outcome,
) -> nvmlReturn_t {
    call_gpu(function, decode_handle(handle), |gpu| {
        if gpu.instance.is_none() {
            body(gpu)
        } else {
            Err(Code::NOT_SUPPORTED)
        }
    })
}

/// Executes a function about a GPU or a MIG device.
pub(crate) fn part(
    function: &'static str,
    handle: nvmlDevice_t,
    body: impl FnOnce(&Gpu) -> Outcome,
) -> nvmlReturn_t {
    call_gpu(function, decode_handle(handle), body)
}

/// Returns the GPU to which the second handle of a function refers, if this GPU is present.
pub(crate) fn find_other_gpu(session: &Session, handle: nvmlDevice_t) -> Result<u32, Code> {
    let Machine {
        world,
        timeline,
        found,
        ..
    } = &session.machine;
    let (index, _) = decode_handle(handle)?;
    if !found.contains(&index) {
        return Err(Code::INVALID_ARGUMENT);
    }
    let scenario = world.scenario();
    let failure = scenario
        .find_gpu_failure_code(index, timeline.elapsed_s())
        .map(Code);
    let lost = scenario
        .is_lost(index, timeline.elapsed_s())
        .then_some(Code::GPU_IS_LOST);
    failure.or(lost).map_or(Ok(index), Err)
}

/// Executes a function that finds its GPU without a handle.
pub(crate) fn call_lookup_function(
    function: &'static str,
    find: impl FnOnce(&Machine) -> Result<u32, Code>,
    body: impl FnOnce(&Gpu) -> Outcome,
) -> nvmlReturn_t {
    call_gpu(
        function,
        find(&current_session().machine).map(|index| (index, None)),
        body,
    )
}

fn call_gpu(
    function: &'static str,
    found: Result<Target, Code>,
    body: impl FnOnce(&Gpu) -> Outcome,
) -> nvmlReturn_t {
    let session = current_session();
    let Machine {
        world,
        timeline,
        found: all,
        ..
    } = &session.machine;
    let found = found.and_then(|target| {
        if all.contains(&target.0) {
            Ok(target)
        } else {
            Err(Code::INVALID_ARGUMENT)
        }
    });
    let index = found.ok().map(|(index, _)| index);
    count_and_delay_call(session, function, index);
    let answer = || {
        session.check_initialized()?;
        check_faults(session, function, index)?;
        let (index, instance) = found?;
        if world.scenario().is_lost(index, timeline.elapsed_s()) {
            return Err(Code::GPU_IS_LOST);
        }
        let gpu = Gpu {
            session,
            index,
            instance,
            elapsed_ms: timeline.elapsed_ms(),
        };
        if instance.is_some() {
            // The MIG device may have been removed.
            gpu.mig_device()?;
        }
        body(&gpu)
    };
    to_return_code(answer())
}

/// Counts the call and then waits for its latency in the scenario. If a fault makes the call hang,
/// it sleeps until the fault is over. It does not wake earlier, because a thread that waits for a
/// CPU does not count as hung.
fn count_and_delay_call(session: &Session, function: &'static str, gpu: Option<u32>) {
    session.counts.count_call(function, gpu);
    let scenario = session.machine.world.scenario();
    spend_time(scenario.find_latency(function));
    let elapsed_s = || session.machine.timeline.elapsed_s();
    while let Some(left) = scenario.remaining_hang(gpu, Some(function), elapsed_s()) {
        thread::sleep(left);
    }
    if scenario.is_crashing(gpu, function, session.machine.timeline.elapsed_s()) {
        eprintln!("fake NVML: {function} crashes, because the scenario has this fault");
        process::abort();
    }
}

/// Returns an error if the scenario simulates a driver of another version, removes this function,
/// or makes it fail.
fn check_faults(session: &Session, function: &'static str, gpu: Option<u32>) -> Outcome {
    let scenario = session.machine.world.scenario();
    let seconds = session.machine.timeline.elapsed_s();
    if scenario.has_version_mismatch(seconds) {
        return Err(Code::LIB_RM_VERSION_MISMATCH);
    }
    if scenario.hidden_functions().any(|hidden| hidden == function) {
        return Err(Code::FUNCTION_NOT_FOUND);
    }
    scenario
        .find_forced_return(gpu, function, seconds)
        .map_or(Ok(()), |code| Err(Code(code)))
}

/// Waits for the latency in the same way as the driver. A long call sleeps, because it waits for
/// the board. A short call keeps the processor busy.
fn spend_time(latency: Duration) {
    if latency >= Duration::from_millis(1) {
        thread::sleep(latency);
    } else if !latency.is_zero() {
        let begun = Instant::now();
        while begun.elapsed() < latency {
            hint::spin_loop();
        }
    }
}
