//! Device and pinned memory, copies and fills. All work is complete when the call returns.

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
};

use fake_gpu_state::Activity;

use super::{Handle, graph, write_value};
use crate::{
    activity::{Grid, record_copy, record_work},
    code::to_return_code,
    state::{current_device, state},
};

/// The maximum number of bytes that one block of a fill writes.
const MAX_COPIED_BYTES: usize = 16 << 10;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    let state = state();
    to_return_code(state.check_usable().and_then(|()| {
        // SAFETY: the caller passes valid pointers.
        unsafe {
            write_value(free, state.free_bytes(current_device()?))?;
            write_value(total, state.total_bytes())
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    let place = current_device().and_then(|device| state().allocate(Some(device), bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(place.and_then(|place| unsafe { write_value(address, place as u64) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    to_return_code(state().free_allocation(address as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(
    place: *mut *mut c_void,
    bytes: usize,
    _flags: c_uint,
) -> c_int {
    let found = current_device().and_then(|_| state().allocate(None, bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        found.and_then(|found| unsafe {
            write_value(place, ptr::with_exposed_provenance_mut(found))
        }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeHost(place: *mut c_void) -> c_int {
    to_return_code(state().free_allocation(place.expose_provenance()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let checked = graph::check_not_capturing(stream).and(state().check_range(to, bytes));
    to_return_code(checked.map(|()| {
        let did = Activity {
            pcie_rx_bytes: bytes as u64,
            ..Activity::NONE
        };
        // SAFETY: the state has checked the range of device memory, and the caller
        // guarantees that the range of host memory is valid.
        record_copy(did, || unsafe {
            ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes);
        });
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let checked = graph::check_not_capturing(stream).and(state().check_range(from, bytes));
    to_return_code(checked.map(|()| {
        let did = Activity {
            pcie_tx_bytes: bytes as u64,
            ..Activity::NONE
        };
        // SAFETY: the state has checked the range of device memory, and the caller
        // guarantees that the range of host memory is valid.
        record_copy(did, || unsafe {
            ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes);
        });
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8Async(
    address: u64,
    byte: u8,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let checked = graph::check_not_capturing(stream).and(state().check_range(address, bytes));
    to_return_code(checked.map(|()| {
        // The driver fills memory with a kernel.
        let grid = Grid {
            blocks: bytes.div_ceil(MAX_COPIED_BYTES) as u32,
            threads: 1024,
        };
        let load = state().compute_load("memset", grid);
        let did = Activity {
            dram_bytes: bytes as u64,
            ..Activity::NONE
        };
        // SAFETY: the state has checked that this range is allocated device memory.
        record_work(load, did, || unsafe {
            ptr::write_bytes(address as *mut u8, byte, bytes);
        });
    }))
}
