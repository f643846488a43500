//! SELU over an array: operation by operation, as a graph of those, and in one pass.

use super::{
    chain::{Chain, Form, Links, Whole},
    prelude::*,
};
use crate::exp::exp;

const KERNELS: Code = ptx!("selu");
/// What SELU's authors found.
const ALPHA: f32 = 1.673_263_2;
const SCALE: f32 = 1.050_701;
const USUAL_ELEMENTS: u64 = 1_000_000;
/// Two units for the exponential, as CUDA's manual has it, and a half for each of the four operations around it.
const TOLERANCE: f64 = 4.0;
/// Elements of a thread of the kernel that does everything.
const FUSED_ELEMENTS: u64 = 4;
/// Elements that a thread of the CPU takes at a time.
const CHUNK: usize = 1 << 13;

pub(super) static PER_OP: Selu = selu(
    "selu-per-op",
    "Computes SELU of a million elements with six operations, one kernel each.",
    "Each operation launches a kernel and reads and writes memory, as in a framework without a compiler.",
    Form::PerOp,
);
pub(super) static GRAPH: Selu = selu(
    "selu-graph",
    "Computes SELU of a million elements with six kernels in one CUDA graph.",
    "A CUDA graph removes launch overhead, but no memory traffic.",
    Form::Graph,
);
pub(super) static FUSED: Selu = selu(
    "selu",
    "Computes SELU of a million elements in one kernel.",
    "Kernel fusion, as by a compiler: each element is read and written once.",
    Form::Fused,
);

pub(super) struct Selu {
    about: About,
    form: Form,
}

const fn selu(id: &'static str, does: &'static str, teaches: &'static str, form: Form) -> Selu {
    Selu {
        about: form.about([id, does, teaches], Bound::Memory, Extent::Elements),
        form,
    }
}

impl Workload for Selu {
    fn about(&self) -> &About {
        &self.about
    }

    fn usual_n(&self, _: Backend, _: Dtype, _: &MemoryBudget) -> u64 {
        USUAL_ELEMENTS
    }

