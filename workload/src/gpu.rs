//! A GPU that runs workloads.

use std::rc::Rc;

use crate::{
    cuda::{
        Argument, Attribute, Code, Context, CudaError, Device, DeviceMemory, Grid, Kernel, Plain,
        Queue, Stream, Unavailable,
    },
    error::RunError,
    info::Cpu,
    kernels,
    memory_budget::MemoryBudget,
    protocol::{DeviceName, Verification},
    real::Real,
    workload::{Sample, WORD_BYTES},
};

/// The number of threads per block, unless a kernel needs another number.
pub(crate) const THREADS: u32 = 256;
/// The byte that fills poisoned memory. Floating-point numbers with all bits set are NaN.
const POISON: u8 = 0xff;
/// The size of the pieces in which results are read back, so that the check needs little host
/// memory.
const CHUNK_BYTES: u64 = 32 << 20;

impl Grid {
    /// Returns a grid with the usual number of threads per block.
    pub(crate) fn of_blocks(blocks: u64) -> Self {
        Self {
            blocks: blocks as u32,
            threads: THREADS,
        }
    }
}

/// Returns a grid with at least one thread for each element.
pub(crate) fn thread_each(elements: u64) -> Grid {
    Grid::of_blocks(elements.div_ceil(u64::from(THREADS)).max(1))
}

pub(crate) struct Gpu {
    /// The stream is the first field, so that it is dropped before its context.
    pub(crate) stream: Stream,
    pub(crate) context: Rc<Context>,
    /// Whether another process computes on this GPU. In this case, at most a quarter of the free
    /// memory is used.
    pub(crate) is_shared: bool,
    neighbor: Option<Neighbor>,
    /// Whether another process computes on one of the GPUs after this one.
    pub(crate) has_shared_neighbors: bool,
}

/// The second GPU of a workload that needs two.
#[derive(Clone)]
pub(crate) struct Neighbor {
    device: Device,
    is_shared: bool,
}

impl Gpu {
    pub(crate) fn open(device: &Device) -> Result<Self, CudaError> {
        let context = Context::new(device)?;
        Ok(Self {
            stream: context.stream()?,
            context,
            is_shared: false,
            neighbor: None,
            has_shared_neighbors: false,
        })
    }

    /// Sets the second GPU for workloads that need two.
    pub(crate) fn pair_with(&mut self, other: Neighbor) {
        self.neighbor = Some(other);
    }

    /// Returns this GPU as the second one for another GPU.
    pub(crate) fn as_neighbor(&self) -> Neighbor {
        Neighbor {
            device: self.device().clone(),
            is_shared: self.is_shared,
        }
    }

    /// Returns the second GPU for workloads that need two: the one that was set, or else the next
    /// GPU by index, where the first follows the last. Returns `None` if there is no other GPU.
    pub(crate) fn neighbor(&self) -> Result<Option<Neighbor>, Unavailable> {
        if self.neighbor.is_some() {
            return Ok(self.neighbor.clone());
        }
        let devices = self.device().driver().devices()?;
        let next = devices.get((self.device().index as usize + 1) % devices.len());
        let next = next.filter(|next| next.index != self.device().index);
        Ok(next.map(|next| Neighbor {
            device: next.clone(),
            is_shared: self.is_shared || self.has_shared_neighbors,
        }))
    }

    pub(crate) fn device(&self) -> &Device {
        &self.context.device
    }

    pub(crate) fn memory_budget(&self) -> Result<MemoryBudget, CudaError> {
        let cache = self
            .device()
            .attribute(Attribute::L2CacheBytes)
            .unwrap_or(0)
            .max(0);
        let budget =
            MemoryBudget::for_gpu(self.device().index, self.context.memory()?, cache as u64);
        Ok(MemoryBudget {
            is_shared: self.is_shared,
            ..budget
        })
    }

    /// Executes the operations that `work` adds to the queue, and returns the time they took.
    pub(crate) fn time<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<Sample, RunError> {
        Ok(self.stream.time(work)?.into())
    }

    pub(crate) fn kernel(&self, code: Code, name: &str) -> Result<Kernel, CudaError> {
        self.context.load(code)?.kernel(name)
    }

