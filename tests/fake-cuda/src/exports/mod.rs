//! The driver's interface, function by function.

// The names and types are those of `cuda.h`, and what holds of a pointer is said there.
#![allow(non_snake_case, missing_docs, clippy::missing_safety_doc)]

mod device;
mod graph;
mod memory;
mod module;
mod peer;
mod pool;
mod start;
mod stream;
mod virtual_memory;

use std::ffi::c_void;

use crate::code::{Code, Outcome};

/// A `CUcontext`, `CUstream`, `CUevent`, `CUmodule` or `CUfunction`.
type Handle = *mut c_void;

/// Writes what a call gives.
///
/// # Safety
/// The place is one for such a value, or null.
unsafe fn give<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the condition above.
    unsafe { place.write(value) };
    Ok(())
}
