//! The number of GPUs, and lookups of their handles.

use std::ffi::{c_char, c_uint};

use gpumon_probe::vendor::sim::{GpuIdentity, Machine};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::{
    call::call_lookup_function,
    code::Code,
    out::{read_text, write_output_value},
};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: by NVML's contract, the pointer is null or may be written.
    call_lookup_function(
        "nvmlDeviceGetHandleByIndex_v2",
        |machine| find_by_index(machine, index),
        |gpu| unsafe { write_output_value(device, gpu.handle()) },
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: by NVML's contract, the text ends with a NUL, and the pointers are null or valid.
    let find = |machine: &Machine| {
        find_gpu_by_text(machine, unsafe { read_text(uuid) }?, |gpu, uuid| {
            gpu.uuid == uuid
        })
    };
    // SAFETY: by NVML's contract, the pointer is null or may be written.
    call_lookup_function("nvmlDeviceGetHandleByUUID", find, |gpu| unsafe {
        write_output_value(device, gpu.handle())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleBySerial(
    serial: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // SAFETY: by NVML's contract, the text ends with a NUL, and the pointers are null or valid.
    let find = |machine: &Machine| {
        find_gpu_by_text(machine, unsafe { read_text(serial) }?, |gpu, serial| {
            gpu.serial == serial
        })
    };
    // SAFETY: by NVML's contract, the pointer is null or may be written.
    call_lookup_function("nvmlDeviceGetHandleBySerial", find, |gpu| unsafe {
        write_output_value(device, gpu.handle())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    pci_bus_id: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    // The domain may be written with four or eight digits, and letters may be in upper or lower
    // case.
    let same = |gpu: &GpuIdentity, id: &str| {
        let own = gpu.pci_bus_id.as_str();
        own.eq_ignore_ascii_case(id)
            || own
                .strip_prefix("0000")
                .is_some_and(|short| short.eq_ignore_ascii_case(id))
    };
    // SAFETY: by NVML's contract, the text ends with a NUL, and the pointers are null or valid.
    let find =
        |machine: &Machine| find_gpu_by_text(machine, unsafe { read_text(pci_bus_id) }?, same);
    // SAFETY: by NVML's contract, the pointer is null or may be written.
    call_lookup_function("nvmlDeviceGetHandleByPciBusId_v2", find, |gpu| unsafe {
        write_output_value(device, gpu.handle())
    })
}

fn find_by_index(machine: &Machine, index: c_uint) -> Result<u32, Code> {
    machine
        .found
        .get(index as usize)
        .copied()
        .ok_or(Code::INVALID_ARGUMENT)
}

fn find_gpu_by_text(
    machine: &Machine,
    wanted: &str,
    is: impl Fn(&GpuIdentity, &str) -> bool,
) -> Result<u32, Code> {
    let mut found = machine.found.iter().copied();
    found
        .find(|gpu| is(machine.world.gpu_identity(*gpu), wanted))
        .ok_or(Code::NOT_FOUND)
}
