//! Access between devices. All devices can access each other's memory.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

use super::{Handle, graph, write_value};
use crate::{activity::record_peer_copy, code::to_return_code, state::state};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    let state = state();
    let both = state.check_device(device).and(state.check_device(peer));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(both.and_then(|_| unsafe { write_value(can, c_int::from(device != peer)) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxEnablePeerAccess(_peer: Handle, _flags: c_uint) -> c_int {
    to_return_code(state().check_usable())
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
    let (both, [from_device, to_device]) = {
        let state = state();
        let both = graph::check_not_capturing(stream)
            .and(state.check_range(to, bytes))
            .and(state.check_range(from, bytes));
        // The handle of a context is the index of its device plus 1.
        let device = |context: Handle| (context.addr() as u32).cast_signed().wrapping_sub(1);
        let devices = [sender, receiver].map(|context| state.check_device(device(context)));
        (both, devices)
    };
    to_return_code(both.and_then(|()| {
        // SAFETY: the state has checked both ranges.
        let copy = || unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
        record_peer_copy([from_device?, to_device?], bytes, copy);
        Ok(())
    }))
}
