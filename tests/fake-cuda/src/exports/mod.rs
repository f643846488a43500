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

use std::ffi::{c_int, c_void};

use crate::{
    code::{Code, Outcome},
    state::State,
};

/// A `CUcontext`, `CUstream`, `CUevent`, `CUmodule` or `CUfunction`.
type Handle = *mut c_void;

/// What memory is to be: the first words of a `CUmemPoolProps` and of a `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
}

impl Properties {
    /// The device whose memory it is. Pinned memory of a device is the one kind that there is.
    fn device(&self, state: &State) -> Outcome<u32> {
        state.device(self.location_id).and_then(|device| {
            match (self.allocation_type, self.location_type) {
                (1, 1) => Ok(device),
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }
}

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
