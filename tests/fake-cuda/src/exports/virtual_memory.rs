//! Virtual addresses and physical memory, which are allocated separately.

use std::ffi::{c_int, c_uint, c_void};

use super::{Properties, write_value};
use crate::{
    code::{Code, to_return_code},
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
    to_return_code(
        state()
            .check_usable()
            .and_then(|()| unsafe { write_value(bytes, GRANULARITY) }),
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
    let place = state().virtual_memory.reserve_addresses(bytes);
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(place.and_then(|place| unsafe { write_value(address, place as u64) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAddressFree(address: u64, bytes: usize) -> c_int {
    to_return_code(
        state()
            .virtual_memory
            .release_addresses(address as usize, bytes),
    )
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
        .check_device(&state)
        .and_then(|device| state.create_physical(device, bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(made.and_then(|made| unsafe { write_value(handle, made) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemRelease(handle: u64) -> c_int {
    to_return_code(state().release_physical(handle))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemMap(
    address: u64,
    bytes: usize,
    offset: usize,
    handle: u64,
    _flags: u64,
) -> c_int {
    to_return_code(match offset {
        0 => state()
            .virtual_memory
            .map_memory(address as usize, bytes, handle),
        _ => Err(Code::INVALID_VALUE),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemUnmap(address: u64, bytes: usize) -> c_int {
    to_return_code(state().unmap_memory(address as usize, bytes))
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
    let is_known = state.check_device(location_id).is_ok()
        && count == 1
        && location_type == 1
        && flags as c_uint == 3;
    to_return_code(if is_known {
        state.virtual_memory.allow_access(address as usize, bytes)
    } else {
        Err(Code::INVALID_VALUE)
    })
}
