//! Graphs: kernels with their arguments, kept to be run later. Nothing else can be put into one.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use super::{Handle, give, module};
use crate::{
    activity::Grid,
    code::{Code, Outcome, returned},
    kernels::Arguments,
    state::state,
};

/// A stream: what it keeps while it is captured. Everything else has been done when a call returns.
pub(super) type Stream = Option<Vec<Node>>;

/// A kernel that is run later.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) kernel: &'static module::Kernel,
    pub(super) arguments: Vec<u64>,
    pub(super) grid: Grid,
}

/// Keeps a kernel where its stream is being captured; false where it is to be run now.
///
/// # Safety
/// The stream is one of `cuStreamCreate`, and there are so many arguments of 8 bytes.
pub(super) unsafe fn keep(
    stream: Handle,
    kernel: &'static module::Kernel,
    arguments: *mut *mut c_void,
    grid: Grid,
) -> bool {
    // SAFETY: by the condition above.
    let Some(nodes) = (unsafe { &mut *stream.cast::<Stream>() }) else {
        return false;
    };
    let count = state().parameters.get(kernel.0).copied().unwrap_or(0);
    // SAFETY: by the condition above.
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

/// Refuses what cannot be in a graph while one is made.
pub(super) fn is_free(stream: Handle) -> Outcome {
    // SAFETY: every stream came from `cuStreamCreate`.
    if unsafe { &*stream.cast::<Stream>() }.is_none() {
        Ok(())
    } else {
        Err(Code::CAPTURE_UNSUPPORTED)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBeginCapture_v2(stream: Handle, _mode: c_int) -> c_int {
    // SAFETY: it came from `cuStreamCreate`.
    returned(
        state()
            .check()
            .map(|()| unsafe { stream.cast::<Stream>().write(Some(Vec::new())) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> c_int {
    // SAFETY: it came from `cuStreamCreate`.
    let nodes = unsafe { &mut *stream.cast::<Stream>() }
        .take()
        .ok_or(Code::INVALID_VALUE);
    // SAFETY: the caller answers for its pointer.
    returned(nodes.and_then(|nodes| unsafe { give(graph, Box::into_raw(Box::new(nodes)).cast()) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    made: *mut Handle,
    graph: Handle,
    _flags: u64,
) -> c_int {
    // SAFETY: it came from `cuStreamEndCapture`.
    let nodes = unsafe { &*graph.cast::<Vec<Node>>() }.clone();
    // SAFETY: the caller answers for its pointer.
    returned(unsafe { give(made, Box::into_raw(Box::new(nodes)).cast()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphLaunch(graph: Handle, stream: Handle) -> c_int {
    // SAFETY: it came from `cuGraphInstantiateWithFlags`.
    let nodes = unsafe { &*graph.cast::<Vec<Node>>() };
    returned(nodes.iter().try_for_each(
        |Node {
             kernel,
             arguments,
             grid,
         }| {
            let places: Vec<_> = arguments
                .iter()
                .map(|value| ptr::from_ref(value).cast::<c_void>())
                .collect();
            module::launch(kernel, Arguments(places.as_ptr()), *grid, stream)
        },
    ))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphExecDestroy(graph: Handle) -> c_int {
    // SAFETY: it takes the same.
    unsafe { cuGraphDestroy(graph) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphDestroy(graph: Handle) -> c_int {
    if graph.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // SAFETY: it came from one of the two above, and the caller gives it back once.
    drop(unsafe { Box::from_raw(graph.cast::<Vec<Node>>()) });
    0
}
