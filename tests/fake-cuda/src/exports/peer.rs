//! Access between devices. All devices can access each other's memory.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

use super::{Handle, give, graph};
use crate::{code::returned, state::state};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    let state = state();
    let both = state.device(device).and(state.device(peer));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    returned(both.and_then(|_| unsafe { give(can, c_int::from(device != peer)) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxEnablePeerAccess(_peer: Handle, _flags: c_uint) -> c_int {
    returned(state().check())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    receiver: Handle,
    from: u64,
    sender: Handle,
    bytes: usize,
    stream: Handle,
) -> c_int {
    let mut state = state();
    let both = graph::is_free(stream)
        .and(state.holds(to, bytes))
        .and(state.holds(from, bytes));
    // The handle of a context is the index of its device plus 1.
    let devices = [sender, receiver]
        .map(|context| state.device((context.addr() as u32).cast_signed().wrapping_sub(1)));
    returned(both.and_then(|()| {
        let [from_device, to_device] = devices;
        // SAFETY: the state has checked both ranges.
        let copy = || unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
        state.copied_to_peer([from_device?, to_device?], bytes, copy);
        Ok(())
    }))
}
