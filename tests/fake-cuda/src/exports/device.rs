//! Devices and their contexts.

use std::ffi::{c_char, c_int};

use super::{Handle, write_value};
use crate::{
    activity::{MAX_WARPS, MEMORY_MHZ},
    code::{Code, Outcome, to_return_code},
    state::{current_device, set_current_device, state},
};

const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const MULTIPROCESSORS: c_int = 16;
const MEMORY_BUS_BITS: c_int = 37;

/// The attributes of an H200, by `CUdevice_attribute`.
const ATTRIBUTES: [(c_int, c_int); 11] = [
    (1, 1024),
    (10, 32),
    (12, 65_536),
    (13, 1_980_000),
    (32, 1),
    (36, MEMORY_MHZ.cast_signed() * 1000),
    (38, 62_914_560),
    (39, MAX_WARPS.cast_signed() * 32),
    (40, 3),
    (81, 233_472),
    (97, 232_448),
];

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    let state = state();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state
            .check_usable()
            .and_then(|()| unsafe { write_value(count, state.scenario.devices.cast_signed()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_device(ordinal)
            .and_then(|_| unsafe { write_value(device, ordinal) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, room: c_int, device: c_int) -> c_int {
    let state = state();
    let text = state
        .check_device(device)
        .map(|_| state.scenario.name.clone());
    // SAFETY: the caller passes a pointer to a buffer of `room` bytes.
    to_return_code(text.and_then(|text| unsafe { write_text(&text, name, room) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, room: c_int, device: c_int) -> c_int {
    let text = state()
        .check_device(device)
        .map(|device| format!("0000:{:02X}:00.0", 0x1a + device));
    // SAFETY: the caller passes a pointer to a buffer of `room` bytes.
    to_return_code(text.and_then(|text| unsafe { write_text(&text, id, room) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    let state = state();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state
            .check_device(device)
            .and_then(|device| unsafe { write_value(uuid, state.scenario.uuid(device)) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: both functions have the same requirements.
    unsafe { cuDeviceGetUuid(uuid, device) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    device: c_int,
) -> c_int {
    let state = state();
    let [major, minor] = state.scenario.capability;
    let own = [
        (CAPABILITY_MAJOR, major),
        (CAPABILITY_MINOR, minor),
        (
            MULTIPROCESSORS,
            state.scenario.multiprocessors.cast_signed(),
        ),
        (
            MEMORY_BUS_BITS,
            state.scenario.memory_bus_bits.cast_signed(),
        ),
    ];
    let known = own
        .into_iter()
        .chain(ATTRIBUTES)
        .find(|(known, _)| *known == attribute)
        .ok_or(Code::INVALID_VALUE);
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state
            .check_device(device)
            .and_then(|_| unsafe { write_value(value, known?.1) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    let state = state();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state
            .check_device(device)
            .and_then(|_| unsafe { write_value(bytes, state.total_bytes()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) -> c_int {
    let mut state = state();
    to_return_code(state.check_device(device).and_then(|device| {
        state.change_context_count(1);
        // The handle of a context is the index of its device plus 1, so it is never null.
        unsafe {
            write_value(
                context,
                std::ptr::without_provenance_mut(device as usize + 1),
            )
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int {
    let mut state = state();
    state.change_context_count(-1);
    to_return_code(state.check_device(device).map(|device| {
        if current_device() == Ok(device) {
            set_current_device(None);
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSetCurrent(context: Handle) -> c_int {
    let device = context.addr().checked_sub(1).map(|device| device as u32);
    to_return_code(state().check_usable().map(|()| set_current_device(device)))
}

/// # Safety
/// `place` is null or points to a buffer of `room` bytes.
unsafe fn write_text(text: &str, place: *mut c_char, room: c_int) -> Outcome {
    if place.is_null() || (room as usize) <= text.len() {
        return Err(Code::INVALID_VALUE);
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: the caller upholds this function's safety contract, and the text with its NUL
        // fits into `room` bytes.
        unsafe { place.cast::<u8>().add(at).write(byte) };
    }
    Ok(())
}
