//! Start, end, versions.

use std::ffi::{c_char, c_int, c_uint};

use gpumon_probe::vendor::sim::Machine;
use nvml_wrapper_sys::bindings::{
    nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED, nvmlEnableState_t, nvmlPciInfo_t,
    nvmlReturn_t,
};

use super::exports;
use crate::{
    answers::CUDA,
    call::{before_init, lookup},
    code::{Code, words},
    out::put,
    session::Session,
};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    before_init("nvmlInit_v2", Session::initialize)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    before_init("nvmlInitWithFlags", Session::initialize)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    before_init("nvmlShutdown", Session::shut_down)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    // It always has an answer, so that only its time and its count are the scenario's business.
    before_init("nvmlErrorString", |_| Ok(()));
    words(result).as_ptr()
}

exports! {
    fn nvmlSystemGetCudaDriverVersion(system |_|) -> c_int { Ok(CUDA) }
}

/// The first word of a process's command line.
pub(crate) fn real_name(pid: c_uint) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceQueryDrainState(
    info: *mut nvmlPciInfo_t,
    state: *mut nvmlEnableState_t,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: the pointer is null or points at a place on the bus.
    let asked = unsafe { info.as_ref() }.map(|info| (info.domain, info.bus, info.device));
    let find = |machine: &Machine| {
        let mut gpus = machine.found.iter().copied();
        let place = |gpu: u32| {
            let identity = machine.world.identity(gpu);
            (identity.pci_domain, identity.pci_bus, 0)
        };
        gpus.find(|gpu| asked == Some(place(*gpu)))
            .ok_or(Code::NOT_FOUND)
    };
    // SAFETY: NVML's contract: the pointer is null or may be written. Nobody takes a GPU out of use.
    lookup("nvmlDeviceQueryDrainState", find, |_| unsafe {
        put(state, DISABLED)
    })
}
