//! Products of small matrices and their transposes. In a real program, the traces of the products
//! would be values that a loop logs.

use super::prelude::*;
use crate::cuda::PinnedMemory;

const SIDE: usize = 100;
const AREA: usize = SIDE * SIDE;
const MATRIX_BYTES: u64 = (AREA * 4) as u64;
/// The number of threads per block in `gram.cu`.
const BATCH_THREADS: u32 = 400;
const WARP: u32 = 32;
const TILE_GRID: Grid = Grid {
    blocks: 100,
    threads: 100,
};
/// The offset in bytes of a trace's parts in the scratch memory. The counter of finished blocks
/// precedes them.
const PARTS_OFFSET: u64 = 64;
const SCRATCH_BYTES: u64 = 128;
/// The allowed error. An element is the sum of a hundred products. Each of the hundred
/// multiplications and additions causes an error of at most half a unit of the total. Adding up the
/// trace may cause the same error again.
const TOLERANCE: f64 = 2.0 * SIDE as f64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gram {
    OneByOne,
    Logged,
    Batched,
}

impl Gram {
    /// Returns the number of products in memory: all products if they are computed together, and
    /// otherwise only the last one.
    fn count_stored_products(self, matrices: u64) -> u64 {
        if self == Self::Batched { matrices } else { 1 }
    }
}

impl Program for Gram {
    fn cost_of(&self, size: Size) -> Cost {
        let products = self.count_stored_products(size.n);
        Cost {
            memory_bytes: size
                .n
                .saturating_add(products)
                .saturating_mul(MATRIX_BYTES + 4),
            // For the check, the products are copied to the host.
            host_bytes: products.saturating_mul(MATRIX_BYTES),
            operations: size.n.saturating_mul(2 * (AREA * SIDE) as u64),
            moved_bytes: 0,
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let form = *self;
        // The GPU writes the trace of a single product into pinned memory.
        let mut arrived = PinnedMemory::new(&gpu.context, 4)?;
        arrived.slice_mut().fill(f32::POISON);
        // The first kernel computes one product and its trace. The other two compute many products.
        let kernels = gpu.load_kernels(ptx!("gram"), &["gram_tiles", "gram", "trace"])?;
        let matrices = gpu.allocate_random_array::<f32>(size.n * AREA as u64, SEED_A)?;
        let products = gpu.allocate_poisoned(self.count_stored_products(size.n) * MATRIX_BYTES)?;
        let log = gpu.allocate_poisoned(size.n * 4)?;
        let scratch = gpu.allocate_zeroed(SCRATCH_BYTES)?;
        prepare_work(
            (products, vec![f32::POISON; size.n as usize]),
            move |(products, traces)| {
                let [tiles, product, trace] = [&kernels[0], &kernels[1], &kernels[2]];
                match form {
                    // The host receives each trace before the next product begins. A single pair of
                    // events measures the whole loop, because a pair for each product would take as
                    // long as the product.
                    Self::OneByOne => gpu.run_timed(|_| {
                        for (at, place) in traces.iter_mut().enumerate() {
                            gpu.stream.run(|queue| {
                                let trace = Pinned(&mut arrived);
                                let arguments = tiled_product_arguments(
                                    products, trace, &matrices, at as u64, &scratch,
                                );
                                queue.launch(tiles, TILE_GRID, &arguments)
                            })?;
                            *place = std::mem::replace(&mut arrived.slice_mut()[0], f32::POISON);
                        }
                        Ok(())
                    }),
                    Self::Logged => gpu.run_timed(|queue| {
                        for at in 0..traces.len() as u64 {
                            let trace = At(&log, at * 4);
                            let arguments =
                                tiled_product_arguments(products, trace, &matrices, at, &scratch);
                            queue.launch(tiles, TILE_GRID, &arguments)?;
                        }
                        queue.copy_to_host(traces, &log, 0)
                    }),
                    Self::Batched => gpu.run_timed(|queue| {
                        let grid = |threads| Grid {
                            blocks: traces.len() as u32,
                            threads,
                        };
                        let (of_products, of_traces) = (grid(BATCH_THREADS), grid(WARP));
                        queue.launch(product, of_products, &[Out(products), In(&matrices)])?;
                        queue.launch(trace, of_traces, &[Out(&log), In(products)])?;
                        queue.copy_to_host(traces, &log, 0)
                    }),
                }
            },
            move |(products, traces)| {
                Ok(check_products_and_traces(
                    &gpu.copy_to_host::<f32>(products)?,
                    traces,
                ))
            },
        )
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let matrices = f32::random_array(size.n * AREA as u64, SEED_A);
        let products = vec![f32::POISON; self.count_stored_products(size.n) as usize * AREA];
        prepare_cpu_work(
            (products, vec![f32::POISON; size.n as usize]),
            move |(products, traces)| {
                if products.len() == matrices.len() {
                    let all = products.chunks_mut(AREA).zip(matrices.chunks(AREA));
                    *traces = parallel::map(all, &|(product, matrix)| {
                        compute_product_and_trace(product, matrix)
                    });
                } else {
                    for (matrix, trace) in matrices.chunks(AREA).zip(traces) {
                        *trace = compute_product_and_trace(products, matrix);
                    }
                }
            },
            |(products, traces)| check_products_and_traces(products, traces),
        )
    }
}

/// Returns the arguments of the kernel that computes one product in tiles. `trace` is where the
/// kernel writes the trace.
fn tiled_product_arguments<'scope>(
    products: &'scope DeviceMemory,
    trace: Argument<'scope>,
    matrices: &'scope DeviceMemory,
    at: u64,
    scratch: &'scope DeviceMemory,
) -> [Argument<'scope>; 5] {
    [
        Out(products),
        trace,
        At(matrices, at * MATRIX_BYTES),
        At(scratch, PARTS_OFFSET),
        Out(scratch),
    ]
}

