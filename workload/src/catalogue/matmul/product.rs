//! A product on a GPU: both factors, the kernel that multiplies them, and the check of what it made. Where the result
//! goes is up to whoever has it made.

use super::{
    kernel_select::{self, Inputs, KernelChoice, Layout},
    tolerance::Tolerance,
    values,
};
use crate::{
    catalogue::prelude::*,
    cuda::{Attribute, TensorMap},
    protocol::KernelUse,
};

/// Rows and columns that a block of the check has.
const CHECKED_SIDE: u64 = 32;
/// What such a block finds: how many are wrong, the first of them, the largest error of the others.
const FOUND_WORDS: u64 = 3;
/// So many elements the host computes by itself, so that the check is checked, too.
const SPOTS: u64 = 16;

/// Two random matrices and the kernels for them.
pub(crate) struct Product<'gpu> {
    pub(super) gpu: &'gpu Gpu,
    pub(super) choice: KernelChoice,
    multiply: Kernel,
    check: Kernel,
    pub(super) a: DeviceMemory,
    pub(super) b: DeviceMemory,
    found: DeviceMemory,
    pub(super) size: Size,
    /// Rows of the matrices in memory.
    pub(super) pitch: u64,
    multiprocessors: u32,
}

/// A product whose kernel can be started: with the factors as that takes them.
pub(crate) struct Ready<'product> {
    product: &'product Product<'product>,
    /// Both, for the copy engine.
    tiles: Option<[TensorMap<'product>; 2]>,
}

/// The memory of a product with so many results, each matrix of whole tiles, and with what the check finds.
pub(crate) fn memory_bytes(Size { n, dtype }: Size, results: u64) -> u64 {
    let side = kernel_select::padded(n);
    let of_element = (2 * dtype.bytes()).saturating_add(results.saturating_mul(values::result_bytes(dtype)));
    side.saturating_mul(side).saturating_mul(of_element).saturating_add(found_bytes(n))
}

/// The memory of one result, in whole tiles.
pub(crate) fn result_bytes(Size { n, dtype }: Size) -> u64 {
    let side = kernel_select::padded(n);
    side.saturating_mul(side).saturating_mul(values::result_bytes(dtype))
}

fn found_bytes(n: u64) -> u64 {
    check_blocks(n).saturating_mul(FOUND_WORDS * 8)
}

fn check_blocks(n: u64) -> u64 {
    n.div_ceil(CHECKED_SIDE).saturating_mul(n.div_ceil(CHECKED_SIDE))
}

impl<'gpu> Product<'gpu> {
    pub(crate) fn new(gpu: &'gpu Gpu, size: Size) -> Result<Self, CudaError> {
        let device = gpu.device();
        let multiprocessors = device.attribute(Attribute::Multiprocessors)?.max(1) as u32;
        let choice = kernel_select::choose(size.dtype, device.capability, multiprocessors, size.n);
        let fill = gpu.kernel(kernels::MATMUL_CHECK, &format!("matmul_fill_{}", size.dtype))?;
        let matrix = |seed| random_matrix(gpu, &fill, size, choice.layout, seed);
        Ok(Self {
            gpu,
            multiply: gpu.kernel(choice.code, choice.kernel)?.with_shared_memory(choice.shared_bytes)?,
            check: gpu.kernel(kernels::MATMUL_CHECK, &format!("matmul_check_{}", size.dtype))?,
            a: matrix(SEED_A)?,
            b: matrix(SEED_B)?,
            found: gpu.poisoned(found_bytes(size.n))?,
            choice,
            size,
            pitch: kernel_select::padded(size.n),
            multiprocessors,
        })
    }

    pub(crate) fn kernel(&self) -> Result<KernelUse, CudaError> {
        self.multiply.use_of_gpu(self.choice.threads)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.a.bytes() + self.b.bytes() + self.found.bytes()
    }

