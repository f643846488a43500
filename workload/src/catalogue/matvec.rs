//! Products of a small matrix and several vectors. The products are computed one after another, as
//! a graph, or all in one kernel.

use super::{
    chain::{Chain, LaunchMethod, QueueKernels, prepare_chain},
    prelude::*,
};

const ROWS: u64 = 150;
const COLUMNS: u64 = 100;
const ELEMENT_BYTES: u64 = 4;
/// The allowed error. Each product and each sum is at most as large as the total, and is rounded to
/// half a unit.
const TOLERANCE: f64 = COLUMNS as f64;

pub(super) struct Matvec(pub(super) LaunchMethod);

impl Program for Matvec {
    fn cost_of(&self, size: Size) -> Cost {
        let elements = size
            .n
            .saturating_mul(ROWS + COLUMNS)
            .saturating_add(ROWS * COLUMNS);
        Cost {
            memory_bytes: elements.saturating_mul(ELEMENT_BYTES),
            operations: size.n.saturating_mul(2 * ROWS * COLUMNS),
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let memory = vec![
            gpu.allocate_poisoned(size.n * ROWS * ELEMENT_BYTES)?,
            gpu.allocate_random_array::<f32>(ROWS * COLUMNS, SEED_A)?,
            gpu.allocate_random_array::<f32>(size.n * COLUMNS, SEED_B)?,
        ];
        let kernels = gpu.load_kernels(ptx!("matvec"), &["matvec"])?;
        let products = make_queue_function(size.n, self.0 == LaunchMethod::Fused);
        let chain = Chain::new(gpu, self.0, products, memory, kernels)?;
        prepare_chain(gpu, chain, size.n * ROWS, check_elements)
    }

    /// Prepares a run on a single thread, because waking other threads takes longer than the run.
    /// If the run is batched, each row is multiplied by all vectors before the next row.
    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let matrix = f32::random_array(ROWS * COLUMNS, SEED_A);
        let vectors = f32::random_array(size.n * COLUMNS, SEED_B);
        let (rows, columns) = (ROWS as usize, COLUMNS as usize);
        let is_batched = self.0 == LaunchMethod::Fused;
        prepare_cpu_work(
            vec![f32::POISON; (size.n * ROWS) as usize],
            move |out| {
                if is_batched {
                    for (at, row) in matrix.chunks(columns).enumerate() {
                        for (vector, out) in vectors.chunks(columns).zip(out.chunks_mut(rows)) {
                            out[at] = dot_product(row, vector);
                        }
                    }
                } else {
                    for (vector, out) in vectors.chunks(columns).zip(out.chunks_mut(rows)) {
                        out.iter_mut()
                            .zip(matrix.chunks(columns))
                            .for_each(|(out, row)| *out = dot_product(row, vector));
                    }
                }
            },
            |out| check_elements(out, 0),
        )
    }
}

/// Returns a function that queues the kernels of one run. Its memory argument contains the results,
/// the matrix and the vectors, in this order.
fn make_queue_function(vectors: u64, is_batched: bool) -> QueueKernels {
    Box::new(move |queue, memory, kernels| {
        let launch = |first: u64, count: u64| {
            let warps = ROWS * count;
            let arguments = [
                At(&memory[0], first * ROWS * ELEMENT_BYTES),
                In(&memory[1]),
                At(&memory[2], first * COLUMNS * ELEMENT_BYTES),
                U64(ROWS),
                U64(COLUMNS),
                U64(count),
            ];
            let grid = Grid::with_blocks(warps.div_ceil(u64::from(THREADS_PER_BLOCK / 32)));
            queue.launch(&kernels[0], grid, &arguments)
        };
        if is_batched {
            launch(0, vectors)
        } else {
            (0..vectors).try_for_each(|at| launch(at, 1))
        }
    })
}

/// Returns the dot product. Several sums are computed in parallel, so that the processor does not
/// wait for each addition.
fn dot_product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 4];
    for (a, b) in a.chunks(4).zip(b.chunks(4)) {
        sums.iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

fn check_elements(out: &[f32], first: u64) -> Verification {
    compare_elements(out, first, TOLERANCE, |index| {
        let (row, vector) = (index % ROWS, index / ROWS);
        Expected::from_products((0..COLUMNS).map(|at| {
            f32::random_number(SEED_A, row * COLUMNS + at).to_f64()
                * f32::random_number(SEED_B, vector * COLUMNS + at).to_f64()
        }))
    })
}
