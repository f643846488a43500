//! Products of a small matrix and several vectors: one vector after another, as a graph of these
//! products, and all in one kernel.

use super::{
    chain::{Chain, Form, Links, prepare_chain},
    prelude::*,
};

const ROWS: u64 = 150;
const COLUMNS: u64 = 100;
const WIDTH: u64 = 4;
/// The tolerance. Each product and each sum is smaller than the total, and rounded to half a unit.
const TOLERANCE: f64 = COLUMNS as f64;

pub(super) struct Matvec(pub(super) Form);

impl Program for Matvec {
    fn cost_of(&self, size: Size) -> Cost {
        let elements = size
            .n
            .saturating_mul(ROWS + COLUMNS)
            .saturating_add(ROWS * COLUMNS);
        Cost {
            memory_bytes: elements.saturating_mul(WIDTH),
            operations: size.n.saturating_mul(2 * ROWS * COLUMNS),
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let memory = vec![
            gpu.poisoned(size.n * ROWS * WIDTH)?,
            gpu.random_array::<f32>(ROWS * COLUMNS, SEED_A)?,
            gpu.random_array::<f32>(size.n * COLUMNS, SEED_B)?,
        ];
        let kernels = gpu.load_kernels(ptx!("matvec"), &["matvec"])?;
        let products = products(size.n, self.0 == Form::Fused);
        let chain = Chain::new(gpu, self.0, products, memory, kernels)?;
        prepare_chain(gpu, chain, size.n * ROWS, check)
    }

    /// Prepares a run on one thread, because waking others takes longer. If it is batched, each row
    /// is multiplied by all vectors before the next row.
    fn on_cpu(&self, size: Size) -> Ready<'static> {
        let matrix = f32::random_array(ROWS * COLUMNS, SEED_A);
        let vectors = f32::random_array(size.n * COLUMNS, SEED_B);
        let (rows, columns) = (ROWS as usize, COLUMNS as usize);
        let is_batched = self.0 == Form::Fused;
        prepare_on_cpu(
            vec![f32::POISON; (size.n * ROWS) as usize],
            move |out| {
                if is_batched {
                    for (at, row) in matrix.chunks(columns).enumerate() {
                        for (vector, out) in vectors.chunks(columns).zip(out.chunks_mut(rows)) {
                            out[at] = dot(row, vector);
                        }
                    }
                } else {
                    for (vector, out) in vectors.chunks(columns).zip(out.chunks_mut(rows)) {
                        out.iter_mut()
                            .zip(matrix.chunks(columns))
                            .for_each(|(out, row)| *out = dot(row, vector));
                    }
                }
            },
            |out| check(out, 0),
        )
    }
}

/// Returns a function that queues the kernels of one run. The memory contains the results, the
/// matrix and the vectors, in this order.
fn products(vectors: u64, is_batched: bool) -> Links {
    Box::new(move |queue, memory, kernels| {
        let launch = |first: u64, count: u64| {
            let warps = ROWS * count;
            let arguments = [
                At(&memory[0], first * ROWS * WIDTH),
                In(&memory[1]),
                At(&memory[2], first * COLUMNS * WIDTH),
                U64(ROWS),
                U64(COLUMNS),
                U64(count),
            ];
            let grid = Grid::of_blocks(warps.div_ceil(u64::from(THREADS / 32)));
            queue.launch(&kernels[0], grid, &arguments)
        };
        if is_batched {
            launch(0, vectors)
        } else {
            (0..vectors).try_for_each(|at| launch(at, 1))
        }
    })
}

/// Returns the dot product from several sums, so that the processor does not wait for each
/// addition.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 4];
    for (a, b) in a.chunks(4).zip(b.chunks(4)) {
        sums.iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}

fn check(out: &[f32], first: u64) -> Verification {
    compare(out, first, TOLERANCE, |index| {
        let (row, vector) = (index % ROWS, index / ROWS);
        Expected::of_products((0..COLUMNS).map(|at| {
            f32::random(SEED_A, row * COLUMNS + at).to_f64()
                * f32::random(SEED_B, vector * COLUMNS + at).to_f64()
        }))
    })
}
