//! A product on a GPU: both factors, the kernel that multiplies them, and the check of the result.
//! The caller provides the memory for the result.

use super::{
    kernel_select::{
        self, Chip, HOPPER_COPIED_ROWS, Inputs, KernelChoice, Layout, TileDivision,
        padded_row_count,
    },
    values::{self, Tolerance},
};
use crate::{
    catalogue::prelude::*,
    cuda::{Attribute, TensorMap},
    info::{peak_compute_rate, peak_memory_bandwidth},
    protocol::{KernelUse, Shape},
};

/// The number of rows and columns that a block of the check compares.
const CHECKED_SIDE: u64 = 32;
/// The number of words that each thread block of the check kernel returns: the count of wrong
/// elements, the index of the first wrong element, and the largest error of the correct elements.
const FOUND_WORDS: u64 = 3;
/// The number of elements that the host also checks, in case the GPU's own check is wrong.
const HOST_CHECKED_ELEMENTS: u64 = 16;

/// Two random matrices, and the kernels to multiply them and check the result.
pub(crate) struct Product<'gpu> {
    pub(super) gpu: &'gpu Gpu,
    pub(super) choice: KernelChoice,
    multiply: Kernel,
    check: Kernel,
    pub(super) a: DeviceMemory,
    pub(super) b: DeviceMemory,
    found: DeviceMemory,
    cut: TileDivision,
    /// The memory in which the parts of sums are added, if the kernel divides sums.
    parts: Option<DeviceMemory>,
    pub(super) shape: Shape,
    pub(super) dtype: Dtype,
    multiprocessors: u32,
}

/// A product that can be launched. Its factors are in the form that the kernel requires.
pub(crate) struct ReadyProduct<'product> {
    product: &'product Product<'product>,
    /// Both factors as tiles for the copy engine, if the kernel uses it.
    tiles: Option<[TensorMap<'product>; 2]>,
}

/// Returns the shape that a product has in memory, where matrices consist of whole tiles.
pub(super) fn padded_shape(shape: Shape) -> Shape {
    let Shape {
        rows,
        columns,
        depth,
    } = shape;
    Shape {
        rows: padded_row_count(rows),
        columns: padded_row_count(columns),
        depth: padded_row_count(depth),
    }
}

/// Returns the memory in bytes for a product with several results. It is the memory for all
/// matrices, padded to whole tiles, and for the findings of the check.
pub(crate) fn memory_bytes(shape: Shape, dtype: Dtype, results: u64) -> u64 {
    let Shape {
        rows,
        columns,
        depth,
    } = padded_shape(shape);
    // fp32 factors are stored step by step, and the distance between steps is the same in both
    // factors.
    let lines = if dtype == Dtype::Fp32 {
        rows.max(columns).saturating_mul(2)
    } else {
        rows.saturating_add(columns)
    };
    let factors = lines.saturating_mul(depth).saturating_mul(dtype.bytes());
    let results = results.saturating_mul(result_bytes(shape, dtype));
    factors
        .saturating_add(results)
        .saturating_add(findings_bytes(shape))
}

/// Returns the size in bytes of one result in memory, where it is padded to whole tiles.
pub(crate) fn result_bytes(shape: Shape, dtype: Dtype) -> u64 {
    let Shape { rows, columns, .. } = padded_shape(shape);
    rows.saturating_mul(columns)
        .saturating_mul(values::result_element_bytes(dtype))
}

fn findings_bytes(shape: Shape) -> u64 {
    count_check_blocks(shape).saturating_mul(FOUND_WORDS * 8)
}

fn count_check_blocks(Shape { rows, columns, .. }: Shape) -> u64 {
    rows.div_ceil(CHECKED_SIDE)
        .saturating_mul(columns.div_ceil(CHECKED_SIDE))
}