    /// Six passes move eleven arrays and two of a byte for each element.
    fn cost(&self, size: Size) -> Cost {
        let bytes = size.bytes();
        let (arrays, moved_bytes) = match self.form {
            Form::Fused => (2, bytes.saturating_mul(2)),
            Form::PerOp | Form::Graph => (
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

    fn on_cuda<'gpu>(
        &self,
        gpu: &'gpu Gpu,
        size: Size,
    ) -> Result<Box<dyn Prepared + 'gpu>, RunError> {
        let (bytes, is_fused) = (size.bytes(), self.form == Form::Fused);
        let mut memory = vec![
            gpu.poisoned(bytes)?,
            gpu.random("random_fp32", size.n, bytes, SEED_A)?,
        ];
        let mut names = vec!["selu"];
        if !is_fused {
            memory.extend([gpu.poisoned(bytes)?, gpu.poisoned(size.n)?]);
            names = vec![
                "op_exp",
                "op_multiply",
                "op_subtract",
                "op_is_positive",
                "op_select",
            ];
        }
        let code = gpu.context.load(KERNELS)?;
        let kernels = names
            .into_iter()
            .map(|name| code.kernel(name))
            .collect::<Result<_, _>>()?;
        let chain = Chain::new(gpu, self.form, passes(size.n, is_fused), memory, kernels)?;
        Ok(Box::new(Whole {
            gpu,
            chain,
            elements: size.n,
            check,
        }))
    }

    fn shared(&self, size: Size) -> Option<Shared> {
        let operation = beside::Operation {
            name: "selu",
            dtype: Dtype::Fp32,
            shape: vec![size.n],
            copies: false,
            one_thread: false,
            fused: self.form == Form::Fused,
        };
        let data = move || Data {
            inputs: vec![to_bytes(&random::array(size.n, |index| {
                f32::random(SEED_A, index)
            }))],
            check: Box::new(move |bytes| check(&from_bytes(bytes, size.n), 0)),
        };
        Some(Shared {
            operation,
            data: Box::new(data),
        })
    }

    fn on_cpu(&self, size: Size) -> Result<Box<dyn Prepared>, RunError> {
        let a = random::array(size.n, |index| f32::random(SEED_A, index));
        let out = vec![f32::POISON; size.n as usize];
        let between = if self.form == Form::Fused {
            Vec::new()
        } else {
            out.clone()
        };
        Ok(Box::new(OnCpu { a, between, out }))
    }
}

/// The kernels of one run. The memory is the result, the input, what is between them, and where the input is positive.
fn passes(elements: u64, is_fused: bool) -> Links {
    Box::new(move |queue, memory, kernels| {
        let (grid, n) = (thread_each(elements), || Argument::U64(elements));
        let (out, a) = (&memory[0], &memory[1]);
        if is_fused {
            let grid = thread_each(elements.div_ceil(FUSED_ELEMENTS));
            let numbers = [Argument::F32(ALPHA), Argument::F32(SCALE), n()];
            let arguments: Vec<_> = [Argument::Out(out), Argument::In(a)]
                .into_iter()
                .chain(numbers)
                .collect();
            return queue.launch(&kernels[0], grid, &arguments);
        }
        let (between, positive) = (&memory[2], &memory[3]);
        let by = |kernel, out, a, number| {
            let arguments = [
                Argument::Out(out),
                Argument::In(a),
                Argument::F32(number),
                n(),
            ];
            queue.launch(kernel, grid, &arguments)
        };
        queue.launch(
            &kernels[0],
            grid,
            &[Argument::Out(between), Argument::In(a), n()],
        )?;
        by(&kernels[1], between, between, ALPHA)?;
        by(&kernels[2], between, between, ALPHA)?;
        queue.launch(
            &kernels[3],
            grid,
            &[Argument::Out(positive), Argument::In(a), n()],
        )?;
        let chosen = [
            Argument::Out(out),
            Argument::In(positive),
            Argument::In(a),
            Argument::In(between),
            n(),
        ];
        queue.launch(&kernels[4], grid, &chosen)?;
        by(&kernels[1], out, out, SCALE)
    })
}

struct OnCpu {
    a: Vec<f32>,
    /// Empty where everything is done in one pass.
    between: Vec<f32>,
    out: Vec<f32>,
}

impl Prepared for OnCpu {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self { a, between, out } = self;
        Ok(Sample::on_cpu(|| {
            if between.is_empty() {
                pass(out, a, |_, x| {
                    (if x > 0.0 { x } else { exp(x) * ALPHA - ALPHA }) * SCALE
                });
            } else {
                pass(between, a, |_, x| exp(x));
                pass_in_place(between, |x| x * ALPHA);
                pass_in_place(between, |x| x - ALPHA);
                let between = &*between;
                pass(out, a, |at, x| if x > 0.0 { x } else { between[at] });
                pass_in_place(out, |x| x * SCALE);
            }
        }))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(check(&self.out, 0))
    }
}

fn pass(out: &mut [f32], a: &[f32], of: impl Fn(usize, f32) -> f32 + Sync) {
    parallel::for_each(
        out.chunks_mut(CHUNK).zip(a.chunks(CHUNK)).enumerate(),
        &|(chunk, (out, a))| {
            out.iter_mut()
                .zip(a)
                .enumerate()
                .for_each(|(at, (out, a))| *out = of(chunk * CHUNK + at, *a));
        },
    );
}

fn pass_in_place(x: &mut [f32], of: impl Fn(f32) -> f32 + Sync) {
    parallel::for_each(x.chunks_mut(CHUNK), &|x| {
        for x in x {
            *x = of(*x);
        }
    });
}

fn check(out: &[f32], first: u64) -> Verification {
    compare(out, first, TOLERANCE, |index| {
        let (x, alpha, scale) = (
            f32::random(SEED_A, index).to_f64(),
            ALPHA.to_f64(),
            SCALE.to_f64(),
        );
        if x > 0.0 {
            Expected {
                value: DoubleDouble::from_f64(x * scale),
                scale: x * scale,
            }
        } else {
            // Computed as a difference of what is as large as that.
            Expected {
                value: DoubleDouble::from_f64(x.exp_m1() * alpha * scale),
                scale: alpha * scale,
            }
        }
    })
}
