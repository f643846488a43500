//! Virtual addresses and physical memory, which are allocated separately.

use std::ffi::{c_int, c_uint, c_void};

use super::{Properties, give};
use crate::{
    code::{Code, returned},
    state::state,
    virtual_memory::GRANULARITY,
};

/// The C structure `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location_type: c_int,
    location_id: c_int,
    flags: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAllocationGranularity(
    bytes: *mut usize,
    _: *const c_void,
    _option: c_int,
) -> c_int {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(
        state()
            .check()
            .and_then(|()| unsafe { give(bytes, GRANULARITY) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressReserve(
    address: *mut u64,
    bytes: usize,
    _: usize,
    _: u64,
    _flags: u64,
) -> c_int {
    let place = state().virtual_memory.reserve(bytes);
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(place.and_then(|place| unsafe { give(address, place as u64) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> c_int {
    returned(state().virtual_memory.give_back(address as usize, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemCreate(
    handle: *mut u64,
    bytes: usize,
    properties: *const c_void,
    _flags: u64,
) -> c_int {
    // SAFETY: the caller passes a structure that begins with these fields.
    let properties = unsafe { properties.cast::<Properties>().read() };
    let mut state = state();
    let made = properties
        .device(&state)
        .and_then(|device| state.create_physical(device, bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(made.and_then(|made| unsafe { give(handle, made) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemRelease(handle: u64) -> c_int {
    returned(state().release_physical(handle))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemMap(
    address: u64,
    bytes: usize,
    offset: usize,
    handle: u64,
    _flags: u64,
) -> c_int {
    returned(match offset {
        0 => state().virtual_memory.map(address as usize, bytes, handle),
        _ => Err(Code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> c_int {
    returned(state().unmap(address as usize, bytes))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemSetAccess(
    address: u64,
    bytes: usize,
    wanted: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the caller passes at least one such structure.
    let Access {
        location_type,
        location_id,
        flags,
    } = unsafe { wanted.cast::<Access>().read() };
    let mut state = state();
    let is_known = state.device(location_id).is_ok()
        && count == 1
        && location_type == 1
        && flags as c_uint == 3;
    returned(if is_known {
        state.virtual_memory.allow(address as usize, bytes)
    } else {
        Err(Code::INVALID_VALUE)
    })
}
