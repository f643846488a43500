//! Modules, and the launch of their kernels.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr, thread,
    time::Duration,
};

use super::{Handle, graph, write_value};
use crate::{
    activity::{self, Grid},
    code::{Code, Outcome, to_return_code},
    kernels::{self, Arguments, KernelFunction},
    state::state,
    streams,
};

enum Module {
    Ptx(Vec<String>),
    /// Machine code. Only its first bytes are checked.
    Cubin,
}
pub(super) type Kernel = (&'static str, KernelFunction);

/// The first bytes of machine code.
const ELF_MAGIC: &str = "\x7fELF";

/// The compiler's error for a text that is not PTX, because it contains no kernel. The error is
/// written into the buffer that the caller passes as the value of the first option.
const COMPILER_ERROR: &[u8] = b"ptxas fatal   : Ptx assembly aborted due to errors\0";

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_void,
    options: c_uint,
    _: *mut c_int,
    values: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller passes either a text that ends with a NUL, or machine code, which is
    // longer than the ELF header's first bytes.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    if text.starts_with(ELF_MAGIC) {
        // SAFETY: the caller passes a pointer that is null or valid for writes.
        return to_return_code(
            state()
                .check_usable()
                .and_then(|()| unsafe { write_module_handle(module, Module::Cubin) }),
        );
    }
    let names = text
        .split(".visible .entry ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next());
    let names: Vec<_> = names.map(str::to_owned).collect();
    if names.is_empty() {
        if options > 0 {
            // SAFETY: the first value is the buffer, and the caller's buffer is larger than this
            // text.
            unsafe {
                ptr::copy_nonoverlapping(
                    COMPILER_ERROR.as_ptr(),
                    (*values).cast::<u8>(),
                    COMPILER_ERROR.len(),
                );
            };
        }
        return Code::INVALID_PTX.0;
    }
    let takes = |rest: &str| {
        rest.split(')')
            .next()
            .map_or(0, |head| head.matches(".param .").count())
    };
    let kernels = text
        .split(".visible .entry ")
        .skip(1)
        .filter_map(|rest| rest.split_once('('));
    state()
        .parameters
        .extend(kernels.map(|(name, rest)| (name.to_owned(), takes(rest))));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_usable()
            .and_then(|()| unsafe { write_module_handle(module, Module::Ptx(names)) }),
    )
}

