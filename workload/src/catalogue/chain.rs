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
    /// One kernel that does everything, in a graph of its own where the driver has graphs: that is begun 2 us sooner.
    Fused,
}

impl Form {
    /// What a small program is in this form, if the CPU has it in those with a kernel for each operation and with one.
    pub(super) const fn about(
        self,
        [id, does, teaches]: [&'static str; 3],
        bound: Bound,
        extent: Extent,
    ) -> About {
        let backends: &[Backend] = if matches!(self, Self::Graph) {
            &[Backend::Cuda]
        } else {
            &[Backend::Cuda, Backend::Cpu]
        };
        About {
            id,
            does,
            teaches,
            dtypes: &[Dtype::Fp32],
            backends,
            bound,
            extent,
        }
    }
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
        Ok(match form {
            Form::Fused if !Graph::is_known(&gpu.stream) => Self::Links {
                links,
                memory,
                kernels,
            },
            Form::Graph | Form::Fused => {
                Self::Graph(Graph::capture(&gpu.stream, memory, kernels, links)?)
            }
            Form::PerOp => Self::Links {
                links,
                memory,
                kernels,
            },
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

/// A chain that is run as a whole, and whose first memory has the result: so many elements, with the check of some.
pub(super) struct Whole<'gpu, T> {
    pub(super) gpu: &'gpu Gpu,
    pub(super) chain: Chain,
    pub(super) elements: u64,
    pub(super) check: fn(&[T], u64) -> Verification,
}

impl<T: Plain + Default> Prepared for Whole<'_, T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        self.gpu.time(|queue| self.chain.put(queue))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self
            .gpu
            .check(&self.chain.memory()[0], self.elements, self.check)?)
    }
}
