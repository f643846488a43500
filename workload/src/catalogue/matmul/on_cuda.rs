//! A product on a GPU.

use super::{
    bound::ErrorBound,
    route::{self, Inputs, Layout, Route},
    values,
};
use crate::{
    check::Verification,
    cuda::{Argument, Attribute, Cublas, CudaError, DeviceMemory, GemmType, Grid, Kernel, TensorMap},
    error::RunError,
    exact::Exact,
    gpu::{Gpu, THREADS},
    kernels,
    random::{self, SEED_A, SEED_B},
    workload::{Dtype, Prepared, Sample, Size},
};

/// Rows and columns that a block of the check has.
const CHECKED_SIDE: u64 = 32;
/// What such a block finds: how many are wrong, the first of them, the largest error of the others.
const FOUND_WORDS: u64 = 3;
/// So many elements the host computes by itself, so that the check is checked, too.
const SPOTS: u64 = 16;

/// Three matrices and the kernels for them.
pub(super) struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    route: Route,
    multiply: Kernel,
    check: Kernel,
    a: DeviceMemory,
    b: DeviceMemory,
    out: DeviceMemory,
    found: DeviceMemory,
    size: Size,
    /// Rows of the matrices in memory.
    pitch: u64,
    multiprocessors: u32,
    /// What multiplies in place of the kernel, as a yardstick.
    cublas: Option<(Cublas, GemmType)>,
}

/// The memory for what the check finds.
pub(super) fn found_bytes(n: u64) -> u64 {
    check_blocks(n).saturating_mul(FOUND_WORDS * 8)
}

fn check_blocks(n: u64) -> u64 {
    n.div_ceil(CHECKED_SIDE).saturating_mul(n.div_ceil(CHECKED_SIDE))
}

impl<'gpu> OnCuda<'gpu> {
    pub(super) fn new(gpu: &'gpu Gpu, size: Size) -> Result<Self, RunError> {
        let device = gpu.device();
        let multiprocessors = device.attribute(Attribute::Multiprocessors)?.max(1) as u32;
        let route = route::choose(size.dtype, device.capability, multiprocessors, size.n);
        let pitch = route::padded(size.n);
        let fill = gpu.kernel(kernels::MATMUL_CHECK, &format!("matmul_fill_{}", size.dtype))?;
        let matrix = |seed| random_matrix(gpu, &fill, size, route.layout, seed);
        Ok(Self {
            gpu,
            multiply: gpu.kernel(route.code, route.kernel)?.with_shared_memory(route.shared_bytes)?,
            check: gpu.kernel(kernels::MATMUL_CHECK, &format!("matmul_check_{}", size.dtype))?,
            a: matrix(SEED_A)?,
            b: matrix(SEED_B)?,
            out: gpu.poisoned(pitch * pitch * values::result_bytes(size.dtype))?,
            found: gpu.poisoned(found_bytes(size.n))?,
            route,
            size,
            pitch,
            multiprocessors,
            cublas: None,
        })
    }

    /// The same, multiplied by cuBLAS.
    pub(super) fn by_cublas(self) -> Result<Self, RunError> {
        let types = match self.size.dtype {
            Dtype::Fp64 => GemmType::Fp64,
            Dtype::Fp32 => GemmType::Fp32,
            Dtype::Tf32 => GemmType::Tf32,
            Dtype::Fp16 => GemmType::Fp16,
            Dtype::Bf16 => GemmType::Bf16,
            Dtype::Int8 => GemmType::Int8,
            dtype @ (Dtype::Fp8 | Dtype::Bytes) => return Err(RunError::NotInCublas { id: "matmul", dtype }),
        };
        let cublas = Cublas::open(&self.gpu.context)?;
        Ok(Self { cublas: Some((cublas, types)), ..self })
    }

    /// Every element against the GPU's own reference, which shares nothing with the product.
    fn check_all(&mut self) -> Result<Verification, CudaError> {
        let Self { gpu, check, a, b, out, found, size, pitch, route, .. } = self;
        let bound = ErrorBound::of(size.dtype, size.n);
        let (row, step) = route.layout.strides(*pitch);
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
        let of_block = words.chunks_exact(FOUND_WORDS as usize);
        let wrong: u64 = of_block.clone().map(|found| found[0]).sum();
        let first_wrong = of_block.clone().filter(|found| found[0] > 0).map(|found| found[1]).min();
        let largest = of_block.map(|found| f64::from_bits(found[2])).fold(0.0, f64::max);
        Ok(Verification::of_counts(size.n * size.n, wrong, first_wrong, largest, 1.0))
    }

