//! `transcendental`: many costly functions for each element.

use super::{
    chain::{Chain, Links, Whole},
    prelude::*,
};
use crate::exp::exp;

const KERNELS: Code = ptx!("transcendental");

static ABOUT: About = About {
    id: "transcendental",
    does: "Sums 32 sines, exponentials and inverse roots for each of a million elements.",
    teaches: "With hundreds of operations per element, compute throughput is the limit, not memory.",
    dtypes: &[Dtype::Fp32],
    backends: &[Backend::Cuda, Backend::Cpu],
    bound: Bound::Compute,
    extent: Extent::Elements,
};

const USUAL_ELEMENTS: u64 = 1 << 20;
const ROUNDS: u64 = 32;
/// Of each round: three functions, and what is around them.
const OPERATIONS: u64 = 8;
/// Two units for each function, and a half for each of the sums.
const TOLERANCE: f64 = 2.0 + 1.5 * ROUNDS as f64;
const CHUNK: usize = 1 << 10;

pub(super) struct Transcendental;

impl Workload for Transcendental {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_ELEMENTS
    }

    fn cost(&self, size: Size) -> Cost {
        let bytes = size.bytes().saturating_mul(2);
        let operations = size.n.saturating_mul(ROUNDS * OPERATIONS);
        Cost {
            memory_bytes: bytes,
            moved_bytes: bytes,
            operations,
            ..Cost::default()
        }
    }

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let memory = vec![
            gpu.poisoned(size.bytes())?,
            gpu.random("random_fp32", size.n, size.bytes(), SEED_A)?,
        ];
        let links: Links = Box::new(move |queue, memory, kernels| {
            let (out, a) = (Argument::Out(&memory[0]), Argument::In(&memory[1]));
            let arguments = [out, a, Argument::U64(size.n), Argument::U64(ROUNDS)];
            queue.launch(&kernels[0], thread_each(size.n), &arguments)
        });
        let chain = Chain::Links {
            links,
            memory,
            kernels: vec![gpu.kernel(KERNELS, "transcendental")?],
        };
        Ok(Box::new(Whole {
            gpu,
            chain,
            elements: size.n,
            check,
        }))
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let a = random::array(size.n, |index| f32::random(SEED_A, index));
        Ok(Box::new(OnCpu {
            a,
            out: vec![f32::POISON; size.n as usize],
        }))
    }
}

struct OnCpu {
    a: Vec<f32>,
    out: Vec<f32>,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        Ok(Sample::on_cpu(|| {
            parallel::for_each(
                self.out.chunks_mut(CHUNK).zip(self.a.chunks(CHUNK)),
                &|(out, a)| {
                    // The rounds are the outer loop, so that the compiler computes several elements
                    // at once. The sum of a single element could only be computed in sequence.
                    out.fill(0.0);
                    for round in 0..ROUNDS {
                        out.iter_mut().zip(a).for_each(|(out, a)| {
                            let x = place(*a, round);
                            *out += x.cos_sin().1 + exp(-x) + 1.0 / (1.0 + x * x).sqrt();
                        });
                    }
                },
            );
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&self.out, 0))
    }
}

/// Where the functions are computed: rounded like this, everywhere.
fn place(a: f32, round: u64) -> f32 {
    a + round as f32
}

fn check(out: &[f32], first: u64) -> Verification {
    compare(out, first, TOLERANCE, |index| {
        let a = f32::random(SEED_A, index);
        let terms = (0..ROUNDS).map(|round| {
            let x = place(a, round).to_f64();
            (x.sin(), (-x).exp() + 1.0 / (1.0 + x * x).sqrt())
        });
        let (value, scale) = terms.fold((0.0, 0.0), |(value, scale), (sine, rest)| {
            (value + (sine + rest), scale + (sine.abs() + rest))
        });
        Expected {
            value: DoubleDouble::from_f64(value),
            scale,
        }
    })
}
