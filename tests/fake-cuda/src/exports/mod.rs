//! The functions of the driver's interface.

// Names, types and requirements of pointers are those of `cuda.h`.
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

use std::ffi::{c_int, c_void};

use crate::{
    code::{Code, Outcome},
    state::State,
};

/// A `CUcontext`, `CUstream`, `CUevent`, `CUmodule` or `CUfunction`.
type Handle = *mut c_void;

/// The properties of memory to be allocated: the first fields of `CUmemPoolProps` and
/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
}

impl Properties {
    /// Returns the device of the memory. Only pinned device memory is supported.
    fn check_device(&self, state: &State) -> Outcome<u32> {
        state.check_device(self.location_id).and_then(|device| {
            match (self.allocation_type, self.location_type) {
                (1, 1) => Ok(device),
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }
}

/// Writes the result of a call.
///
/// # Safety
/// `place` is null or valid for writes.
unsafe fn write_value<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the caller upholds this function's safety contract.
    unsafe { place.write(value) };
    Ok(())
}
