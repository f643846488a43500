//! The stress test on a GPU, with the kernels of the `matmul` workload.

use std::time::Duration;

use super::{Burnable, MATRIX_SIDES, MIN_PRODUCTS, TimedWork, choose_largest_side, fitting_sides};
use crate::{
    catalogue::matmul::{Product, memory_bytes, result_bytes},
    cuda::{Argument, Code, CudaError, DeviceMemory, Grid, Kernel, Module, Queue},
    error::RunError,
    gpu::{Gpu, THREADS_PER_BLOCK},
    kernels::ptx,
    protocol::{Dtype, KernelUse, Shape, Verification},
    workload::Size,
};

const KERNELS: Code = ptx!("burn");
/// The size of a word in bytes. Products are compared word by word.
const WORD_BYTES: u64 = size_of::<u32>() as u64;
/// The number of bytes of each product that a thread compares.
const PACK_BYTES: u64 = 4 * WORD_BYTES;
/// The number of products that a thread of `burn.cu` compares at a time. It determines the size of
/// the grid.
const PRODUCTS_PER_THREAD: u64 = 4;
/// The number of blocks of the kernel `burn_poison`, enough for the largest GPU.
const POISON_BLOCKS: u32 = 4096;

pub(super) struct CudaBurn<'gpu> {
    gpu: &'gpu Gpu,
    size: Size,
    product: Product<'gpu>,
    poison: Kernel,
    compare: Kernel,
    first: DeviceMemory,
    /// Memory for products, in pieces. A piece has room for the products that are launched
    /// together. The last piece may have room for fewer products.
    pieces: Vec<DeviceMemory>,
    /// Memory with the number of wrong words so far, which the GPU counts.
    wrong: DeviceMemory,
}

/// Returns the minimum memory in bytes for matrices of this size.
pub(super) fn needed_bytes(size: Size) -> u64 {
    memory_bytes(Shape::from_side(size.n), size.dtype, MIN_PRODUCTS + 1) + WRONG_BYTES
}

const WRONG_BYTES: u64 = size_of::<u64>() as u64;

impl<'gpu> CudaBurn<'gpu> {
    /// Prepares the largest useful matrices that fit into `bytes` of memory. Returns `None` if not
    /// even the smallest matrices fit.
    pub(super) fn new(gpu: &'gpu Gpu, dtype: Dtype, bytes: u64) -> Result<Option<Self>, RunError> {
        let sides = fitting_sides(&MATRIX_SIDES, bytes, |n| needed_bytes(Size { n, dtype }));
        let timed = choose_largest_side(sides, |n| Self::prepare_and_time(gpu, Size { n, dtype }))?;
        let Some(timed) = timed else { return Ok(None) };
        let at_once = timed.batch_size();
        let mut work = timed.work;
        work.allocate_pieces(at_once, bytes)?;
        Ok(Some(work))
    }

    /// Prepares work without memory for products, and measures the time of one product.
    fn prepare_and_time(gpu: &'gpu Gpu, size: Size) -> Result<TimedWork<Self>, RunError> {
        let code = Module::load(&gpu.context, KERNELS)?;
        let work = Self {
            gpu,
            size,
            product: Product::new(gpu, Shape::from_side(size.n), size.dtype)?,
            poison: code.find_kernel("burn_poison")?,
            compare: code.find_kernel("burn_compare")?,
            first: gpu
                .context
                .allocate(result_bytes(Shape::from_side(size.n), size.dtype))?,
            pieces: Vec::new(),
            wrong: gpu.allocate_zeroed(WRONG_BYTES)?,
        };
        let ready = work.product.prepare_launch()?;
        // The driver may have to load the code at the first launch, so the first product is not
        // timed.
        gpu.stream
            .run(|queue| ready.launch(queue, &work.first, 0))?;
        let elapsed = gpu
            .stream
            .run_timed(|queue| ready.launch(queue, &work.first, 0))?;
        work.fill_with_poison(&work.first)?;
        Ok(TimedWork {
            work,
            product: Duration::from_secs_f64(elapsed.device_us / 1e6),
        })
    }

