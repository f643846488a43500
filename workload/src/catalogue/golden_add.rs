//! `vector-add-32x128`: a vector of the size of its grid, once with numbers whose sum anybody knows.

use super::{
    chain::{Chain, Form, Links},
    on_cpu::{OnCpu, check},
    operations::VectorAdd,
    prelude::*,
};

static ABOUT: About = About {
    id: "vector-add-32x128",
    does: "Adds two vectors of 4096 elements in 32 blocks of 128 threads: random numbers, and 0, 1, 2, ... plus ones.",
    teaches: "The grid covers the array: each thread computes its element from its block and thread index.",
    dtypes: &[Dtype::Fp32],
    backends: &[Backend::Cuda, Backend::Cpu],
    bound: Bound::Driver,
    extent: Extent::Fixed,
};

const GRID: Grid = Grid {
    blocks: 32,
    threads: 128,
};
const ELEMENTS: u64 = GRID.blocks as u64 * GRID.threads as u64;
const BYTES: u64 = ELEMENTS * 4;

pub(super) struct VectorAddGrid;

impl Workload for VectorAddGrid {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        ELEMENTS
    }

    fn cost(&self, _: Size) -> Cost {
        Cost {
            memory_bytes: 3 * BYTES,
            moved_bytes: 3 * BYTES,
            operations: ELEMENTS,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, _: Size) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let kernel = || gpu.kernel(kernels::ELEMENTWISE, "vector_add_fp32");
        let random = |seed| gpu.random("random_fp32", ELEMENTS, BYTES, seed);
        let memory = vec![gpu.poisoned(BYTES)?, random(SEED_A)?, random(SEED_B)?];
        let links: Links = Box::new(|queue, memory, kernels| {
            queue.launch(
                &kernels[0],
                GRID,
                &arguments([&memory[0], &memory[1], &memory[2]]),
            )
        });
        let chain = Chain::new(gpu, Form::Fused, links, memory, vec![kernel()?])?;
        Ok(Box::new(OnCuda {
            gpu,
            kernel: kernel()?,
            chain,
        }))
    }

    fn on_cpu(&self, _: Size) -> Result<Box<dyn Prepared>, RunError> {
        Ok(Box::new(OnCpu::<VectorAdd, f32>::new(ELEMENTS, true)))
    }
}

/// The sum, and what is added up.
fn arguments([out, a, b]: [&DeviceMemory; 3]) -> [Argument<'_>; 4] {
    [
        Argument::Out(out),
        Argument::In(a),
        Argument::In(b),
        Argument::U64(ELEMENTS),
    ]
}

struct OnCuda<'gpu> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    /// The sum of random numbers.
    chain: Chain,
}

impl Prepared for OnCuda<'_> {
    fn run(&mut self) -> Result<Sample, RunError> {
        self.gpu.time(|queue| self.chain.put(queue))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        let random = self
            .gpu
            .check(&self.chain.memory()[0], ELEMENTS, check::<VectorAdd, f32>)?;
        Ok(random.and(self.count()?))
    }
}

impl OnCuda<'_> {
    /// 0, 1, 2, ... plus 1 is 1, 2, 3, ..., to the bit.
    fn count(&self) -> Result<Verification, RunError> {
        let counting: Vec<f32> = (0..ELEMENTS).map(|index| index as f32).collect();
        let (a, b) = (
            self.gpu.upload(&counting)?,
            self.gpu.upload(&vec![1.0_f32; ELEMENTS as usize])?,
        );
        let out = self.gpu.poisoned(BYTES)?;
        self.gpu
            .stream
            .run(|queue| queue.launch(&self.kernel, GRID, &arguments([&out, &a, &b])))?;
        let sums: Vec<f32> = self.gpu.download(&out)?;
        let bits: Vec<u64> = sums.iter().map(|sum| u64::from(sum.to_bits())).collect();
        Ok(compare_words(&bits, 0, |index| {
            u64::from((index as f32 + 1.0).to_bits())
        }))
    }
}
