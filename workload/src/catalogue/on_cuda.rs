//! An operation on a GPU.

use std::marker::PhantomData;

use super::{
    on_cpu::check,
    operations::{Form, Operation, scalar},
    prelude::*,
};

/// As in `stream.cu`.
const PACK_BYTES: u64 = 16;
/// So many packs a thread moves there, unless it moves one array into another.
pub(super) const SEVERAL: u64 = 4;

/// The arrays of an operation, and its kernel. Those that it does not read have one element.
pub(super) struct OnCuda<'gpu, Op, T> {
    gpu: &'gpu Gpu,
    kernel: Kernel,
    a: DeviceMemory,
    b: DeviceMemory,
    out: DeviceMemory,
    elements: u64,
    operation: PhantomData<(Op, T)>,
}

impl<'gpu, Op: Operation, T: Real> OnCuda<'gpu, Op, T> {
    pub(super) fn new(gpu: &'gpu Gpu, elements: u64) -> Result<Self, RunError> {
        let width = T::DTYPE.bytes();
        let random = format!("random_{}", T::DTYPE);
        let input = |inputs, seed| {
            let elements = if Op::SHAPE.inputs >= inputs { elements } else { 1 };
            gpu.random(&random, elements, elements * width, seed)
        };
        let code = match Op::SHAPE.form {
            Form::Stream => kernels::STREAM,
            Form::Thread => kernels::ELEMENTWISE,
        };
        Ok(Self {
            gpu,
            kernel: gpu.kernel(code, &format!("{}_{}", Op::SHAPE.kernel, T::DTYPE))?,
            a: input(1, SEED_A)?,
            b: input(2, SEED_B)?,
            out: gpu.poisoned(elements * width)?,
            elements,
            operation: PhantomData,
        })
    }
}

impl<Op: Operation, T: Real> Prepared for OnCuda<'_, Op, T> {
    fn run(&mut self) -> Result<Sample, RunError> {
        let Self { gpu, kernel, a, b, out, elements, .. } = self;
        let n = Argument::U64(*elements);
        let (grid, arguments) = match (Op::SHAPE.form, Op::SHAPE.inputs) {
            (Form::Stream, _) => {
                let arguments = vec![Argument::Out(out), Argument::In(a), Argument::In(b), scalar::<T>().argument(), n];
                let packs_a_thread = if Op::SHAPE.inputs == 1 { 1 } else { SEVERAL };
                (stream_grid(*elements, T::DTYPE.bytes(), packs_a_thread), arguments)
            }
            (Form::Thread, 1) => (thread_each(*elements), vec![Argument::Out(out), Argument::In(a), n]),
            (Form::Thread, _) => {
                (thread_each(*elements), vec![Argument::Out(out), Argument::In(a), Argument::In(b), n])
            }
        };
        gpu.time(|queue| queue.launch(kernel, grid, &arguments))
    }

    fn verify(&mut self) -> Result<Verification, RunError> {
        Ok(self.gpu.check(&self.out, self.elements, check::<Op, T>)?)
    }
}

/// Of the kernels in `stream.cu`.
pub(super) fn stream_grid(elements: u64, width: u64, packs_a_thread: u64) -> Grid {
    let packs = elements / (PACK_BYTES / width);
    Grid { blocks: packs.div_ceil(u64::from(THREADS) * packs_a_thread).max(1) as u32, threads: THREADS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_thread() {
        assert_eq!([1000, 4096, 1, 257].map(|n| thread_each(n).blocks), [4, 16, 1, 2]);
        // 4096 elements of 4 bytes for each block, and of a copy a quarter of that.
        assert_eq!([3, 4096, 4100, 1 << 28].map(|n| stream_grid(n, 4, SEVERAL).blocks), [1, 1, 2, 1 << 16]);
        assert_eq!([3, 1024, 1028].map(|n| stream_grid(n, 4, 1).blocks), [1, 1, 2]);
    }
}