    /// Allocates memory for products, up to a total of `bytes` including the memory already in use.
    fn allocate_pieces(&mut self, at_once: u64, bytes: u64) -> Result<(), RunError> {
        let one = self.result_bytes();
        // Memory for partial sums was already allocated, but `needed_bytes` does not include it. So
        // there may be too little memory for products, but at least one product is always
        // allocated.
        let mut left = (bytes.saturating_sub(self.used_bytes()) / one).max(1);
        while left > 0 {
            let count = left.min(at_once);
            match self.gpu.context.allocate(count * one) {
                Ok(piece) => {
                    self.fill_with_poison(&piece)?;
                    self.pieces.push(piece);
                }
                // Another process has allocated memory in the meantime. The pieces allocated so far
                // are enough.
                Err(error) if error.is_out_of_memory() && !self.pieces.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            left -= count;
        }
        Ok(())
    }

    fn result_bytes(&self) -> u64 {
        result_bytes(Shape::from_side(self.size.n), self.size.dtype)
    }

    fn fill_with_poison(&self, memory: &DeviceMemory) -> Result<(), RunError> {
        let grid = Grid {
            blocks: POISON_BLOCKS,
            threads: THREADS_PER_BLOCK,
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

    /// Queues the comparison of a piece with the first product. Equality of all bits is required,
    /// because a kernel always computes the same bits from the same inputs.
    fn queue_comparison<'scope>(
        &'scope self,
        queue: &Queue<'_, 'scope>,
        piece: usize,
    ) -> Result<(), CudaError> {
        let (packs, products) = (
            self.result_bytes() / PACK_BYTES,
            self.products_in_piece(piece),
        );
        let arguments = [
            Argument::Out(&self.wrong),
            Argument::Out(&self.pieces[piece]),
            Argument::In(&self.first),
            Argument::U64(packs),
            Argument::U64(products),
        ];
        let blocks =
            packs.div_ceil(u64::from(THREADS_PER_BLOCK)) * products.div_ceil(PRODUCTS_PER_THREAD);
        queue.launch(
            &self.compare,
            Grid {
                blocks: blocks as u32,
                threads: THREADS_PER_BLOCK,
            },
            &arguments,
        )
    }
}

impl Burnable for CudaBurn<'_> {
    fn matrix_side(&self) -> u64 {
        self.size.n
    }

    fn used_bytes(&self) -> u64 {
        let pieces = self.pieces.iter().map(DeviceMemory::bytes).sum::<u64>();
        pieces + self.product.bytes() + self.first.bytes() + self.wrong.bytes()
    }

    fn words_per_product(&self) -> u64 {
        self.result_bytes() / WORD_BYTES
    }

    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(Some(self.product.kernel()?))
    }

    fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    fn products_in_piece(&self, piece: usize) -> u64 {
        self.pieces[piece].bytes() / self.result_bytes()
    }

    fn compute_first(&mut self) -> Result<Verification, RunError> {
        let ready = self.product.prepare_launch()?;
        self.gpu
            .stream
            .run(|queue| ready.launch(queue, &self.first, 0))?;
        Ok(self.product.verify(&self.first)?)
    }

    fn fill_piece_with_products(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError> {
        let (ready, one) = (self.product.prepare_launch()?, self.result_bytes());
        self.gpu.stream.run(|queue| {
            if was_filled {
                self.queue_comparison(queue, piece)?;
            }
            (0..self.products_in_piece(piece))
                .try_for_each(|at| ready.launch(queue, &self.pieces[piece], at * one))
        })?;
        Ok(())
    }

    fn compare_and_poison_piece(&mut self, piece: usize) -> Result<(), RunError> {
        self.gpu
            .stream
            .run(|queue| self.queue_comparison(queue, piece))?;
        Ok(())
    }

    fn count_wrong_words(&mut self) -> Result<u64, RunError> {
        let mut total = [0_u64];
        self.gpu
            .stream
            .run(|queue| queue.copy_to_host(&mut total, &self.wrong, 0))?;
        Ok(total[0])
    }
}