impl<'gpu> Product<'gpu> {
    pub(crate) fn new(gpu: &'gpu Gpu, shape: Shape, dtype: Dtype) -> Result<Self, CudaError> {
        let device = gpu.device();
        let multiprocessors = device.attribute(Attribute::Multiprocessors)?.max(1) as u32;
        let chip = Chip {
            capability: device.capability,
            multiprocessors,
            bytes_per_second: peak_memory_bandwidth(device).value().copied(),
            operations_per_second: peak_compute_rate(device, dtype)
                .value()
                .map(|peak| peak.per_second),
            cache_bytes: device
                .attribute(Attribute::L2CacheBytes)
                .map_or(0, |bytes| bytes.max(0) as u64),
        };
        let choice = kernel_select::choose_kernel(dtype, chip, shape);
        let fill = gpu.load_kernel(kernels::MATMUL_CHECK, &format!("matmul_fill_{dtype}"))?;
        let padded = padded_shape(shape);
        let cut = choice.fastest_division(shape, multiprocessors);
        let matrix = |lines, padded_lines, seed| {
            let of_step = padded.rows.max(padded.columns);
            let held_lines = if choice.layout == Layout::StepByStep {
                of_step
            } else {
                padded_lines
            };
            let held = (held_lines, padded.depth);
            make_random_matrix(
                gpu,
                &fill,
                (lines, shape.depth),
                held,
                dtype,
                choice.layout,
                seed,
            )
        };
        let multiply = gpu
            .load_kernel(choice.code, &choice.kernel)?
            .with_shared_memory(choice.shared_bytes)?;
        Ok(Self {
            gpu,
            multiply: match choice.inputs {
                Inputs::Tiles => multiply.with_programmatic_launch(),
                Inputs::Addresses => multiply,
            },
            check: gpu.load_kernel(kernels::MATMUL_CHECK, &format!("matmul_check_{dtype}"))?,
            a: matrix(shape.rows, padded.rows, SEED_A)?,
            b: matrix(shape.columns, padded.columns, SEED_B)?,
            found: gpu.allocate_poisoned(findings_bytes(shape))?,
            cut,
            parts: choice
                .part_memory_bytes(shape, cut)
                .map(|bytes| gpu.allocate_zeroed(bytes))
                .transpose()?,
            choice,
            shape,
            dtype,
            multiprocessors,
        })
    }

    pub(crate) fn kernel(&self) -> Result<KernelUse, CudaError> {
        self.multiply.read_resource_use(self.choice.threads)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.a.bytes()
            + self.b.bytes()
            + self.found.bytes()
            + self.parts.as_ref().map_or(0, DeviceMemory::bytes)
    }

    pub(crate) fn prepare_launch(&self) -> Result<ReadyProduct<'_>, CudaError> {
        let Shape {
            rows,
            columns,
            depth,
        } = padded_shape(self.shape);
        let (_, across) = self.choice.tile;
        let tiles = match self.choice.inputs {
            Inputs::Tiles => Some([
                TensorMap::new(&self.a, self.dtype, (rows, depth), HOPPER_COPIED_ROWS)?,
                TensorMap::new(&self.b, self.dtype, (columns, depth), across)?,
            ]),
            Inputs::Addresses => None,
        };
        Ok(ReadyProduct {
            product: self,
            tiles,
        })
    }

    /// Returns two distances. The first is the distance between rows of the result. The second is
    /// the distance between rows of both factors, or between their steps if the factors are stored
    /// step by step.
    pub(super) fn result_and_factor_pitches(&self) -> [u64; 2] {
        let Shape {
            rows,
            columns,
            depth,
        } = padded_shape(self.shape);
        let of_factors = match self.choice.layout {
            Layout::RowByRow => depth,
            Layout::StepByStep => rows.max(columns),
        };
        [columns, of_factors]
    }

    /// Checks a result: every element against a reference computed by the GPU, and some elements
    /// against a reference computed by the host.
    pub(crate) fn verify(&mut self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let all = self.check_all_elements(out)?;
        let spots = self.check_some_elements(out)?;
        // The elements that the host checks are also among those that the GPU checks, so they are
        // not counted again.
        Ok(Verification {
            checked: all.checked,
            ..all.merge(spots)
        })
    }

    /// Checks every element against a reference that the GPU computes with code that is independent
    /// of the product's kernel.
    fn check_all_elements(&mut self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let [pitch, pitch_of_factors] = self.result_and_factor_pitches();
        let Self {
            gpu,
            check,
            a,
            b,
            found,
            shape,
            dtype,
            choice,
            ..
        } = self;
        let Shape {
            rows,
            columns,
            depth,
        } = *shape;
        let bound = Tolerance::new(*dtype, depth);
        let (row, step) = choice.layout.row_and_step_strides(pitch_of_factors);
        let blocks = count_check_blocks(*shape);
        let matrices = [Out(found), In(out), In(a), In(b)];
        let numbers = [rows, columns, depth, pitch, row, step].map(U64);
        let bounds = [bound.of_result, bound.of_terms, bound.least].map(Argument::F64);
        let arguments: Vec<_> = matrices.into_iter().chain(numbers).chain(bounds).collect();
        let grid = Grid::with_blocks(blocks);
        gpu.stream
            .run(|queue| queue.launch(check, grid, &arguments))?;
        drop(arguments);
        let mut words = vec![0_u64; (blocks * FOUND_WORDS) as usize];
        gpu.stream
            .run(|queue| queue.copy_to_host(&mut words, found, 0))?;
        let of_block = words.as_chunks::<{ FOUND_WORDS as usize }>().0.iter();
        let wrong: u64 = of_block.clone().map(|found| found[0]).sum();
        let first_wrong = of_block
            .clone()
            .filter(|found| found[0] > 0)
            .map(|found| found[1])
            .min();
        let largest = of_block
            .map(|found| f64::from_bits(found[2]))
            .fold(0.0, f64::max);
        Ok(Verification::from_counts(
            rows * columns,
            wrong,
            first_wrong,
            largest,
            1.0,
        ))
    }

    /// Checks a few elements against results that the host computes. The host generates the inputs
    /// from their seeds, and does not read the GPU's matrices.
    fn check_some_elements(&self, out: &DeviceMemory) -> Result<Verification, CudaError> {
        let (
            Shape {
                rows,
                columns,
                depth,
            },
            dtype,
        ) = (self.shape, self.dtype);
        let bound = Tolerance::new(dtype, depth);
        let (width, pitch) = (
            values::result_element_bytes(dtype),
            padded_shape(self.shape).columns,
        );
        let mut found = Verification::empty();
        for spot in 0..HOST_CHECKED_ELEMENTS.min(rows * columns) {
            let (row, column) = (
                numbers::generate_bits(SEED_A, spot) % rows,
                numbers::generate_bits(SEED_B, spot) % columns,
            );
            let mut bytes = [0_u8; 8];
            let place = &mut bytes[..width as usize];
            self.gpu
                .stream
                .run(|queue| queue.copy_to_host(place, out, (row * pitch + column) * width))?;
            let (mut sum, mut size) = (DoubleDouble::from_f64(0.0), 0.0);
            for k in 0..depth {
                let a = values::random_value(dtype, SEED_A, row * depth + k);
                let b = values::random_value(dtype, SEED_B, column * depth + k);
                sum = sum + DoubleDouble::from_f64(a) * DoubleDouble::from_f64(b);
                size += (a * b).abs();
            }
            let got = values::result_to_f64(dtype, bytes);
            found = found.merge(bound.check_element(row * columns + column, got, sum, size));
        }
        Ok(found)
    }
}

