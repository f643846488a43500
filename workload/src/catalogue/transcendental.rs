//! `transcendental`: many expensive functions for each element.

use super::{
    chain::{Chain, QueueKernels, prepare_chain},
    prelude::*,
};
use crate::numbers::exp_f32;

const ROUNDS: u64 = 32;
/// The number of operations per round: three functions, and the simple operations around them.
const OPERATIONS: u64 = 8;
/// The allowed error: two units for each function, and half a unit for each sum.
const TOLERANCE: f64 = 2.0 + 1.5 * ROUNDS as f64;
const CHUNK_ELEMENTS: usize = 1 << 10;

pub(super) struct Transcendental;

impl Program for Transcendental {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes().saturating_mul(2);
        let operations = size.n.saturating_mul(ROUNDS * OPERATIONS);
        Cost {
            memory_bytes: bytes,
            moved_bytes: bytes,
            operations,
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let memory = vec![
            gpu.allocate_poisoned(size.bytes())?,
            gpu.allocate_random_array::<f32>(size.n, SEED_A)?,
        ];
        let links: QueueKernels = Box::new(move |queue, memory, kernels| {
            let arguments = [Out(&memory[0]), In(&memory[1]), U64(size.n), U64(ROUNDS)];
            queue.launch(&kernels[0], grid_for_elements(size.n), &arguments)
        });
        let chain = Chain::Links {
            links,
            memory,
            kernels: vec![gpu.load_kernel(ptx!("transcendental"), "transcendental")?],
        };
        prepare_chain(gpu, chain, size.n, check_elements)
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let a = f32::random_array(size.n, SEED_A);
        prepare_cpu_work(
            vec![f32::POISON; size.n as usize],
            move |out| {
                parallel::for_each(
                    out.chunks_mut(CHUNK_ELEMENTS).zip(a.chunks(CHUNK_ELEMENTS)),
                    &|(out, a)| {
                        // The rounds are the outer loop, so that the compiler can process several
                        // elements at the same time. The sum of one element cannot be divided,
                        // because its terms must be added one after another.
                        out.fill(0.0);
                        for round in 0..ROUNDS {
                            out.iter_mut().zip(a).for_each(|(out, a)| {
                                let x = argument_of_round(*a, round);
                                *out += x.cos_sin().1 + exp_f32(-x) + 1.0 / (1.0 + x * x).sqrt();
                            });
                        }
                    },
                );
            },
            |out| check_elements(out, 0),
        )
    }
}

/// Returns the argument of the functions in a round. It is rounded in the same way on the CPU and
/// the GPU.
fn argument_of_round(a: f32, round: u64) -> f32 {
    a + round as f32
}

fn check_elements(out: &[f32], first: u64) -> Verification {
    compare_elements(out, first, TOLERANCE, |index| {
        let a = f32::random_number(SEED_A, index);
        let terms = (0..ROUNDS).map(|round| {
            let x = argument_of_round(a, round).to_f64();
            (x.sin(), (-x).exp() + 1.0 / (1.0 + x * x).sqrt())
        });
        let (value, scale) = terms.fold((0.0, 0.0), |(value, scale), (sine, rest)| {
            (value + (sine + rest), scale + (sine.abs() + rest))
        });
        Expected::new(value, scale)
    })
}
