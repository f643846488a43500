//! A small matrix times some vectors: one vector after the other, as a graph of those, and all in one kernel.

use super::{
    chain::{Chain, Form, Links, Whole},
    prelude::*,
};

const KERNELS: Code = ptx!("matvec");
const ROWS: u64 = 150;
const COLUMNS: u64 = 100;
const USUAL_VECTORS: u64 = 10;
const WIDTH: u64 = 4;
/// Each product and each sum is rounded, to half a unit of less than all of them together.
const TOLERANCE: f64 = COLUMNS as f64;

pub(super) static LOOP: Matvec = matvec(
    "matvec-loop",
    "Multiplies a 150x100 matrix by ten vectors, one after the other.",
    "A product this small takes as long as its kernel launch: the loop pays for ten launches.",
    Form::PerOp,
);
pub(super) static GRAPH: Matvec = matvec(
    "matvec-graph",
    "Multiplies a 150x100 matrix by ten vectors, with ten kernels in one CUDA graph.",
    "A CUDA graph launches a fixed sequence of kernels with one call.",
    Form::Graph,
);
pub(super) static BATCHED: Matvec = matvec(
    "matvec-batched",
    "Multiplies a 150x100 matrix by ten vectors in one kernel.",
    "Batching replaces ten launches by one: ten vectors take as long as one.",
    Form::Fused,
);

pub(super) struct Matvec {
    about: About,
    form: Form,
}

const fn matvec(id: &'static str, does: &'static str, teaches: &'static str, form: Form) -> Matvec {
    Matvec {
        about: form.about([id, does, teaches], Bound::Driver, Extent::Times),
        form,
    }
}

impl Workload for Matvec {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_VECTORS
    }

    fn cost(&self, size: Size) -> Cost {
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

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let random = |elements, seed| gpu.random("random_fp32", elements, elements * WIDTH, seed);
        let out = gpu.poisoned(size.n * ROWS * WIDTH)?;
        let memory = vec![
            out,
            random(ROWS * COLUMNS, SEED_A)?,
            random(size.n * COLUMNS, SEED_B)?,
        ];
        let kernels = vec![gpu.kernel(KERNELS, "matvec")?];
        let chain = Chain::new(
            gpu,
            self.form,
            products(size.n, self.form == Form::Fused),
            memory,
            kernels,
        )?;
        Ok(Box::new(Whole {
            gpu,
            chain,
            elements: size.n * ROWS,
            check,
        }))
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let random = |elements, seed| random::array(elements, |index| f32::random(seed, index));
        Ok(Box::new(OnCpu {
            matrix: random(ROWS * COLUMNS, SEED_A),
            vectors: random(size.n * COLUMNS, SEED_B),
            out: vec![f32::POISON; (size.n * ROWS) as usize],
            is_batched: self.form == Form::Fused,
        }))
    }
}

/// The kernels of one run. The memory is the results, the matrix and the vectors, one behind the other.
fn products(vectors: u64, is_batched: bool) -> Links {
    Box::new(move |queue, memory, kernels| {
        let launch = |first: u64, count: u64| {
            let warps = ROWS * count;
            let grid = Grid {
                blocks: warps.div_ceil(u64::from(THREADS / 32)) as u32,
                threads: THREADS,
            };
            let arguments = [
                Argument::At(&memory[0], first * ROWS * WIDTH),
                Argument::In(&memory[1]),
                Argument::At(&memory[2], first * COLUMNS * WIDTH),
                Argument::U64(ROWS),
                Argument::U64(COLUMNS),
                Argument::U64(count),
            ];
            queue.launch(&kernels[0], grid, &arguments)
        };
        if is_batched {
            launch(0, vectors)
        } else {
            (0..vectors).try_for_each(|at| launch(at, 1))
        }
    })
}

/// On one thread, since waking others takes longer.
struct OnCpu {
    matrix: Vec<f32>,
    vectors: Vec<f32>,
    out: Vec<f32>,
    /// Whether each row meets all vectors before the next one.
    is_batched: bool,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            matrix,
            vectors,
            out,
            is_batched,
        } = self;
        let (rows, columns) = (ROWS as usize, COLUMNS as usize);
        Ok(Sample::on_cpu(|| {
            if *is_batched {
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
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&self.out, 0))
    }
}

/// By several sums, so that the processor need not wait for one.
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
        let products = (0..COLUMNS).map(|at| {
            f32::random(SEED_A, row * COLUMNS + at).to_f64()
                * f32::random(SEED_B, vector * COLUMNS + at).to_f64()
        });
        let (sum, scale) = products.fold((0.0, 0.0), |(sum, scale), product| {
            (sum + product, scale + product.abs())
        });
        Expected {
            value: DoubleDouble::from_f64(sum),
            scale,
        }
    })
}