impl ReadyProduct<'_> {
    /// Queues the product, whose result is written to `out`, beginning at this offset. Every launch
    /// computes exactly the same bits, because no kernel adds terms in a random order.
    pub(crate) fn launch<'scope>(
        &'scope self,
        queue: &Queue<'_, 'scope>,
        out: &'scope DeviceMemory,
        offset_bytes: u64,
    ) -> Result<(), CudaError> {
        let Product {
            multiply,
            choice,
            a,
            b,
            cut,
            parts,
            shape,
            dtype,
            multiprocessors,
            ..
        } = self.product;
        assert!(
            offset_bytes + result_bytes(*shape, *dtype) <= out.bytes(),
            "the result fits"
        );
        let out = At(out, offset_bytes);
        let Shape {
            rows,
            columns,
            depth,
        } = *shape;
        let [pitch, input_pitch] = self.product.result_and_factor_pitches();
        let [rows, columns, depth, pitch, input_pitch] =
            [rows, columns, depth, pitch, input_pitch].map(U64);
        let pieces = cut.count_pieces(choice.count_tiles(*shape)) as u32;
        let (factors, blocks) = match &self.tiles {
            Some([left, right]) => (
                [Argument::Tiles(left), Argument::Tiles(right)],
                pieces.min(*multiprocessors),
            ),
            None => ([In(a), In(b)], pieces),
        };
        let mut arguments = vec![out];
        arguments.extend(factors);
        arguments.extend([rows, columns, depth, pitch]);
        arguments.extend(self.tiles.is_none().then_some(input_pitch));
        if let Some(parts) = parts {
            arguments.extend([At(parts, 0), U64(cut.whole), U64(cut.parts)]);
        }
        let grid = Grid {
            blocks,
            threads: choice.threads,
        };
        queue.launch(multiply, grid, &arguments)
    }
}

/// Creates a random matrix with this number of lines and steps, padded with zeros to its size in
/// memory.
fn make_random_matrix(
    gpu: &Gpu,
    fill: &Kernel,
    (lines, depth): (u64, u64),
    (held_lines, held_depth): (u64, u64),
    dtype: Dtype,
    layout: Layout,
    seed: u64,
) -> Result<DeviceMemory, CudaError> {
    let (row, step) = layout.row_and_step_strides(if layout == Layout::StepByStep {
        held_lines
    } else {
        held_depth
    });
    let elements = held_lines * held_depth;
    let memory = gpu.context.allocate(elements * dtype.bytes())?;
    let grid = Grid::with_blocks(elements.div_ceil(u64::from(THREADS_PER_BLOCK)).min(1 << 16));
    let numbers = [lines, depth, held_lines, held_depth, row, step, seed].map(U64);
    let arguments: Vec<_> = [Out(&memory)].into_iter().chain(numbers).collect();
    gpu.stream
        .run(|queue| queue.launch(fill, grid, &arguments))?;
    drop(arguments);
    Ok(memory)
}
