//! The SELU function of an array: operation by operation, as a graph of these operations, and in
//! one pass.

use super::{
    chain::{Chain, LaunchMethod, QueueKernels, prepare_chain},
    prelude::*,
};
use crate::numbers::exp_f32;

/// The constant alpha as published by the authors of SELU.
const ALPHA: f32 = 1.673_263_2;
const SCALE: f32 = 1.050_701;
/// The allowed error: two units for the exponential, according to CUDA's manual, and half a unit
/// for each of the four other operations.
const TOLERANCE: f64 = 4.0;
/// The number of elements per thread of the fused kernel.
const FUSED_ELEMENTS: u64 = 4;
/// The number of elements that a CPU thread takes at a time.
const CHUNK_ELEMENTS: usize = 1 << 13;

pub(super) struct Selu(pub(super) LaunchMethod);

impl Program for Selu {
    /// Returns the cost. Without fusion, the six passes together read or write eleven arrays of
    /// elements, and two arrays with one byte per element.
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes();
        let (arrays, moved_bytes) = match self.0 {
            LaunchMethod::Fused => (2, bytes.saturating_mul(2)),
            LaunchMethod::PerOp | LaunchMethod::Graph => (
                4,
                bytes
                    .saturating_mul(11)
                    .saturating_add(size.n.saturating_mul(2)),
            ),
        };
        Cost {
            memory_bytes: bytes.saturating_mul(arrays),
            moved_bytes,
            operations: size.n.saturating_mul(6),
            ..Cost::default()
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let (bytes, is_fused) = (size.bytes(), self.0 == LaunchMethod::Fused);
        let mut memory = vec![
            gpu.allocate_poisoned(bytes)?,
            gpu.allocate_random_array::<f32>(size.n, SEED_A)?,
        ];
        let mut names = vec!["selu"];
        if !is_fused {
            memory.extend([
                gpu.allocate_poisoned(bytes)?,
                gpu.allocate_poisoned(size.n)?,
            ]);
            names = vec![
                "op_exp",
                "op_multiply",
                "op_subtract",
                "op_is_positive",
                "op_select",
            ];
        }
        let kernels = gpu.load_kernels(ptx!("selu"), &names)?;
        let chain = Chain::new(
            gpu,
            self.0,
            make_queue_function(size.n, is_fused),
            memory,
            kernels,
        )?;
        prepare_chain(gpu, chain, size.n, check_elements)
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let a = f32::random_array(size.n, SEED_A);
        let out = vec![f32::POISON; size.n as usize];
        if self.0 == LaunchMethod::Fused {
            return prepare_cpu_work(
                out,
                move |out| {
                    map_elements(out, &a, |_, x| {
                        (if x > 0.0 {
                            x
                        } else {
                            exp_f32(x) * ALPHA - ALPHA
                        }) * SCALE
                    });
                },
                |out| check_elements(out, 0),
            );
        }
        prepare_cpu_work(
            (out.clone(), out),
            move |(between, out)| {
                map_elements(between, &a, |_, x| exp_f32(x));
                map_in_place(between, |x| x * ALPHA);
                map_in_place(between, |x| x - ALPHA);
                let between = &*between;
                map_elements(out, &a, |at, x| if x > 0.0 { x } else { between[at] });
                map_in_place(out, |x| x * SCALE);
            },
            |(_, out)| check_elements(out, 0),
        )
    }

    fn operation_for_frameworks(&self, size: Size) -> Option<SharedOperation> {
        let operation = frameworks::Operation {
            name: "selu",
            dtype: Dtype::Fp32,
            shape: vec![size.n],
            copies: false,
            one_thread: false,
            fused: self.0 == LaunchMethod::Fused,
        };
        Some(SharedOperation::from_arrays(operation, 1, check_elements))
    }
}

/// Returns a function that queues the kernels of one run. Its memory argument contains the result,
/// the input, intermediate values, and flags of positive inputs, in this order.
fn make_queue_function(elements: u64, is_fused: bool) -> QueueKernels {
    Box::new(move |queue, memory, kernels| {
        let (grid, n) = (grid_for_elements(elements), || U64(elements));
        let (out, a) = (&memory[0], &memory[1]);
        if is_fused {
            let grid = grid_for_elements(elements.div_ceil(FUSED_ELEMENTS));
            let arguments = [Out(out), In(a), F32(ALPHA), F32(SCALE), n()];
            return queue.launch(&kernels[0], grid, &arguments);
        }
        let (between, positive) = (&memory[2], &memory[3]);
        let by = |kernel, out, a, number| {
            queue.launch(kernel, grid, &[Out(out), In(a), F32(number), n()])
        };
        queue.launch(&kernels[0], grid, &[Out(between), In(a), n()])?;
        by(&kernels[1], between, between, ALPHA)?;
        by(&kernels[2], between, between, ALPHA)?;
        queue.launch(&kernels[3], grid, &[Out(positive), In(a), n()])?;
        let chosen = [Out(out), In(positive), In(a), In(between), n()];
        queue.launch(&kernels[4], grid, &chosen)?;
        by(&kernels[1], out, out, SCALE)
    })
}

fn map_elements(out: &mut [f32], a: &[f32], of: impl Fn(usize, f32) -> f32 + Sync) {
    parallel::for_each(
        out.chunks_mut(CHUNK_ELEMENTS)
            .zip(a.chunks(CHUNK_ELEMENTS))
            .enumerate(),
        &|(chunk, (out, a))| {
            out.iter_mut()
                .zip(a)
                .enumerate()
                .for_each(|(at, (out, a))| *out = of(chunk * CHUNK_ELEMENTS + at, *a));
        },
    );
}

fn map_in_place(x: &mut [f32], of: impl Fn(f32) -> f32 + Sync) {
    parallel::for_each(x.chunks_mut(CHUNK_ELEMENTS), &|x| {
        for x in x {
            *x = of(*x);
        }
    });
}

fn check_elements(out: &[f32], first: u64) -> Verification {
    let (alpha, scale) = (ALPHA.to_f64(), SCALE.to_f64());
    compare_elements(out, first, TOLERANCE, |index| {
        let x = f32::random_number(SEED_A, index).to_f64();
        if x > 0.0 {
            Expected::new(x * scale, x * scale)
        } else {
            // The result is the difference of two numbers of about this scale. Errors are therefore
            // relative to the scale, even if the difference is small.
            Expected::new(x.exp_m1() * alpha * scale, alpha * scale)
        }
    })
}
