//! Products on a GPU, with the kernels of the catalogue.

use std::time::Duration;

use super::{
    Burnable, FEWEST, fitting,
    matrix_size::{SIDES, Timed, largest},
};
use crate::{
    catalogue::matmul::{Product, memory_bytes, result_bytes},
    cuda::{Argument, Code, CudaError, DeviceMemory, Grid, Kernel, Queue},
    error::RunError,
    gpu::{Gpu, THREADS},
    kernels::ptx,
    protocol::{Dtype, KernelUse, Shape, Verification},
    workload::Size,
};

const KERNELS: Code = ptx!("burn");
/// The size of a word, which is the unit of comparison.
const WORD_BYTES: u64 = size_of::<u32>() as u64;
/// The number of bytes of a product that a thread compares.
const PACK_BYTES: u64 = 4 * WORD_BYTES;
/// The number of products that a thread of `burn.cu` compares at a time. The size of the grid
/// depends on it.
const TOGETHER: u64 = 4;
/// The number of blocks of `burn_poison`, which is enough for the largest GPU.
const POISONING: u32 = 4096;

pub(super) struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    size: Size,
    product: Product<'gpu>,
    poison: Kernel,
    compare: Kernel,
    first: DeviceMemory,
    /// Memory for products. Each piece has room for the products that are started together, and the
    /// last piece for the remaining ones.
    pieces: Vec<DeviceMemory>,
    /// The number of wrong words so far, counted by the GPU.
    wrong: DeviceMemory,
}

/// Returns the minimum memory for matrices of this size.
pub(super) fn needed_bytes(size: Size) -> u64 {
    memory_bytes(Shape::square(size.n), size.dtype, FEWEST + 1) + WRONG_BYTES
}

const WRONG_BYTES: u64 = size_of::<u64>() as u64;

impl<'gpu> OnCuda<'gpu> {
    /// Prepares matrices that are as large as useful and fit into this memory; returns `None` if
    /// even the smallest do not fit.
    pub(super) fn new(gpu: &'gpu Gpu, dtype: Dtype, bytes: u64) -> Result<Option<Self>, RunError> {
        let sides = fitting(&SIDES, bytes, |n| needed_bytes(Size { n, dtype }));
        let timed = largest(sides, |n| Self::with_size(gpu, Size { n, dtype }))?;
        let Some(timed) = timed else { return Ok(None) };
        let at_once = timed.at_once();
        let mut work = timed.work;
        work.take(at_once, bytes)?;
        Ok(Some(work))
    }

    /// Prepares work without pieces, and measures the duration of one product.
    fn with_size(gpu: &'gpu Gpu, size: Size) -> Result<Timed<Self>, RunError> {
        let code = gpu.context.load(KERNELS)?;
        let work = Self {
            gpu,
            size,
            product: Product::new(gpu, Shape::square(size.n), size.dtype)?,
            poison: code.kernel("burn_poison")?,
            compare: code.kernel("burn_compare")?,
            first: gpu
                .context
                .allocate(result_bytes(Shape::square(size.n), size.dtype))?,
            pieces: Vec::new(),
            wrong: gpu.zeroed(WRONG_BYTES)?,
        };
        let ready = work.product.ready()?;
        // The driver may have to load the code for the first launch.
        gpu.stream
            .run(|queue| ready.launch(queue, &work.first, 0))?;
        let elapsed = gpu
            .stream
            .time(|queue| ready.launch(queue, &work.first, 0))?;
        work.poison(&work.first)?;
        Ok(Timed {
            work,
            product: Duration::from_secs_f64(elapsed.device_us / 1e6),
        })
    }

    /// Allocates memory for products, so that the total is no more than `bytes`.
    fn take(&mut self, at_once: u64, bytes: u64) -> Result<(), RunError> {
        let one = self.result_bytes();
        // Memory for partial sums is not part of `needed_bytes`. It reduces the memory for
        // products, but at least one product remains.
        let mut left = (bytes.saturating_sub(self.bytes()) / one).max(1);
        while left > 0 {
            let count = left.min(at_once);
            match self.gpu.context.allocate(count * one) {
                Ok(piece) => {
                    self.poison(&piece)?;
                    self.pieces.push(piece);
                }
                // Another process has allocated memory in the meantime, and the existing pieces are
                // enough.
                Err(error) if error.is_out_of_memory() && !self.pieces.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            left -= count;
        }
        Ok(())
    }

    fn result_bytes(&self) -> u64 {
        result_bytes(Shape::square(self.size.n), self.size.dtype)
    }

    fn poison(&self, memory: &DeviceMemory) -> Result<(), RunError> {
        let grid = Grid {
            blocks: POISONING,
            threads: THREADS,
        };
        let arguments = [
            Argument::Out(memory),
            Argument::U64(memory.bytes() / PACK_BYTES),
        ];
        self.gpu
            .stream
            .run(|queue| queue.launch(&self.poison, grid, &arguments))?;
        Ok(())
    }

    /// Queues the comparison of a piece with the first product. A product with the same bits is
    /// just as correct, because a kernel computes the same bits from the same inputs.
    fn put_comparison<'scope>(
        &'scope self,
        queue: &Queue<'_, 'scope>,
        piece: usize,
    ) -> Result<(), CudaError> {
        let (packs, products) = (self.result_bytes() / PACK_BYTES, self.products(piece));
        let arguments = [
            Argument::Out(&self.wrong),
            Argument::Out(&self.pieces[piece]),
            Argument::In(&self.first),
            Argument::U64(packs),
            Argument::U64(products),
        ];
        let blocks = packs.div_ceil(u64::from(THREADS)) * products.div_ceil(TOGETHER);
        queue.launch(
            &self.compare,
            Grid {
                blocks: blocks as u32,
                threads: THREADS,
            },
            &arguments,
        )
    }
}

impl Burnable for OnCuda<'_> {
    fn side(&self) -> u64 {
        self.size.n
    }

    fn bytes(&self) -> u64 {
        let pieces = self.pieces.iter().map(DeviceMemory::bytes).sum::<u64>();
        pieces + self.product.bytes() + self.first.bytes() + self.wrong.bytes()
    }

    fn words(&self) -> u64 {
        self.result_bytes() / WORD_BYTES
    }

    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(Some(self.product.kernel()?))
    }

    fn pieces(&self) -> usize {
        self.pieces.len()
    }

    fn products(&self, piece: usize) -> u64 {
        self.pieces[piece].bytes() / self.result_bytes()
    }

    fn first(&mut self) -> Result<Verification, RunError> {
        let ready = self.product.ready()?;
        self.gpu
            .stream
            .run(|queue| ready.launch(queue, &self.first, 0))?;
        Ok(self.product.verify(&self.first)?)
    }

    fn multiply(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        let (ready, one) = (self.product.ready()?, self.result_bytes());
        self.gpu.stream.run(|queue| {
            if was_filled {
                self.put_comparison(queue, piece)?;
            }
            (0..self.products(piece))
                .try_for_each(|at| ready.launch(queue, &self.pieces[piece], at * one))
        })?;
        Ok(())
    }

    fn compare(&mut self, piece: usize) -> Result<(), RunError> {
        self.gpu
            .stream
            .run(|queue| self.put_comparison(queue, piece))?;
        Ok(())
    }

    fn wrong(&mut self) -> Result<u64, RunError> {
        let mut total = [0_u64];
        self.gpu
            .stream
            .run(|queue| queue.copy_out(&mut total, &self.wrong, 0))?;
        Ok(total[0])
    }
}