/// Writes the handle of a module.
///
/// # Safety
/// `place` is null or valid for writes.
unsafe fn write_module_handle(place: *mut Handle, module: Module) -> Outcome {
    // SAFETY: the caller upholds this function's safety contract.
    unsafe { write_value(place, Box::into_raw(Box::new(module)).cast()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleUnload(module: Handle) -> c_int {
    if module.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // SAFETY: the module came from `cuModuleLoadDataEx`, and the caller unloads it once.
    drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    kernel: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> c_int {
    // SAFETY: the module came from `cuModuleLoadDataEx`, and the name ends with a NUL.
    let (module, name) = unsafe {
        (
            &*module.cast::<Module>(),
            CStr::from_ptr(name).to_string_lossy(),
        )
    };
    let has = match module {
        Module::Ptx(names) => names.iter().any(|known| *known == name),
        Module::Cubin => true,
    };
    let known = has.then(|| kernels::find_kernel(&name)).flatten();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        known.ok_or(Code::NOT_FOUND).and_then(|known| unsafe {
            write_value(kernel, ptr::from_ref(known).cast_mut().cast())
        }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncSetAttribute(kernel: Handle, attribute: c_int, value: c_int) -> c_int {
    match (attribute, value) {
        _ if kernel.is_null() => Code::INVALID_HANDLE.0,
        // Attribute 8 is the size of dynamic shared memory. The upper limit is the maximum for a
        // block.
        (8, 0..=232_448) => 0,
        _ => Code::INVALID_VALUE.0,
    }
}

/// Each kernel reports 64 registers and code for Hopper.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    kernel: Handle,
) -> c_int {
    let known = match attribute {
        _ if kernel.is_null() => Err(Code::INVALID_HANDLE),
        4 => Ok(64),
        6 => Ok(90),
        1 | 3 => Ok(0),
        _ => Err(Code::INVALID_VALUE),
    };
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(known.and_then(|known| unsafe { write_value(value, known) }))
}

/// Returns the number of blocks that have 2048 threads in total.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    kernel: Handle,
    threads: c_int,
    _: usize,
) -> c_int {
    let known = if kernel.is_null() {
        Err(Code::INVALID_HANDLE)
    } else {
        Ok(2048 / threads.max(1))
    };
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(known.and_then(|known| unsafe { write_value(blocks, known) }))
}

/// Creates a tensor map. Only the real driver knows the real format. Here, a map begins with the
/// address of the matrix, which is all that the kernels need.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The parameters are those of `cuda.h`.
unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut [u64; 16],
    _: c_int,
    _: c_uint,
    address: u64,
    _: *const u64,
    _: *const u64,
    _: *const c_uint,
    _: *const c_uint,
    _: c_int,
    _: c_int,
    _: c_int,
    _: c_int,
) -> c_int {
    let mut words = [0; 16];
    words[0] = address;
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_usable()
            .and_then(|()| unsafe { write_value(map, words) }),
    )
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // The parameters are those of `cuda.h`.
unsafe extern "C" fn cuLaunchKernel(
    kernel: Handle,
    blocks: c_uint,
    _: c_uint,
    _: c_uint,
    threads: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    stream: Handle,
    arguments: *mut *mut c_void,
    _: *mut *mut c_void,
) -> c_int {
    // SAFETY: the kernel came from `cuModuleGetFunction`.
    let kernel: &'static Kernel = unsafe { &*kernel.cast::<Kernel>() };
    if let Err(code) = kernels::check_threads(kernel.0, threads) {
        return code.0;
    }
    let grid = Grid { blocks, threads };
    // SAFETY: the stream came from `cuStreamCreate`, and every argument has 8 bytes.
    if unsafe { graph::try_capture_kernel(stream, kernel, arguments, grid) } {
        return 0;
    }
    to_return_code(launch_kernel(
        kernel,
        Arguments(arguments.cast()),
        grid,
        stream,
    ))
}

/// The first fields of `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfig {
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
}

/// Ignores the launch attributes, because here kernels always run one after the other and cannot
/// overlap.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    kernel: Handle,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller passes valid pointers.
    unsafe {
        let LaunchConfig {
            blocks,
            threads,
            shared_bytes,
            stream,
        } = &*config;
        let ([x, y, z], [across, down, deep]) = (*blocks, *threads);
        cuLaunchKernel(
            kernel,
            x,
            y,
            z,
            across,
            down,
            deep,
            *shared_bytes,
            *stream,
            arguments,
            extra,
        )
    }
}

pub(super) fn launch_kernel(
    (name, work): &Kernel,
    arguments: Arguments,
    grid: Grid,
    stream: Handle,
) -> Outcome {
    let (load, fate, ms, queued_us, begun) = {
        let mut state = state();
        let load = state.compute_load(name, grid);
        (
            load,
            state.count_launch_and_find_faults(name)?,
            state.scenario.kernel_ms,
            state.scenario.queued_us,
            state.start_work(load),
        )
    };
    if fate.is_stuck {
        loop {
            thread::park();
        }
    }
    thread::sleep(Duration::from_millis(ms));
    let (address, bytes) = if fate.is_skipped {
        (0, 0)
    } else {
        activity::slow_down(|| work(arguments, u64::from(grid.blocks)))
    };
    {
        let waited = streams::take_wait_time().max(Duration::from_micros(queued_us));
        let mut state = state();
        state.end_work(begun, activity::take_recorded(bytes));
        if !waited.is_zero() {
            let after = state.streams.keep_busy(stream.addr(), waited);
            state.record_future_load(load, after, waited);
        }
    }
    if fate.is_skipped {
        return Ok(());
    }
    if bytes > 0 {
        // If the output is not in valid device memory, a real kernel would have written outside of
        // its memory.
        state()
            .check_range(address, bytes)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?;
    }
    if fate.is_flipped {
        let place = (address as usize + bytes / 2) as *mut u8;
        // SAFETY: the kernel has just written to this address.
        unsafe { place.write(place.read() ^ 1) };
    }
    Ok(())
}
