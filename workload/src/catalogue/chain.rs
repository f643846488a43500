//! Sequences of kernels, launched one by one or together as a graph.

use super::prelude::*;
use crate::cuda::{Graph, Plain};

/// The way in which the operations of a workload are launched on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One kernel for each operation, launched one after another as in frameworks.
    PerOp,
    /// One kernel for each operation, all launched by a single call.
    Graph,
    /// One kernel for all operations. If the driver supports graphs, the kernel is launched as a
    /// graph, which takes 2 us less.
    Fused,
}

/// A function that adds kernels to a queue, together with the memory that they use.
pub(super) type Links = Box<
    dyn for<'held> Fn(
        &Queue<'_, 'held>,
        &'held [DeviceMemory],
        &'held [Kernel],
    ) -> Result<(), CudaError>,
>;

pub(super) enum Chain {
    Links {
        links: Links,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
    },
    Graph(Graph),
}

impl Chain {
    pub(super) fn new(
        gpu: &Gpu,
        form: Form,
        links: Links,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
    ) -> Result<Self, CudaError> {
        let is_graph = match form {
            Form::PerOp => false,
            Form::Graph => true,
            Form::Fused => Graph::is_known(&gpu.stream),
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

    pub(super) fn put<'held>(&'held self, queue: &Queue<'_, 'held>) -> Result<(), CudaError> {
        match self {
            Self::Links {
                links,
                memory,
                kernels,
            } => links(queue, memory, kernels),
            Self::Graph(graph) => queue.start(graph),
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

/// Prepares a chain that is launched as a whole. Its first memory contains the result of `elements`
/// elements, which `check` verifies piece by piece.
pub(super) fn prepare_chain<T: Plain + Default>(
    gpu: &Gpu,
    chain: Chain,
    elements: u64,
    check: fn(&[T], u64) -> Verification,
) -> Ready<'_> {
    prepare_work(
        chain,
        move |chain| gpu.time(|queue| chain.put(queue)),
        move |chain| Ok(gpu.check(&chain.memory()[0], elements, check)?),
    )
}
