//! Code, and what runs it.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr, thread,
    time::Duration,
};

use super::{Handle, give, graph};
use crate::{
    activity::{self, Grid},
    code::{Code, Outcome, returned},
    kernels::{self, Arguments, Work},
    state::state,
    streams,
};

enum Module {
    Ptx(Vec<String>),
    /// Machine code, of which only its beginning is looked at.
    Cubin,
}
pub(super) type Kernel = (&'static str, Work);

/// How machine code begins.
const ELF: &str = "\x7fELF";

/// A text without a kernel is no PTX; real compilers say more, into the first of the options'
/// buffers.
const COMPLAINT: &[u8] = b"ptxas fatal   : Ptx assembly aborted due to errors\0";

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_void,
    options: c_uint,
    _: *mut c_int,
    values: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller gives a text that ends in a NUL, or machine code, which is longer than
    // this.
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
    if text.starts_with(ELF) {
        // SAFETY: the caller answers for its pointer.
        return returned(
            state()
                .check()
                .and_then(|()| unsafe { give_module(module, Module::Cubin) }),
        );
    }
    let names = text
        .split(".visible .entry ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next());
    let names: Vec<_> = names.map(str::to_owned).collect();
    if names.is_empty() {
        if options > 0 {
            // SAFETY: the first value is the buffer, and the caller's is larger than this.
            unsafe {
                ptr::copy_nonoverlapping(
                    COMPLAINT.as_ptr(),
                    (*values).cast::<u8>(),
                    COMPLAINT.len(),
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
    // SAFETY: the caller answers for its pointer.
    returned(
        state()
            .check()
            .and_then(|()| unsafe { give_module(module, Module::Ptx(names)) }),
    )
}

/// Writes where a module is.
///
/// # Safety
/// The place is one for such a value, or null.
unsafe fn give_module(place: *mut Handle, module: Module) -> Outcome {
    // SAFETY: by the condition above.
    unsafe { give(place, Box::into_raw(Box::new(module)).cast()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleUnload(module: Handle) -> c_int {
    if module.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // SAFETY: it came from `cuModuleLoadDataEx`, and the caller gives it back once.
    drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    kernel: *mut Handle,
    module: Handle,
    name: *const c_char,
) -> c_int {
    // SAFETY: the module came from `cuModuleLoadDataEx`, and the name ends in a NUL.
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
    let known = has.then(|| kernels::find(&name)).flatten();
    // SAFETY: the caller answers for its pointer.
    returned(
        known
            .ok_or(Code::NOT_FOUND)
            .and_then(|known| unsafe { give(kernel, ptr::from_ref(known).cast_mut().cast()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuFuncSetAttribute(kernel: Handle, attribute: c_int, value: c_int) -> c_int {
    match (attribute, value) {
        _ if kernel.is_null() => Code::INVALID_HANDLE.0,
        // Dynamic shared memory, of which a block has so much at most.
        (8, 0..=232_448) => 0,
        _ => Code::INVALID_VALUE.0,
    }
}

/// Each kernel is said to have 64 registers, and code of Hopper's.
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
    // SAFETY: the caller answers for its pointer.
    returned(known.and_then(|known| unsafe { give(value, known) }))
}

/// As many blocks as have 2048 threads.
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
    // SAFETY: the caller answers for its pointer.
    returned(known.and_then(|known| unsafe { give(blocks, known) }))
}

/// A map that the real driver alone can read: here it begins with the address, which is what the
/// kernels want.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // So it is in `cuda.h`.
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
    // SAFETY: the caller answers for its pointer.
    returned(state().check().and_then(|()| unsafe { give(map, words) }))
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)] // So it is in `cuda.h`.
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
    // SAFETY: it came from `cuModuleGetFunction`.
    let kernel: &'static Kernel = unsafe { &*kernel.cast::<Kernel>() };
    if let Err(code) = kernels::check_threads(kernel.0, threads) {
        return code.0;
    }
    let grid = Grid { blocks, threads };
    // SAFETY: the stream came from `cuStreamCreate`, and every argument has 8 bytes.
    if unsafe { graph::keep(stream, kernel, arguments, grid) } {
        return 0;
    }
    returned(launch(kernel, Arguments(arguments.cast()), grid, stream))
}

/// The first members of `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfig {
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
}

/// Attributes are ignored: kernels run one after the other here.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    kernel: Handle,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller answers for its pointers.
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

pub(super) fn launch(
    (name, work): &Kernel,
    arguments: Arguments,
    grid: Grid,
    stream: Handle,
) -> Outcome {
    let (load, fate, ms, begun) = {
        let mut state = state();
        let load = state.load(grid);
        (
            load,
            state.launched(name)?,
            state.scenario.kernel_ms,
            state.begin(load),
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
        work(arguments, u64::from(grid.blocks))
    };
    {
        let (waited, mut state) = (streams::waited(), state());
        state.end(begun, activity::told(bytes));
        if !waited.is_zero() {
            let after = state.streams.occupy(stream.addr(), waited);
            state.goes_on(load, after, waited);
        }
    }
    if fate.is_skipped {
        return Ok(());
    }
    if bytes > 0 {
        // A real kernel would have run wild before anybody knew.
        state()
            .holds(address, bytes)
            .map_err(|_| Code::ILLEGAL_ADDRESS)?;
    }
    if fate.is_flipped {
        let place = (address as usize + bytes / 2) as *mut u8;
        // SAFETY: the kernel has just written there.
        unsafe { place.write(place.read() ^ 1) };
    }
    Ok(())
}
