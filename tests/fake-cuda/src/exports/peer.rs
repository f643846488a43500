//! Devices that reach each other's memory: here all of them do.

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
    // SAFETY: the caller answers for its pointer.
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
    // A context is known by its device, counted from 1.
    let devices = [sender, receiver]
        .map(|context| state.device((context.addr() as u32).cast_signed().wrapping_sub(1)));
    returned(both.and_then(|()| {
        let [from_device, to_device] = devices;
        // SAFETY: the state has so much on both sides.
        let copy = || unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
        state.copied_to_peer([from_device?, to_device?], bytes, copy);
        Ok(())
    }))
}
