//! Kernels that follow each other, each begun by itself or all of them as one graph.

use super::prelude::*;
use crate::cuda::Graph;

/// How work that takes several operations is brought to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A kernel for each operation, begun one after the other, as frameworks do it.
    PerOp,
    /// The same kernels, begun by a single call.
    Graph,
    /// One kernel that does everything.
    Fused,
}

impl Form {
    /// What a small program is in this form, if the CPU has it in those with a kernel for each operation and with one.
    pub(super) const fn about(self, [id, does, teaches]: [&'static str; 3], bound: Bound, extent: Extent) -> About {
        let backends: &[Backend] =
            if matches!(self, Self::Graph) { &[Backend::Cuda] } else { &[Backend::Cuda, Backend::Cpu] };
        About { id, does, teaches, dtypes: &[Dtype::Fp32], backends, bound, extent }
    }
}

pub(super) struct Held<'held> {
    pub(super) memory: &'held [DeviceMemory],
    pub(super) kernels: &'held [Kernel],
}

pub(super) trait Links {
    fn put<'held>(&self, queue: &Queue<'_, 'held>, held: Held<'held>) -> Result<(), CudaError>;
}

pub(super) enum Chain<L> {
    Links { links: L, memory: Vec<DeviceMemory>, kernels: Vec<Kernel> },
    Graph(Graph),
}

impl<L: Links> Chain<L> {
    pub(super) fn new(
        gpu: &Gpu,
        form: Form,
        links: L,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
    ) -> Result<Self, CudaError> {
        if form != Form::Graph {
            return Ok(Self::Links { links, memory, kernels });
        }
        let graph = Graph::capture(&gpu.stream, memory, kernels, |queue, memory, kernels| {
            links.put(queue, Held { memory, kernels })
        })?;
        Ok(Self::Graph(graph))
    }

    pub(super) fn put<'held>(&'held self, queue: &Queue<'_, 'held>) -> Result<(), CudaError> {
        match self {
            Self::Links { links, memory, kernels } => links.put(queue, Held { memory, kernels }),
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

/// A chain that is run as a whole, and whose first memory has the result.
pub(super) struct Whole<'gpu, L> {
    gpu: &'gpu Gpu,
    chain: Chain<L>,
    elements: u64,
    check: fn(&[f32], u64) -> Verification,
}

impl<'gpu, L: Links> Whole<'gpu, L> {
    pub(super) fn new(gpu: &'gpu Gpu, chain: Chain<L>, elements: u64, check: fn(&[f32], u64) -> Verification) -> Self {
        Self { gpu, chain, elements, check }
    }
}

impl<L: Links> Prepared for Whole<'_, L> {
    fn run(&mut self) -> Result<Sample, RunError> {
        self.gpu.time(|queue| self.chain.put(queue))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self.gpu.check(&self.chain.memory()[0], self.elements, self.check)?)
    }
}