    pub(crate) fn ready(&self) -> Result<Ready<'_>, CudaError> {
        let map = |matrix, element, rows| TensorMap::new(matrix, element, self.pitch, rows);
        let tiles = match self.choice.inputs {
            Inputs::Tiles(element) => {
                Some([map(&self.a, element, self.choice.tile.0)?, map(&self.b, element, self.choice.tile.1)?])
            }
            Inputs::Addresses | Inputs::Strides => None,
        };
        Ok(Ready { product: self, tiles })
    }

    /// Checks a result: every element against the GPU's own reference, and some against the host's.
    pub(crate) fn verify(&mut self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let all = self.check_all(out)?;
        let spots = self.check_spots(out)?;
        // The spots are among all, and count once.
        Ok(Verification { checked: all.checked, ..all.and(spots) })
    }

    /// Every element against the GPU's own reference, which shares nothing with the product.
    fn check_all(&mut self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let Self { gpu, check, a, b, found, size, pitch, choice, .. } = self;
        let bound = Tolerance::new(size.dtype, size.n);
        let (row, step) = choice.layout.strides(*pitch);
        let blocks = check_blocks(size.n);
        let numbers = [size.n, *pitch, row, step].map(Argument::U64);
        let [n, pitch, row, step] = numbers;
        let (of_result, of_terms) = (Argument::F64(bound.of_result), Argument::F64(bound.of_terms));
        let grid = Grid { blocks: blocks as u32, threads: THREADS };
        let arguments =
            [Argument::Out(found), Argument::In(out), Argument::In(a), Argument::In(b), n, pitch, row, step];
        let arguments: Vec<_> = arguments.into_iter().chain([of_result, of_terms]).collect();
        gpu.stream.run(|queue| queue.launch(check, grid, &arguments))?;
        drop(arguments);
        let mut words = vec![0_u64; (blocks * FOUND_WORDS) as usize];
        gpu.stream.run(|queue| queue.copy_out(&mut words, found, 0))?;
        let of_block = words.as_chunks::<{ FOUND_WORDS as usize }>().0.iter();
        let wrong: u64 = of_block.clone().map(|found| found[0]).sum();
        let first_wrong = of_block.clone().filter(|found| found[0] > 0).map(|found| found[1]).min();
        let largest = of_block.map(|found| f64::from_bits(found[2])).fold(0.0, f64::max);
        Ok(Verification::from_counts(size.n * size.n, wrong, first_wrong, largest, 1.0))
    }

    /// A few elements against what the host computes of the seeds alone.
    fn check_spots(&self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let Size { n, dtype } = self.size;
        let bound = Tolerance::new(dtype, n);
        let width = values::result_bytes(dtype);
        let mut found = Verification::nothing();
        for spot in 0..SPOTS.min(n * n) {
            let (row, column) = (random::bits(SEED_A, spot) % n, random::bits(SEED_B, spot) % n);
            let mut bytes = [0_u8; 8];
            let place = &mut bytes[..width as usize];
            self.gpu.stream.run(|queue| queue.copy_out(place, out, (row * self.pitch + column) * width))?;
            let (mut sum, mut size) = (DoubleDouble::from_f64(0.0), 0.0);
            for k in 0..n {
                let a = values::random(dtype, SEED_A, row * n + k);
                let b = values::random(dtype, SEED_B, column * n + k);
                sum = sum + DoubleDouble::from_f64(a) * DoubleDouble::from_f64(b);
                size += (a * b).abs();
            }
            let error = bound.error(sum.distance(values::result(dtype, bytes)), sum.abs(), size);
            found = found.and(Verification::for_element(row * n + column, error, 1.0));
        }
        Ok(found)
    }
}

impl Ready<'_> {
    /// Multiplies, into this memory from this byte on. However often that is done, the result is the same to the bit: no
    /// kernel leaves it to chance in which order an element is added up.
    pub(crate) fn launch<'scope>(
        &'scope self,
        queue: &Queue<'_, 'scope>,
        out: &'scope DeviceMemory,
        offset_bytes: u64,
    ) -> Result<(), CudaError> {
        let Product { multiply, choice, a, b, size, pitch, multiprocessors, .. } = self.product;
        assert!(offset_bytes + result_bytes(*size) <= out.bytes(), "the result fits");
        let out = Argument::At(out, offset_bytes);
        let [n, side] = [size.n, *pitch].map(Argument::U64);
        let tiles = choice.tiles(size.n) as u32;
        let grid = |blocks| Grid { blocks, threads: choice.threads };
        match (&self.tiles, choice.inputs) {
            (Some([left, right]), _) => {
                let arguments = [out, Argument::Tiles(left), Argument::Tiles(right), n, side];
                queue.launch(multiply, grid(tiles.min(*multiprocessors)), &arguments)
            }
            (None, Inputs::Strides) => {
                let (row, step) = choice.layout.strides(*pitch);
                let [row, step] = [row, step].map(Argument::U64);
                queue.launch(multiply, grid(tiles), &[out, Argument::In(a), Argument::In(b), n, side, row, step])
            }
            (None, _) => queue.launch(multiply, grid(tiles), &[out, Argument::In(a), Argument::In(b), n, side]),
        }
    }
}

/// A random matrix, with zeros around it up to whole tiles.
fn random_matrix(gpu: &Gpu, fill: &Kernel, size: Size, layout: Layout, seed: u64) -> Result<DeviceMemory, CudaError> {
    let pitch = kernel_select::padded(size.n);
    let (row, step) = layout.strides(pitch);
    let memory = gpu.context.allocate(pitch * pitch * size.dtype.bytes())?;
    let blocks = (pitch * pitch).div_ceil(u64::from(THREADS)).min(1 << 16) as u32;
    let [n, pitch, row, step, seed] = [size.n, pitch, row, step, seed].map(Argument::U64);
    let grid = Grid { blocks, threads: THREADS };
    gpu.stream.run(|queue| queue.launch(fill, grid, &[Argument::Out(&memory), n, pitch, row, step, seed]))?;
    Ok(memory)
}
