//! Memory pools, whose allocations follow the order of a stream.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use super::{Handle, Properties, write_value};
use crate::{
    code::{Code, to_return_code},
    state::state,
};

/// The value of `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_int = 4;
/// The value of `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED_CURRENT: c_int = 5;
/// The value of `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const USED_CURRENT: c_int = 7;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolCreate(pool: *mut Handle, properties: *const c_void) -> c_int {
    // SAFETY: the caller passes a structure that begins with these fields.
    let properties = unsafe { properties.cast::<Properties>().read() };
    let mut state = state();
    let made = properties
        .check_device(&state)
        .map(|device| state.pools.create_pool(device));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        made.and_then(|made| unsafe { write_value(pool, ptr::without_provenance_mut(made)) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolDestroy(pool: Handle) -> c_int {
    to_return_code(state().destroy_pool(pool.addr()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolSetAttribute(
    pool: Handle,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    // SAFETY: this is the type of the only supported attribute.
    let threshold = unsafe { value.cast::<u64>().read() };
    let mut state = state();
    to_return_code(
        state
            .pools
            .find_pool(pool.addr())
            .and_then(|pool| match attribute {
                RELEASE_THRESHOLD => {
                    pool.threshold = threshold;
                    Ok(())
                }
                _ => Err(Code::INVALID_VALUE),
            }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolGetAttribute(
    pool: Handle,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    let mut state = state();
    let found = state
        .pools
        .find_pool(pool.addr())
        .and_then(|pool| match attribute {
            RESERVED_CURRENT => Ok(pool.reserved as u64),
            USED_CURRENT => Ok(pool.used as u64),
            _ => Err(Code::INVALID_VALUE),
        });
    // SAFETY: this is the type of both attributes, and the caller passes a pointer that is null or
    // valid for writes.
    to_return_code(found.and_then(|found| unsafe { write_value(value.cast::<u64>(), found) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolTrimTo(pool: Handle, keep_bytes: usize) -> c_int {
    to_return_code(state().trim_pool(pool.addr(), keep_bytes as u64))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    bytes: usize,
    pool: Handle,
    _: Handle,
) -> c_int {
    let place = state().allocate_from_pool(pool.addr(), bytes);
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(place.and_then(|place| unsafe { write_value(address, place as u64) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> c_int {
    let mut state = state();
    if !state.belongs_to_pool(address as usize) {
        return Code::INVALID_VALUE.0;
    }
    state.streams.schedule_free(stream.addr(), address as usize);
    to_return_code(state.check_usable())
}
