//! CUDA graphs: recorded kernels with their arguments, which run later. Graphs support no other
//! operations.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use super::{Handle, module, write_value};
use crate::{
    activity::Grid,
    code::{Code, Outcome, to_return_code},
    kernels::Arguments,
    state::state,
};

/// The kernels that a stream has captured so far, or `None` if it is not being captured. All other
/// work of a stream is already complete when its call returns.
pub(super) type Stream = Option<Vec<Node>>;

/// A kernel in a graph.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) kernel: &'static module::Kernel,
    pub(super) arguments: Vec<u64>,
    pub(super) grid: Grid,
}

/// Adds a kernel to the stream's graph if the stream is being captured. Otherwise returns `false`,
/// and the caller has to run the kernel now.
///
/// # Safety
/// The stream comes from `cuStreamCreate`, and each of the kernel's arguments has 8 bytes.
pub(super) unsafe fn try_capture_kernel(
    stream: Handle,
    kernel: &'static module::Kernel,
    arguments: *mut *mut c_void,
    grid: Grid,
) -> bool {
    // SAFETY: the caller upholds this function's safety contract.
    let Some(nodes) = (unsafe { &mut *stream.cast::<Stream>() }) else {
        return false;
    };
    let count = state().parameters.get(kernel.0).copied().unwrap_or(0);
    // SAFETY: the caller upholds this function's safety contract.
    let arguments = (0..count)
        .map(|index| unsafe { (*arguments.add(index)).cast::<u64>().read_unaligned() })
        .collect();
    nodes.push(Node {
        kernel,
        arguments,
        grid,
    });
    true
}

/// Returns an error if the stream is being captured, because a graph does not support the
/// operation.
pub(super) fn check_not_capturing(stream: Handle) -> Outcome {
    // SAFETY: every stream comes from `cuStreamCreate`.
    if unsafe { &*stream.cast::<Stream>() }.is_none() {
        Ok(())
    } else {
        Err(Code::CAPTURE_UNSUPPORTED)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Handle, _mode: c_int) -> c_int {
    // SAFETY: the stream came from `cuStreamCreate`.
    to_return_code(
        state()
            .check_usable()
            .map(|()| unsafe { stream.cast::<Stream>().write(Some(Vec::new())) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> c_int {
    // SAFETY: the stream came from `cuStreamCreate`.
    let nodes = unsafe { &mut *stream.cast::<Stream>() }
        .take()
        .ok_or(Code::INVALID_VALUE);
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        nodes
            .and_then(|nodes| unsafe { write_value(graph, Box::into_raw(Box::new(nodes)).cast()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    made: *mut Handle,
    graph: Handle,
    _flags: u64,
) -> c_int {
    // SAFETY: the graph came from `cuStreamEndCapture`.
    let nodes = unsafe { &*graph.cast::<Vec<Node>>() }.clone();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(unsafe { write_value(made, Box::into_raw(Box::new(nodes)).cast()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphLaunch(graph: Handle, stream: Handle) -> c_int {
    // SAFETY: the graph came from `cuGraphInstantiateWithFlags`.
    let nodes = unsafe { &*graph.cast::<Vec<Node>>() };
    to_return_code(nodes.iter().try_for_each(
        |Node {
             kernel,
             arguments,
             grid,
         }| {
            let places: Vec<_> = arguments
                .iter()
                .map(|value| ptr::from_ref(value).cast::<c_void>())
                .collect();
            module::launch_kernel(kernel, Arguments(places.as_ptr()), *grid, stream)
        },
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecDestroy(graph: Handle) -> c_int {
    // SAFETY: both functions have the same requirements.
    unsafe { cuGraphDestroy(graph) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphDestroy(graph: Handle) -> c_int {
    if graph.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // SAFETY: the graph came from one of the two functions above, and the caller destroys it once.
    drop(unsafe { Box::from_raw(graph.cast::<Vec<Node>>()) });
    0
}
