//! An operation on a GPU.

use super::{
    chain::{self, Chain, Links, Whole},
    on_cpu::check,
    operations::{Form, Operation, scalar},
    prelude::*,
};

/// As in `stream.cu`.
const PACK_BYTES: u64 = 16;
/// So many packs a thread moves there, unless it moves one array into another.
pub(super) const SEVERAL: u64 = 4;

/// An operation on arrays of so many elements. Those that it does not read have one element.
pub(super) fn on_cuda<Op: Operation, T: Real>(
    gpu: &Gpu,
    elements: u64,
) -> Result<Whole<'_, T>, RunError> {
    let width = T::DTYPE.bytes();
    let random = format!("random_{}", T::DTYPE);
    let input = |inputs, seed| {
        let elements = if Op::SHAPE.inputs >= inputs {
            elements
        } else {
            1
        };
        gpu.random(&random, elements, elements * width, seed)
    };
    let code = match Op::SHAPE.form {
        Form::Stream => kernels::STREAM,
        Form::Thread => kernels::ELEMENTWISE,
    };
    let links: Links = Box::new(move |queue, memory, kernels| {
        let (out, n) = (Argument::Out(&memory[0]), Argument::U64(elements));
        let [a, b] = [&memory[1], &memory[2]].map(Argument::In);
        let (grid, arguments) = match (Op::SHAPE.form, Op::SHAPE.inputs) {
            (Form::Stream, inputs) => {
                let packs_a_thread = if inputs == 1 { 1 } else { SEVERAL };
                (
                    stream_grid(elements, width, packs_a_thread),
                    vec![out, a, b, scalar::<T>().argument(), n],
                )
            }
            (Form::Thread, 1) => (thread_each(elements), vec![out, a, n]),
            (Form::Thread, _) => (thread_each(elements), vec![out, a, b, n]),
        };
        queue.launch(&kernels[0], grid, &arguments)
    });
    let kernels = vec![gpu.kernel(code, &format!("{}_{}", Op::SHAPE.kernel, T::DTYPE))?];
    let (a, b) = (input(1, SEED_A)?, input(2, SEED_B)?);
    let memory = vec![gpu.poisoned(elements * width)?, a, b];
    let chain = Chain::new(gpu, chain::Form::Fused, links, memory, kernels)?;
    Ok(Whole {
        gpu,
        chain,
        elements,
        check: check::<Op, T>,
    })
}

/// Of the kernels in `stream.cu`.
pub(super) fn stream_grid(elements: u64, width: u64, packs_a_thread: u64) -> Grid {
    let packs = elements / (PACK_BYTES / width);
    Grid {
        blocks: packs.div_ceil(u64::from(THREADS) * packs_a_thread).max(1) as u32,
        threads: THREADS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_thread() {
        assert_eq!(
            [1000, 4096, 1, 257].map(|n| thread_each(n).blocks),
            [4, 16, 1, 2]
        );
        // 4096 elements of 4 bytes for each block, and of a copy a quarter of that.
        assert_eq!(
            [3, 4096, 4100, 1 << 28].map(|n| stream_grid(n, 4, SEVERAL).blocks),
            [1, 1, 2, 1 << 16]
        );
        assert_eq!(
            [3, 1024, 1028].map(|n| stream_grid(n, 4, 1).blocks),
            [1, 1, 2]
        );
    }
}
