//! GPUs that run workloads.

use std::rc::Rc;

use crate::{
    cuda::{
        Argument, Attribute, Code, Context, CudaError, Device, DeviceMemory, DriverUnavailable,
        Grid, Kernel, Module, Plain, Queue, Stream,
    },
    error::RunError,
    info::Cpu,
    kernels,
    memory_budget::MemoryBudget,
    numbers::Real,
    protocol::{DeviceName, Verification},
    workload::{TimedRun, WORD_BYTES},
};

/// The number of threads per block, unless a kernel needs another number.
pub(crate) const THREADS_PER_BLOCK: u32 = 256;
/// The byte that poisoned memory is filled with. Floating-point numbers with all bits set are NaN.
const POISON_BYTE: u8 = 0xff;
/// The size in bytes of the pieces in which results are copied to the host. Small pieces keep the
/// host memory for the check small.
const CHUNK_BYTES: u64 = 32 << 20;

impl Grid {
    /// Returns a grid with this number of blocks and the usual number of threads per block.
    pub(crate) fn with_blocks(blocks: u64) -> Self {
        Self {
            blocks: blocks as u32,
            threads: THREADS_PER_BLOCK,
        }
    }
}

/// Returns a grid with at least one thread for each element.
pub(crate) fn grid_for_elements(elements: u64) -> Grid {
    Grid::with_blocks(elements.div_ceil(u64::from(THREADS_PER_BLOCK)).max(1))
}

pub(crate) struct Gpu {
    /// The GPU's stream. This is the first field, so that it is dropped before its context.
    pub(crate) stream: Stream,
    pub(crate) context: Rc<Context>,
    /// Whether another process is computing on this GPU. If so, at most a quarter of the free
    /// memory is used.
    pub(crate) is_shared: bool,
    neighbor: Option<Neighbor>,
    /// Whether another process is computing on one of the additional GPUs that were reserved after
    /// this one.
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
            stream: Stream::new(&context)?,
            context,
            is_shared: false,
            neighbor: None,
            has_shared_neighbors: false,
        })
    }

    /// Sets the second GPU that workloads use if they need two.
    pub(crate) fn set_neighbor(&mut self, other: Neighbor) {
        self.neighbor = Some(other);
    }

    /// Returns this GPU as the neighbor of another GPU.
    pub(crate) fn as_neighbor(&self) -> Neighbor {
        Neighbor {
            device: self.device().clone(),
            is_shared: self.is_shared,
        }
    }

    /// Returns the second GPU for workloads that need two: the one that was set, or else the GPU
    /// with the next index. For the GPU with the last index, this is the GPU with index 0. Returns
    /// `None` if there is no other GPU.
    pub(crate) fn find_neighbor(&self) -> Result<Option<Neighbor>, DriverUnavailable> {
        if self.neighbor.is_some() {
            return Ok(self.neighbor.clone());
        }
        let devices = self.device().driver().list_devices()?;
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
        let budget = MemoryBudget::for_gpu(
            self.device().index,
            self.context.read_free_memory()?,
            cache as u64,
        );
        Ok(MemoryBudget {
            is_shared: self.is_shared,
            ..budget
        })
    }

    /// Executes the operations that `work` adds to the queue, and returns the time that they took.
    pub(crate) fn run_timed<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<TimedRun, RunError> {
        Ok(self.stream.run_timed(work)?.into())
    }

    pub(crate) fn load_kernel(&self, code: Code, name: &str) -> Result<Kernel, CudaError> {
        Module::load(&self.context, code)?.find_kernel(name)
    }

    pub(crate) fn load_kernels(
        &self,
        code: Code,
        names: &[&str],
    ) -> Result<Vec<Kernel>, CudaError> {
        let code = Module::load(&self.context, code)?;
        names.iter().map(|name| code.find_kernel(name)).collect()
    }

    pub(crate) fn allocate_zeroed(&self, bytes: u64) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(bytes)?;
        self.stream.run(|queue| queue.fill(&memory, 0))?;
        Ok(memory)
    }

    /// Allocates memory that is filled with poison.
    pub(crate) fn allocate_poisoned(&self, bytes: u64) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(bytes)?;
        self.fill_with_poison(&memory)?;
        Ok(memory)
    }

    pub(crate) fn fill_with_poison(&self, memory: &DeviceMemory) -> Result<(), CudaError> {
        self.stream
            .run(|queue| queue.fill(memory, POISON_BYTE))
            .map(drop)
    }

    /// Allocates an array of random numbers.
    pub(crate) fn allocate_random_array<T: Real>(
        &self,
        elements: u64,
        seed: u64,
    ) -> Result<DeviceMemory, CudaError> {
        let kernel = format!("random_{}", T::DTYPE);
        self.allocate_random_memory(&kernel, elements, T::DTYPE.bytes(), seed)
    }

    /// Allocates an array of random 64-bit words.
    pub(crate) fn allocate_random_words(
        &self,
        words: u64,
        seed: u64,
    ) -> Result<DeviceMemory, CudaError> {
        self.allocate_random_memory("random_u64", words, WORD_BYTES, seed)
    }

    fn allocate_random_memory(
        &self,
        kernel: &str,
        elements: u64,
        width: u64,
        seed: u64,
    ) -> Result<DeviceMemory, CudaError> {
        let kernel = self.load_kernel(kernels::RANDOM, kernel)?;
        let memory = self.context.allocate(elements * width)?;
        let grid = Grid::with_blocks(
            elements
                .div_ceil(u64::from(THREADS_PER_BLOCK))
                .clamp(1, 1 << 16),
        );
        let arguments = [
            Argument::Out(&memory),
            Argument::U64(elements),
            Argument::U64(seed),
        ];
        self.stream
            .run(|queue| queue.launch(&kernel, grid, &arguments))?;
        Ok(memory)
    }

    pub(crate) fn copy_to_device<T: Plain>(
        &self,
        elements: &[T],
    ) -> Result<DeviceMemory, CudaError> {
        let memory = self.context.allocate(size_of_val(elements) as u64)?;
        self.stream
            .run(|queue| queue.copy_to_device(&memory, elements))?;
        Ok(memory)
    }

    pub(crate) fn copy_to_host<T: Plain + Default>(
        &self,
        memory: &DeviceMemory,
    ) -> Result<Vec<T>, CudaError> {
        let mut elements = vec![T::default(); memory.bytes() as usize / size_of::<T>()];
        self.stream
            .run(|queue| queue.copy_to_host(&mut elements, memory, 0))?;
        Ok(elements)
    }

    /// Copies memory to the host in pieces. `check` receives each piece and the index of its first
    /// element.
    pub(crate) fn check_memory_in_pieces<T: Plain + Default>(
        &self,
        memory: &DeviceMemory,
        elements: u64,
        check: impl Fn(&[T], u64) -> Verification,
    ) -> Result<Verification, CudaError> {
        let width = size_of::<T>() as u64;
        let chunk = (CHUNK_BYTES / width).min(elements);
        let mut budget = vec![T::default(); chunk as usize];
        let (mut first, mut found) = (0, Verification::empty());
        while first < elements {
            let piece = &mut budget[..chunk.min(elements - first) as usize];
            self.stream
                .run(|queue| queue.copy_to_host(piece, memory, first * width))?;
            let piece = &budget[..chunk.min(elements - first) as usize];
            found = found.merge(check(piece, first));
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
