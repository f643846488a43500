//! Products on a GPU.

use super::{BESIDE, Burnable, reference::check};
use crate::{
    check::Verification,
    cuda::{Argument, DeviceMemory, Grid, Kernel},
    error::RunError,
    gpu::{Gpu, THREADS},
    kernels,
    random::{SEED_A, SEED_B},
};

/// As in `burn.cu`.
const TILE: u64 = 128;
const WIDTH: u64 = size_of::<f32>() as u64;
/// What one start of a kernel fills: so little that nobody waits long for its end.
const PIECE_BYTES: u64 = 256 << 20;
/// Blocks that compare: enough for the largest GPU.
const COMPARING: u32 = 4096;

/// The factors, and the products, several in each piece.
pub(super) struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    side: u64,
    product: Kernel,
    compare: Kernel,
    a: DeviceMemory,
    b: DeviceMemory,
    first: DeviceMemory,
    pieces: Vec<DeviceMemory>,
    /// How many words were wrong since it began, as the GPU counts.
    wrong: DeviceMemory,
    seen: u64,
}

impl<'gpu> OnCuda<'gpu> {
    /// Matrices of this side, which take no more memory than this together.
    pub(super) fn new(gpu: &'gpu Gpu, side: u64, bytes: u64) -> Result<Self, RunError> {
        let (elements, one) = (side * side, side * side * WIDTH);
        let code = gpu.context.load(kernels::BURN)?;
        let mut work = Self {
            gpu,
            side,
            product: code.kernel("burn_product")?,
            compare: code.kernel("burn_compare")?,
            a: gpu.random("random_fp32", elements, one, SEED_A)?,
            b: gpu.random("random_fp32", elements, one, SEED_B)?,
            first: gpu.poisoned(one)?,
            pieces: Vec::new(),
            wrong: gpu.zeroed(size_of::<u64>() as u64)?,
            seen: 0,
        };
        let mut left = bytes / one - BESIDE;
        while left > 0 {
            let count = left.min((PIECE_BYTES / one).max(1));
            match gpu.poisoned(count * one) {
                Ok(piece) => work.pieces.push(piece),
                // Somebody else was faster, and what there is does.
                Err(error) if error.is_out_of_memory() && !work.pieces.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            left -= count;
        }
        Ok(work)
    }

    fn elements(&self) -> u64 {
        self.side * self.side
    }

    fn tiles(&self, products: u64) -> Grid {
        Grid { blocks: (products * (self.side / TILE).pow(2)) as u32, threads: THREADS }
    }
}

impl Burnable for OnCuda<'_> {
    fn bytes(&self) -> u64 {
        let pieces = self.pieces.iter().map(DeviceMemory::bytes).sum::<u64>();
        pieces + BESIDE * self.elements() * WIDTH + self.wrong.bytes()
    }

    fn pieces(&self) -> usize {
        self.pieces.len()
    }

    fn products(&self, piece: usize) -> u64 {
        self.pieces[piece].bytes() / (self.elements() * WIDTH)
    }

    fn first(&mut self) -> Result<Verification, RunError> {
        let (grid, side, elements) = (self.tiles(1), self.side, self.elements());
        let Self { gpu, product, a, b, first, .. } = self;
        let sides = [Argument::Out(first), Argument::In(a), Argument::In(b), Argument::U64(side), Argument::U64(1)];
        gpu.stream.run(|queue| queue.launch(product, grid, &sides))?;
        // All of it comes back in one piece: the largest side has 16 MiB.
        Ok(gpu.check(first, elements, |words: &[f32], _| check(words, side))?)
    }

    fn multiply(&mut self, piece: usize) -> Result<(), RunError> {
        let (count, side) = (self.products(piece), self.side);
        let grid = self.tiles(count);
        let Self { gpu, product, a, b, pieces, .. } = self;
        let out = Argument::Out(&pieces[piece]);
        let arguments = [out, Argument::In(a), Argument::In(b), Argument::U64(side), Argument::U64(count)];
        gpu.stream.run(|queue| queue.launch(product, grid, &arguments))?;
        Ok(())
    }

    fn compare(&mut self, piece: usize) -> Result<u64, RunError> {
        let (count, elements) = (self.products(piece), self.elements());
        let Self { gpu, compare, first, pieces, wrong, seen, .. } = self;
        let grid = Grid { blocks: COMPARING, threads: THREADS };
        let arguments = [
            Argument::Out(wrong),
            Argument::Out(&pieces[piece]),
            Argument::In(first),
            Argument::U64(elements),
            Argument::U64(count),
        ];
        gpu.stream.run(|queue| queue.launch(compare, grid, &arguments))?;
        let mut total = [0_u64];
        gpu.stream.run(|queue| queue.copy_out(&mut total, wrong, 0))?;
        let new = total[0].wrapping_sub(*seen);
        *seen = total[0];
        Ok(new)
    }
}
