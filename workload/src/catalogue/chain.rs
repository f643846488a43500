//! Kernels that follow each other, each begun by itself or all of them as one graph.

use super::prelude::*;
use crate::cuda::{Graph, Plain};

/// How work that takes several operations is brought to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A kernel for each operation, begun one after the other, as frameworks do it.
    PerOp,
    /// The same kernels, begun by a single call.
    Graph,
    /// One kernel that does everything, in a graph of its own where the driver has graphs: that is
    /// begun 2 us sooner.
    Fused,
}

/// Puts kernels, with the memory that they work on, into a queue.
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

    /// The memory that it was made with, in that order.
    pub(super) fn memory(&self) -> &[DeviceMemory] {
        match self {
            Self::Links { memory, .. } => memory,
            Self::Graph(graph) => graph.memory(),
        }
    }
}

/// A chain that is run as a whole, and whose first memory has the result: so many elements, with
/// the check of some.
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
