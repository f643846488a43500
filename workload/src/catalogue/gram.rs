//! Small matrices times their transposes, and the trace of each product: the log of a loop.

use super::prelude::*;

const KERNELS: Code = ptx!("gram");
const SIDE: usize = 100;
const AREA: usize = SIDE * SIDE;
const MATRIX_BYTES: u64 = (AREA * 4) as u64;
const USUAL_MATRICES: u64 = 1000;
/// As in `gram.cu`.
const BATCH_THREADS: u32 = 400;
const WARP: u32 = 32;
const TILES: u32 = 100;
const TILE_THREADS: u32 = 100;
/// How many have arrived, and behind that the parts of a trace.
const PARTS_AT: u64 = 64;
const SCRATCH_BYTES: u64 = 128;
/// A hundred products and sums, each rounded to half a unit of all of them, and as much again for the trace.
const TOLERANCE: f64 = 2.0 * SIDE as f64;

pub(super) static ONE_BY_ONE: Gram = gram(
    "gram-one-by-one",
    "Multiplies 1000 matrices of 100x100 by their transposes and reads each trace on the host before the next.",
    "Reading each result on the host synchronizes host and GPU a thousand times.",
    Form::OneByOne,
);
pub(super) static LOGGED: Gram = gram(
    "gram-logged",
    "Multiplies 1000 matrices of 100x100 by their transposes and keeps the traces on the GPU until the end.",
    "Results that stay on the GPU let the host run ahead: it synchronizes once, at the end.",
    Form::Logged,
);
pub(super) static BATCHED: Gram = gram(
    "gram-batched",
    "Multiplies 1000 matrices of 100x100 by their transposes in one kernel and computes the traces in another.",
    "Batched small products fill a GPU: each multiprocessor computes its own.",
    Form::Batched,
);

pub(super) struct Gram {
    about: About,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    OneByOne,
    Logged,
    Batched,
}

const fn gram(id: &'static str, does: &'static str, teaches: &'static str, form: Form) -> Gram {
    let backends: &[Backend] = if matches!(form, Form::Logged) {
        &[Backend::Cuda]
    } else {
        &[Backend::Cuda, Backend::Cpu]
    };
    let bound = if matches!(form, Form::Batched) {
        Bound::Compute
    } else {
        Bound::Driver
    };
    let about = About {
        id,
        does,
        teaches,
        dtypes: &[Dtype::Fp32],
        backends,
        bound,
        extent: Extent::Times,
    };
    Gram { about, form }
}

impl Workload for Gram {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_MATRICES
    }

    fn cost(&self, size: Size) -> Cost {
        let products = if self.form == Form::Batched {
            size.n
        } else {
            1
        };
        Cost {
            memory_bytes: size
                .n
                .saturating_add(products)
                .saturating_mul(MATRIX_BYTES + 4),
            // What is checked.
            host_bytes: products.saturating_mul(MATRIX_BYTES),
            operations: size.n.saturating_mul(2 * (AREA * SIDE) as u64),
            moved_bytes: 0,
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let products = if self.form == Form::Batched {
            size.n
        } else {
            1
        };
        let code = gpu.context.load(KERNELS)?;
        let mut arrived = gpu.context.pin(4)?;
        arrived.slice_mut().fill(f32::POISON);
        Ok(Box::new(OnCuda {
            gpu,
            form: self.form,
            tiles: code.kernel("gram_tiles")?,
            product: code.kernel("gram")?,
            trace: code.kernel("trace")?,
            matrices: gpu.random(
                "random_fp32",
                size.n * AREA as u64,
                size.n * MATRIX_BYTES,
                SEED_A,
            )?,
            products: gpu.poisoned(products * MATRIX_BYTES)?,
            log: gpu.poisoned(size.n * 4)?,
            scratch: gpu.zeroed(SCRATCH_BYTES)?,
            arrived,
            traces: vec![f32::POISON; size.n as usize],
        }))
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let products = if self.form == Form::Batched {
            size.n as usize
        } else {
            1
        };
        Ok(Box::new(OnCpu {
            matrices: random::array(size.n * AREA as u64, |index| f32::random(SEED_A, index)),
            products: vec![f32::POISON; products * AREA],
            traces: vec![f32::POISON; size.n as usize],
        }))
    }
}

struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    form: Form,
    /// Makes one product and its trace.
    tiles: Kernel,
    /// These two make many.
    product: Kernel,
    trace: Kernel,
    matrices: DeviceMemory,
    /// Of all where they are made together, and else of the last.
    products: DeviceMemory,
    log: DeviceMemory,
    /// Of the tiles.
    scratch: DeviceMemory,
    /// One trace, where the GPU writes it.
    arrived: PinnedMemory,
    traces: Vec<f32>,
}