    /// A few elements against what the host computes of the seeds alone.
    fn check_spots(&self) -> Result<Verification, CudaError> {
        let Size { n, dtype } = self.size;
        let bound = ErrorBound::of(dtype, n);
        let width = values::result_bytes(dtype);
        let mut found = Verification::nothing();
        for spot in 0..SPOTS.min(n * n) {
            let (row, column) = (random::bits(SEED_A, spot) % n, random::bits(SEED_B, spot) % n);
            let mut bytes = [0_u8; 8];
            let place = &mut bytes[..width as usize];
            self.gpu.stream.run(|queue| queue.copy_out(place, &self.out, (row * self.pitch + column) * width))?;
            let (mut sum, mut size) = (Exact::of(0.0), 0.0);
            for k in 0..n {
                let a = values::random(dtype, SEED_A, row * n + k);
                let b = values::random(dtype, SEED_B, column * n + k);
                sum = sum + Exact::of(a) * Exact::of(b);
                size += (a * b).abs();
            }
            let error = bound.error(sum.distance(values::result(dtype, bytes)), sum.abs(), size);
            found = found.and(Verification::of(row * n + column, error, 1.0));
        }
        Ok(found)
    }
}

/// A random matrix, with zeros around it up to whole tiles.
fn random_matrix(gpu: &Gpu, fill: &Kernel, size: Size, layout: Layout, seed: u64) -> Result<DeviceMemory, CudaError> {
    let pitch = route::padded(size.n);
    let (row, step) = layout.strides(pitch);
    let memory = gpu.context.allocate(pitch * pitch * size.dtype.bytes())?;
    let blocks = (pitch * pitch).div_ceil(u64::from(THREADS)).min(1 << 16) as u32;
    let [n, pitch, row, step, seed] = [size.n, pitch, row, step, seed].map(Argument::U64);
    let grid = Grid { blocks, threads: THREADS };
    gpu.stream.run(|queue| queue.launch(fill, grid, &[Argument::Out(&memory), n, pitch, row, step, seed]))?;
    Ok(memory)
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self { gpu, route, multiply, a, b, out, size, pitch, multiprocessors, cublas, .. } = self;
        if let Some((cublas, types)) = cublas {
            let is_step_by_step = route.layout == Layout::StepByStep;
            let elapsed = gpu
                .stream
                .time(|queue| cublas.multiply(queue, *types, (out, a, b), (size.n, *pitch), is_step_by_step))?;
            return Ok(Sample { device_us: Some(elapsed.device_us), host_us: elapsed.host_us });
        }
        let [n, side] = [size.n, *pitch].map(Argument::U64);
        let tiles = route.tiles(size.n) as u32;
        let grid = |blocks| Grid { blocks, threads: route.threads };
        let elapsed = match route.inputs {
            Inputs::Tiles(element) => {
                let left = TensorMap::new(a, element, *pitch, route.tile.0)?;
                let right = TensorMap::new(b, element, *pitch, route.tile.1)?;
                let arguments = [Argument::Out(out), Argument::Tiles(&left), Argument::Tiles(&right), n, side];
                gpu.stream.time(|queue| queue.launch(multiply, grid(tiles.min(*multiprocessors)), &arguments))?
            }
            Inputs::Addresses => {
                let arguments = [Argument::Out(out), Argument::In(a), Argument::In(b), n, side];
                gpu.stream.time(|queue| queue.launch(multiply, grid(tiles), &arguments))?
            }
            Inputs::Strides => {
                let (row, step) = route.layout.strides(*pitch);
                let [row, step] = [row, step].map(Argument::U64);
                let arguments = [Argument::Out(out), Argument::In(a), Argument::In(b), n, side, row, step];
                gpu.stream.time(|queue| queue.launch(multiply, grid(tiles), &arguments))?
            }
        };
        Ok(Sample { device_us: Some(elapsed.device_us), host_us: elapsed.host_us })
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let all = self.check_all()?;
        let spots = self.check_spots()?;
        // The spots are among all, and count once.
        Ok(Verification { checked: all.checked, ..all.and(spots) })
    }
}
