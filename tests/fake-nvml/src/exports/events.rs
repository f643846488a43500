//! Events, which the driver reports on its own.
//!
//! All functions about event sets take one lock, as in the driver, and a wait holds the lock until
//! it returns.

use std::{
    collections::VecDeque,
    ffi::{c_uint, c_ulonglong},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::MigInstance,
    vendor::{Notice, sim::ScheduledEvent},
};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEventData_t, nvmlEventMigConfigChange as MIG, nvmlEventSet_t,
    nvmlEventTypeDoubleBitEccError as ECC_UNCORRECTED,
    nvmlEventTypePowerSourceChange as POWER_SOURCE,
    nvmlEventTypeSingleBitEccError as ECC_CORRECTED, nvmlEventTypeXidCriticalError as XID,
    nvmlReturn_t,
};

use super::exports;
use crate::{
    call::{device, encode_handle, system},
    code::{Code, Outcome},
    out::write_output_value,
    session::Session,
};

/// The types of events that the simulated boards report.
const SUPPORTED_EVENTS: c_ulonglong =
    (XID | ECC_CORRECTED | ECC_UNCORRECTED | POWER_SOURCE | MIG) as c_ulonglong;
/// The instance ID of an event outside of MIG.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// The lock of all event sets.
static SETS_LOCK: Mutex<()> = Mutex::new(());

fn lock_event_sets() -> MutexGuard<'static, ()> {
    SETS_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The target of an `nvmlEventSet_t`: the registered GPUs.
#[derive(Default)]
struct EventSet(Vec<Registration>);

struct Registration {
    gpu: u32,
    types: c_ulonglong,
    to_come: VecDeque<ScheduledEvent>,
}

exports! {
    fn nvmlDeviceGetSupportedEventTypes(device |_|) -> c_ulonglong { Ok(SUPPORTED_EVENTS) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetCreate(set: *mut nvmlEventSet_t) -> nvmlReturn_t {
    system("nvmlEventSetCreate", |_| {
        if set.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let _lock = lock_event_sets();
        // SAFETY: by NVML's contract, the pointer, which is not null, may be written.
        unsafe { write_output_value(set, Box::into_raw(Box::<EventSet>::default()).cast()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    system("nvmlEventSetFree", |_| {
        if set.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let _lock = lock_event_sets();
        // SAFETY: by NVML's contract, the set comes from nvmlEventSetCreate and is freed once.
        // Nothing waits for it while this function holds the lock.
        drop(unsafe { Box::from_raw(set.cast::<EventSet>()) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceRegisterEvents(
    device_handle: nvmlDevice_t,
    types: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    device("nvmlDeviceRegisterEvents", device_handle, |gpu| {
        let _lock = lock_event_sets();
        // SAFETY: by NVML's contract, the set is null or comes from nvmlEventSetCreate. Nothing
        // else uses it while this function holds the lock.
        let EventSet(registered) =
            unsafe { set.cast::<EventSet>().as_mut() }.ok_or(Code::INVALID_ARGUMENT)?;
        if types & !SUPPORTED_EVENTS != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        if let Some(known) = registered.iter_mut().find(|known| known.gpu == gpu.index) {
            known.types |= types;
            return Ok(());
        }
        let now_s = gpu.machine().timeline.elapsed_s();
        let to_come = gpu
            .machine()
            .world
            .scenario()
            .list_events(gpu.index, now_s)
            .into();
        registered.push(Registration {
            gpu: gpu.index,
            types,
            to_come,
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    data: *mut nvmlEventData_t,
    timeout_ms: c_uint,
) -> nvmlReturn_t {
    system("nvmlEventSetWait_v2", |session| {
        let _lock = lock_event_sets();
        // SAFETY: by NVML's contract, the set is null or comes from nvmlEventSetCreate. Nothing
        // else uses it while this function holds the lock.
        let set = unsafe { set.cast::<EventSet>().as_mut() }.ok_or(Code::INVALID_ARGUMENT)?;
        let (begun, patience) = (Instant::now(), Duration::from_millis(timeout_ms.into()));
        loop {
            if let Some(event) = next_event(session, set)? {
                // SAFETY: by NVML's contract, the pointer is null or may be written.
                return unsafe { write_output_value(data, event) };
            }
            let left = patience
                .checked_sub(begun.elapsed())
                .filter(|left| !left.is_zero())
                .ok_or(Code::TIMEOUT)?;
            session.machine.sleep_until_event(left);
        }
    })
}

fn next_event(
    session: &Session,
    EventSet(registered): &mut EventSet,
) -> Result<Option<nvmlEventData_t>, Code> {
    let now_s = session.machine.timeline.elapsed_s();
    for own in registered.iter() {
        check_present(session, own.gpu, now_s)?;
    }
    for own in registered {
        while let Some(report) = own.to_come.pop_front_if(|report| report.at_s <= now_s) {
            let (kind, number) = event_type_and_data(report.notice);
            if own.types & kind != 0 {
                return Ok(Some(to_event_data(session, own.gpu, &report, kind, number)));
            }
        }
    }
    Ok(None)
}

fn check_present(session: &Session, gpu: u32, now_s: f64) -> Outcome {
    if session.machine.world.scenario().is_lost(gpu, now_s) {
        Err(Code::GPU_IS_LOST)
    } else {
        Ok(())
    }
}

fn to_event_data(
    session: &Session,
    gpu: u32,
    report: &ScheduledEvent,
    kind: c_ulonglong,
    number: c_ulonglong,
) -> nvmlEventData_t {
    let instance = report
        .pid
        .and_then(|pid| find_instance_of_process(session, gpu, pid));
    nvmlEventData_t {
        device: encode_handle(gpu, None),
        eventType: kind,
        eventData: number,
        gpuInstanceId: instance.map_or(NO_INSTANCE, |instance| instance.gpu_instance),
        computeInstanceId: instance.map_or(NO_INSTANCE, |instance| instance.compute_instance),
    }
}

/// Returns the MIG instance in which a process runs. NVML reports nothing else about the process in
/// an event.
fn find_instance_of_process(session: &Session, gpu: u32, pid: u32) -> Option<MigInstance> {
    let processes = session
        .machine
        .world
        .processes(gpu, session.machine.timeline.elapsed_ms());
    processes
        .into_iter()
        .find(|process| process.pid == pid)?
        .mig
}

/// Returns NVML's number of an event type, and the event's data.
fn event_type_and_data(notice: Notice) -> (c_ulonglong, c_ulonglong) {
    let (kind, number) = match notice {
        Notice::Error { code } => (XID, code),
        Notice::EccCorrected => (ECC_CORRECTED, 0),
        Notice::EccUncorrected => (ECC_UNCORRECTED, 0),
        Notice::PowerSource => (POWER_SOURCE, 0),
        Notice::Partitions => (MIG, 0),
    };
    (kind.into(), number.into())
}
