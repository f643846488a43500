//! Initialization of the driver, and its error messages.

use std::{
    ffi::{c_char, c_int, c_uint},
    ptr,
};

use super::write_value;
use crate::{
    code::{Code, to_return_code},
    state::state,
};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: c_uint) -> c_int {
    let mut state = state();
    to_return_code(match () {
        () if state.scenario.stub => Err(Code::STUB_LIBRARY),
        () if flags != 0 => Err(Code::INVALID_VALUE),
        () if state.scenario.devices == 0 => Err(Code::NO_DEVICE),
        () => {
            state.is_initialized = true;
            Ok(())
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    let state = state();
    if state.scenario.stub {
        return Code::STUB_LIBRARY.0;
    }
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(unsafe { write_value(version, state.scenario.version) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    unsafe { write_error_text(code, name, |(name, _)| name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    unsafe { write_error_text(code, text, |(_, text)| text) }
}

type ErrorTexts = (&'static std::ffi::CStr, &'static std::ffi::CStr);

/// # Safety
/// `place` is null or valid for writes.
unsafe fn write_error_text(
    code: c_int,
    place: *mut *const c_char,
    which: impl Fn(ErrorTexts) -> &'static std::ffi::CStr,
) -> c_int {
    let text = Code(code).name_and_description().map(which);
    // SAFETY: the caller upholds this function's safety contract.
    let given = unsafe { write_value(place, text.map_or(ptr::null(), std::ffi::CStr::as_ptr)) };
    to_return_code(if text.is_some() {
        given
    } else {
        Err(Code::INVALID_VALUE)
    })
}
