//! Device and pinned memory, copies and fills. All work is complete when the call returns.

use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
};

use fake_gpu_state::Activity;

use super::{Handle, give, graph};
use crate::{
    activity::Grid,
    code::returned,
    state::{current, state},
};

/// The number of bytes that one block of a fill writes.
const FILLED: usize = 16 << 10;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    let state = state();
    returned(state.check().and_then(|()| {
        // SAFETY: the caller passes valid pointers.
        unsafe {
            give(free, state.free_bytes(current()?))?;
            give(total, state.total_bytes())
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    let place = current().and_then(|device| state().allocate(Some(device), bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(place.and_then(|place| unsafe { give(address, place as u64) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    returned(state().free(address as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(
    place: *mut *mut c_void,
    bytes: usize,
    _flags: c_uint,
) -> c_int {
    let found = current().and_then(|_| state().allocate(None, bytes));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(
        found.and_then(|found| unsafe { give(place, ptr::with_exposed_provenance_mut(found)) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeHost(place: *mut c_void) -> c_int {
    returned(state().free(place.expose_provenance()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let mut state = state();
    returned(
        graph::is_free(stream)
            .and(state.holds(to, bytes))
            .map(|()| {
                let did = Activity {
                    pcie_rx_bytes: bytes as u64,
                    ..Activity::NONE
                };
                // SAFETY: the state has checked the device's side, and the caller guarantees the
                // host's side.
                state.copied(did, || unsafe {
                    ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes);
                });
            }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let mut state = state();
    returned(
        graph::is_free(stream)
            .and(state.holds(from, bytes))
            .map(|()| {
                let did = Activity {
                    pcie_tx_bytes: bytes as u64,
                    ..Activity::NONE
                };
                // SAFETY: the state has checked the device's side, and the caller guarantees the
                // host's side.
                state.copied(did, || unsafe {
                    ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes);
                });
            }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8Async(
    address: u64,
    byte: u8,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let mut state = state();
    returned(
        graph::is_free(stream)
            .and(state.holds(address, bytes))
            .map(|()| {
                // The driver fills memory with a kernel.
                let load = state.load(Grid {
                    blocks: bytes.div_ceil(FILLED) as u32,
                    threads: 1024,
                });
                let begun = state.begin(load);
                // SAFETY: the state has checked the range.
                unsafe { ptr::write_bytes(address as *mut u8, byte, bytes) };
                state.end(
                    begun,
                    Activity {
                        dram_bytes: bytes as u64,
                        ..Activity::NONE
                    },
                );
            }),
    )
}
