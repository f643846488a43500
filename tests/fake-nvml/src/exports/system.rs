//! Initialization, shutdown and versions.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::exports;
use crate::{answers::CUDA_VERSION, call::call_before_init, code::error_text, session::Session};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    call_before_init("nvmlInit_v2", Session::initialize)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    call_before_init("nvmlInitWithFlags", Session::initialize)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    call_before_init("nvmlShutdown", Session::shut_down)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    // The call cannot fail, so it is only delayed and counted.
    call_before_init("nvmlErrorString", |_| Ok(()));
    error_text(result).as_ptr()
}

exports! {
    fn nvmlSystemGetCudaDriverVersion(system |_|) -> c_int { Ok(CUDA_VERSION) }
}

/// Returns the first word of a process's command line.
pub(crate) fn system_process_name(pid: c_uint) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}