    pub(crate) fn load_kernels(
        &self,
        code: Code,
        names: &[&str],
    ) -> Result<Vec<Kernel>, CudaError> {
        let code = self.context.load(code)?;
        names.iter().map(|name| code.kernel(name)).collect()
    }

    pub(crate) fn zeroed(&self, bytes: u64) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(bytes)?;
        self.stream.run(|queue| queue.fill(&memory, 0))?;
        Ok(memory)
    }

    /// Allocates memory in which no element is a number.
    pub(crate) fn poisoned(&self, bytes: u64) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(bytes)?;
        self.poison(&memory)?;
        Ok(memory)
    }

    pub(crate) fn poison(&self, memory: &DeviceMemory) -> Result<(), CudaError> {
        self.stream
            .run(|queue| queue.fill(memory, POISON))
            .map(drop)
    }

    /// Allocates memory with random numbers.
    pub(crate) fn random_array<T: Real>(
        &self,
        elements: u64,
        seed: u64,
    ) -> Result<DeviceMemory, CudaError> {
        let kernel = format!("random_{}", T::DTYPE);
        self.random_by(&kernel, elements, T::DTYPE.bytes(), seed)
    }

    /// Allocates memory with random 64-bit words.
    pub(crate) fn random_words(&self, words: u64, seed: u64) -> Result<DeviceMemory, CudaError> {
        self.random_by("random_u64", words, WORD_BYTES, seed)
    }

    fn random_by(
        &self,
        kernel: &str,
        elements: u64,
        width: u64,
        seed: u64,
    ) -> Result<DeviceMemory, CudaError> {
        let kernel = self.kernel(kernels::RANDOM, kernel)?;
        let memory = self.context.allocate(elements * width)?;
        let grid = Grid::of_blocks(elements.div_ceil(u64::from(THREADS)).clamp(1, 1 << 16));
        let arguments = [
            Argument::Out(&memory),
            Argument::U64(elements),
            Argument::U64(seed),
        ];
        self.stream
            .run(|queue| queue.launch(&kernel, grid, &arguments))?;
        Ok(memory)
    }

    pub(crate) fn upload<T: Plain>(&self, elements: &[T]) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(size_of_val(elements) as u64)?;
        self.stream.run(|queue| queue.copy_in(&memory, elements))?;
        Ok(memory)
    }

    pub(crate) fn download<T: Plain + Default>(
        &self,
        memory: &DeviceMemory,
    ) -> Result<Vec<T>, CudaError> {
        let mut elements = vec![T::default(); memory.bytes() as usize / size_of::<T>()];
        self.stream
            .run(|queue| queue.copy_out(&mut elements, memory, 0))?;
        Ok(elements)
    }

    /// Reads memory back in pieces, and checks each one with the index of its first element.
    pub(crate) fn check<T: Plain + Default>(
        &self,
        memory: &DeviceMemory,
        elements: u64,
        check: impl Fn(&[T], u64) -> Verification,
    ) -> Result<Verification, CudaError> {
        let width = size_of::<T>() as u64;
        let chunk = (CHUNK_BYTES / width).min(elements);
        let mut budget = vec![T::default(); chunk as usize];
        let (mut first, mut found) = (0, Verification::nothing());
        while first < elements {
            let piece = &mut budget[..chunk.min(elements - first) as usize];
            self.stream
                .run(|queue| queue.copy_out(piece, memory, first * width))?;
            let piece = &budget[..chunk.min(elements - first) as usize];
            found = found.and(check(piece, first));
            first += piece.len() as u64;
        }
        Ok(found)
    }
}

impl From<&Device> for DeviceName {
    fn from(
        Device {
            index, name, uuid, ..
        }: &Device,
    ) -> Self {
        Self {
            index: Some(*index),
            name: name.clone(),
            uuid: Some(uuid.clone()),
        }
    }
}

impl From<&Cpu> for DeviceName {
    fn from(cpu: &Cpu) -> Self {
        Self {
            index: None,
            name: cpu.name.clone(),
            uuid: None,
        }
    }
}

impl Neighbor {
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn open(&self) -> Result<Gpu, CudaError> {
        Ok(Gpu {
            is_shared: self.is_shared,
            ..Gpu::open(&self.device)?
        })
    }
}