impl OnCuda<'_> {
    /// The host has each trace before the next product begins. Events stand around all of it, since two around each would
    /// take as long as it does.
    fn one_by_one(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            tiles,
            matrices,
            products,
            scratch,
            arrived,
            traces,
            ..
        } = self;
        gpu.time(|_| {
            for (at, place) in traces.iter_mut().enumerate() {
                gpu.stream.run(|queue| {
                    let arguments = of_one(
                        products,
                        Argument::Pinned(arrived),
                        matrices,
                        at as u64,
                        scratch,
                    );
                    queue.launch(tiles, TILE_GRID, &arguments)
                })?;
                *place = std::mem::replace(&mut arrived.slice_mut()[0], f32::POISON);
            }
            Ok(())
        })
    }

    fn logged(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            tiles,
            matrices,
            products,
            log,
            scratch,
            traces,
            ..
        } = self;
        gpu.time(|queue| {
            for at in 0..traces.len() as u64 {
                let arguments = of_one(products, Argument::At(log, at * 4), matrices, at, scratch);
                queue.launch(tiles, TILE_GRID, &arguments)?;
            }
            queue.copy_out(traces, log, 0)
        })
    }

    fn batched(&mut self) -> Result<Sample, RunError> {
        let Self {
            gpu,
            product,
            trace,
            matrices,
            products,
            log,
            traces,
            ..
        } = self;
        let grid = |threads| Grid {
            blocks: traces.len() as u32,
            threads,
        };
        let (of_products, of_traces) = (grid(BATCH_THREADS), grid(WARP));
        gpu.time(|queue| {
            queue.launch(
                product,
                of_products,
                &[Argument::Out(products), Argument::In(matrices)],
            )?;
            queue.launch(
                trace,
                of_traces,
                &[Argument::Out(log), Argument::In(products)],
            )?;
            queue.copy_out(traces, log, 0)
        })
    }
}

const TILE_GRID: Grid = Grid {
    blocks: TILES,
    threads: TILE_THREADS,
};

/// What the tiles of one product are given, with the place for its trace.
fn of_one<'scope>(
    products: &'scope DeviceMemory,
    trace: Argument<'scope>,
    matrices: &'scope DeviceMemory,
    at: u64,
    scratch: &'scope DeviceMemory,
) -> [Argument<'scope>; 5] {
    let matrix = Argument::At(matrices, at * MATRIX_BYTES);
    [
        Argument::Out(products),
        trace,
        matrix,
        Argument::At(scratch, PARTS_AT),
        Argument::Out(scratch),
    ]
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        match self.form {
            Form::OneByOne => self.one_by_one(),
            Form::Logged => self.logged(),
            Form::Batched => self.batched(),
        }
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(
            &self.gpu.download::<f32>(&self.products)?,
            &self.traces,
        ))
    }
}

struct OnCpu {
    matrices: Vec<f32>,
    /// As on a GPU.
    products: Vec<f32>,
    traces: Vec<f32>,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self {
            matrices,
            products,
            traces,
        } = self;
        Ok(Sample::on_cpu(|| {
            if products.len() == matrices.len() {
                let all = products.chunks_mut(AREA).zip(matrices.chunks(AREA));
                *traces = parallel::map(all, &|(product, matrix)| multiply(product, matrix));
            } else {
                for (matrix, trace) in matrices.chunks(AREA).zip(traces) {
                    *trace = multiply(products, matrix);
                }
            }
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&self.products, &self.traces))
    }
}

/// Makes the product of a matrix and its transpose, and returns the trace. Rows are added up whole, so that the compiler
/// works on several elements at once.
fn multiply(product: &mut [f32], matrix: &[f32]) -> f32 {
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

/// Every trace, and every element of the products that there are: those of all matrices, or of the last.
fn check(products: &[f32], traces: &[f32]) -> Verification {
    let log = compare(traces, 0, TOLERANCE, |index| {
        let trace = matrix(index).iter().map(|element| element * element).sum();
        Expected {
            value: DoubleDouble::from_f64(trace),
            scale: trace,
        }
    });
    let skipped = traces.len() - products.len() / AREA;
    let checked = parallel::map(products.chunks(AREA).enumerate(), &|(at, product)| {
        let matrix = matrix((skipped + at) as u64);
        let first = traces.len() + at * AREA;
        compare(product, first as u64, TOLERANCE, |index| {
            let element = index as usize - first;
            let (row, column) = (
                &matrix[element / SIDE * SIDE..][..SIDE],
                &matrix[element % SIDE * SIDE..][..SIDE],
            );
            let (sum, scale) = row
                .iter()
                .zip(column)
                .fold((0.0, 0.0), |(sum, scale), (a, b)| {
                    (sum + a * b, scale + (a * b).abs())
                });
            Expected {
                value: DoubleDouble::from_f64(sum),
                scale,
            }
        })
    });
    log.and(checked.into_iter().collect())
}

/// A matrix, made anew from the seed.
fn matrix(at: u64) -> Vec<f64> {
    (0..AREA as u64)
        .map(|index| f32::random(SEED_A, at * AREA as u64 + index).to_f64())
        .collect()
}