/// Multiplies a matrix by its transpose, and returns the trace. Whole rows are added, so that the
/// compiler can vectorize the loop.
fn compute_product_and_trace(product: &mut [f32], matrix: &[f32]) -> f32 {
    let mut upright = vec![0.0; AREA];
    for (row, elements) in matrix.chunks(SIDE).enumerate() {
        elements
            .iter()
            .enumerate()
            .for_each(|(column, element)| upright[column * SIDE + row] = *element);
    }
    for (out, row) in product.chunks_mut(SIDE).zip(matrix.chunks(SIDE)) {
        out.fill(0.0);
        for (factor, column) in row.iter().zip(upright.chunks(SIDE)) {
            out.iter_mut()
                .zip(column)
                .for_each(|(out, element)| *out += factor * element);
        }
    }
    product.iter().step_by(SIDE + 1).sum()
}

/// Checks every trace, and every element of `products`, which contains either the products of all
/// matrices or only the last product.
fn check_products_and_traces(products: &[f32], traces: &[f32]) -> Verification {
    let log = compare_elements(traces, 0, TOLERANCE, |index| {
        Expected::from_products(
            generate_matrix(index)
                .iter()
                .map(|element| element * element),
        )
    });
    let skipped = traces.len() - products.len() / AREA;
    let checked = parallel::map(products.chunks(AREA).enumerate(), &|(at, product)| {
        let matrix = generate_matrix((skipped + at) as u64);
        let first = traces.len() + at * AREA;
        compare_elements(product, first as u64, TOLERANCE, |index| {
            let element = index as usize - first;
            let [row, column] = [element / SIDE, element % SIDE].map(|row| &matrix[row * SIDE..]);
            Expected::from_products(row[..SIDE].iter().zip(column).map(|(a, b)| a * b))
        })
    });
    log.merge(checked.into_iter().collect())
}

/// Generates a matrix. `at` is its position in the sequence of matrices.
fn generate_matrix(at: u64) -> Vec<f64> {
    (0..AREA as u64)
        .map(|index| f32::random_number(SEED_A, at * AREA as u64 + index).to_f64())
        .collect()
}
