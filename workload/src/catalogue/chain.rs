//! Sequences of kernels that are launched one by one, or together as a graph.

use super::prelude::*;
use crate::cuda::{Graph, Plain};

/// How the operations of a workload are launched on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchMethod {
    /// One kernel per operation, launched one after another as in other frameworks.
    PerOp,
    /// One kernel per operation, all launched by a single call.
    Graph,
    /// One kernel for all operations. If the driver supports graphs, the kernel is launched as a
    /// graph, which takes 2 us less than a normal launch.
    Fused,
}

/// A function that adds the kernels of a run to a queue. Its arguments are the queue, the memory
/// that the kernels use, and the kernels.
pub(super) type QueueKernels = Box<
    dyn for<'held> Fn(
        &Queue<'_, 'held>,
        &'held [DeviceMemory],
        &'held [Kernel],
    ) -> Result<(), CudaError>,
>;

pub(super) enum Chain {
    Links {
        links: QueueKernels,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
    },
    Graph(Graph),
}

impl Chain {
    pub(super) fn new(
        gpu: &Gpu,
        form: LaunchMethod,
        links: QueueKernels,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
    ) -> Result<Self, CudaError> {
        let is_graph = match form {
            LaunchMethod::PerOp => false,
            LaunchMethod::Graph => true,
            LaunchMethod::Fused => Graph::is_supported(&gpu.stream),
        };
        Ok(if is_graph {
            Self::Graph(Graph::capture(&gpu.stream, memory, kernels, links)?)
        } else {
            Self::Links {
                links,
                memory,
                kernels,
            }
        })
    }

    pub(super) fn enqueue<'held>(&'held self, queue: &Queue<'_, 'held>) -> Result<(), CudaError> {
        match self {
            Self::Links {
                links,
                memory,
                kernels,
            } => links(queue, memory, kernels),
            Self::Graph(graph) => queue.launch_graph(graph),
        }
    }

    /// Returns the memory that the chain was created with, in the same order.
    pub(super) fn memory(&self) -> &[DeviceMemory] {
        match self {
            Self::Links { memory, .. } => memory,
            Self::Graph(graph) => graph.memory(),
        }
    }
}

/// Prepares a chain of kernels that is launched as a whole. The result has `elements` elements, and
/// is in the first memory of the chain. `check` verifies the result piece by piece.
pub(super) fn prepare_chain<T: Plain + Default>(
    gpu: &Gpu,
    chain: Chain,
    elements: u64,
    check: fn(&[T], u64) -> Verification,
) -> PreparedResult<'_> {
    prepare_work(
        chain,
        move |chain| gpu.run_timed(|queue| chain.enqueue(queue)),
        move |chain| Ok(gpu.check_memory_in_pieces(&chain.memory()[0], elements, check)?),
    )
}
