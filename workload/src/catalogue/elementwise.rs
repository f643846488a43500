//! Workloads with one result for each element of their inputs.

use super::{
    chain::{self, Chain, Links, prepare_chain},
    prelude::*,
    transfer::HostMemory,
};

/// The factor of the STREAM benchmark. It has no exact binary representation, so rounding errors
/// become visible.
const SCALAR: f64 = 0.42;
/// The number of elements that a CPU thread takes at a time, large enough to make the cost of a
/// task negligible.
const CHUNK: usize = 1 << 15;
/// The size of a pack in `stream.cu`, in bytes.
const PACK_BYTES: u64 = 16;
/// The number of packs that each thread of `stream.cu` moves. Plain copies are an exception with
/// one pack.
pub(super) const SEVERAL: u64 = 4;

/// An operation on the elements of up to two arrays. An operand without an array is 0.
pub(super) trait Operation: Sync + 'static {
    const TRAITS: Traits;

    fn apply<T: Real>(a: T, b: T) -> T;
    fn expect<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected;
}

/// The properties of an operation that kernels, costs and checks need.
pub(super) struct Traits {
    /// The name of the kernel without the type at its end.
    kernel: &'static str,
    form: Form,
    inputs: u64,
    /// The number of floating-point operations per element.
    operations: u64,
    /// The largest error, in units of the type's precision relative to the size of the inputs.
    tolerance: f64,
    /// The name in frameworks; `None` if they have no such operation.
    framework: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A kernel of `stream.cu` with several packs per thread.
    Stream,
    /// A kernel of `elementwise.cu` with one element per thread.
    Thread,
}

/// Defines operations by their kernel, form, number of inputs, number of operations per element,
/// tolerance, and name in frameworks. The first closure computes a result, and the second one the
/// exact result.
macro_rules! operations {
    ($(
        $(#[$note:meta])*
        $name:ident(
            $kernel:literal,
            $form:ident,
            $inputs:literal,
            $operations:literal,
            $tolerance:literal,
            $framework:expr
        ):
        |$a:pat_param, $b:pat_param| $apply:expr,
        |$exact_a:pat_param, $exact_b:pat_param| $expected:expr;
    )*) => {$(
        $(#[$note])*
        pub(super) struct $name;

        impl Operation for $name {
            const TRAITS: Traits = Traits {
                kernel: $kernel,
                form: Form::$form,
                inputs: $inputs,
                operations: $operations,
                tolerance: $tolerance,
                framework: $framework,
            };

            fn apply<T: Real>($a: T, $b: T) -> T {
                $apply
            }
            fn expect<T: Real>($exact_a: DoubleDouble, $exact_b: DoubleDouble) -> Expected {
                $expected
            }
        }
    )*};
}

operations! {
    Copy("stream_copy", Stream, 1, 0, 0.0, None):
        |a, _| a,
        |a, _| round_once(a);
    Scale("stream_scale", Stream, 1, 1, 0.5, Some("scale")):
        |a, _| rounded_scalar::<T>() * a,
        |a, _| round_once(exact_scalar::<T>() * a);
    Add("stream_add", Stream, 2, 1, 0.5, Some("add")):
        |a, b| a + b,
        |a, b| round_once(a + b);
    /// A sum with a scaled operand. It is rounded twice, or once if the hardware fuses both
    /// operations.
    Triad("stream_triad", Stream, 2, 2, 1.0, Some("triad")):
        |a, b| a + rounded_scalar::<T>() * b,
        |a, b| {
            let product = exact_scalar::<T>() * b;
            Expected { value: a + product, scale: a.abs() + product.abs() }
        };
    Write("stream_write", Stream, 0, 0, 0.0, None):
        |_, _| rounded_scalar(),
        |_, _| round_once(exact_scalar::<T>());
    VectorAdd("vector_add", Thread, 2, 1, 0.5, Some("add")):
        |a, b| a + b,
        |a, b| round_once(a + b);
    /// The sum of the squares of sine and cosine. By CUDA's manual, each function has an error of
    /// up to two units, which are four units in the squares. Rounding the squares and the sum adds
    /// less than two more. The exact result is 1, so no higher precision is needed.
    Trig("trig", Thread, 1, 5, 6.0, Some("trig")):
        |a, _| {
            let (cosine, sine) = a.cos_sin();
            cosine * cosine + sine * sine
        },
        |_, _| round_once(DoubleDouble::from_f64(1.0));
    Square("square", Thread, 1, 1, 0.5, Some("square")):
        |a, _| a * a,
        |a, _| round_once(a * a);
}

fn rounded_scalar<T: Real>() -> T {
    T::from_f64(SCALAR)
}

fn exact_scalar<T: Real>() -> DoubleDouble {
    DoubleDouble::from_f64(rounded_scalar::<T>().to_f64())
}

/// Expects a value that is rounded once.
fn round_once(value: DoubleDouble) -> Expected {
    Expected {
        value,
        scale: value.abs(),
    }
}

/// An operation, with the location of its arrays.
pub(super) struct Elementwise<Op>(pub(super) Op, pub(super) Arrays);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrays {
    /// In GPU memory, or in host memory used by all threads of the CPU.
    OnDevice,
    /// In pinned host memory: a GPU copies the inputs from there, and the result back.
    Pinned,
    /// In pageable host memory: a GPU copies the inputs from there, and the result back.
    Pageable,
    /// In host memory used by a single thread of the CPU.
    OneThread,
}

impl<Op: Operation> Program for Elementwise<Op> {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes().saturating_mul(Op::TRAITS.inputs + 1);
        Cost {
            memory_bytes: bytes,
            host_bytes: if self.copies() { bytes } else { 0 },
            moved_bytes: bytes,
            operations: size.n.saturating_mul(Op::TRAITS.operations),
        }
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        of_float!(size.dtype, |Float| if self.copies() {
            prepare_copied::<Op, Float>(gpu, size.n, self.1 == Arrays::Pinned)
        } else {
            on_cuda::<Op, Float>(gpu, size.n)
        })
    }

    fn on_cpu(&self, size: Size) -> Ready<'static> {
        let is_alone = self.1 == Arrays::OneThread;
        of_float!(size.dtype, |Float| on_cpu::<Op, Float>(size.n, is_alone))
    }

    fn shared_operation(&self, size: Size) -> Option<Shared> {
        let operation = beside::Operation {
            name: Op::TRAITS.framework?,
            dtype: size.dtype,
            shape: vec![size.n],
            copies: self.copies(),
            one_thread: self.1 == Arrays::OneThread,
            fused: true,
        };
        of_float!(size.dtype, |Float| Some(Shared::of_arrays(
            operation,
            Op::TRAITS.inputs,
            check::<Op, Float>
        )))
    }
}

impl<Op> Elementwise<Op> {
    fn copies(&self) -> bool {
        matches!(self.1, Arrays::Pinned | Arrays::Pageable)
    }
}

fn check<Op: Operation, T: Real>(out: &[T], first: u64) -> Verification {
    compare(out, first, Op::TRAITS.tolerance, |index| {
        Op::expect::<T>(
            T::random_exact(SEED_A, index),
            T::random_exact(SEED_B, index),
        )
    })
}

/// Prepares an operation on a GPU. Arrays that the operation does not read have one element.
fn on_cuda<Op: Operation, T: Real>(gpu: &Gpu, elements: u64) -> Ready<'_> {
    let Traits {
        kernel,
        form,
        inputs,
        ..
    } = Op::TRAITS;
    let input = |number, seed| {
        let elements = if inputs >= number { elements } else { 1 };
        gpu.random_array::<T>(elements, seed)
    };
    let code = match form {
        Form::Stream => kernels::STREAM,
        Form::Thread => kernels::ELEMENTWISE,
    };
    let links: Links = Box::new(move |queue, memory, kernels| {
        let (out, n) = (Out(&memory[0]), U64(elements));
        let [a, b] = [&memory[1], &memory[2]].map(In);
        let (grid, arguments) = match (form, inputs) {
            (Form::Stream, inputs) => {
                let packs_a_thread = if inputs == 1 { 1 } else { SEVERAL };
                (
                    stream_grid(elements, T::DTYPE.bytes(), packs_a_thread),
                    vec![out, a, b, rounded_scalar::<T>().argument(), n],
                )
            }
            (Form::Thread, 1) => (thread_each(elements), vec![out, a, n]),
            (Form::Thread, _) => (thread_each(elements), vec![out, a, b, n]),
        };
        queue.launch(&kernels[0], grid, &arguments)
    });
    let kernels = vec![gpu.kernel(code, &format!("{kernel}_{}", T::DTYPE))?];
    let (a, b) = (input(1, SEED_A)?, input(2, SEED_B)?);
    let memory = vec![gpu.poisoned(elements * T::DTYPE.bytes())?, a, b];
    let chain = Chain::new(gpu, chain::Form::Fused, links, memory, kernels)?;
    prepare_chain(gpu, chain, elements, check::<Op, T>)
}

/// Returns the grid of a kernel in `stream.cu`.
pub(super) fn stream_grid(elements: u64, width: u64, packs_a_thread: u64) -> Grid {
    let packs = elements / (PACK_BYTES / width);
    Grid::of_blocks(packs.div_ceil(u64::from(THREADS) * packs_a_thread).max(1))
}

/// Prepares an operation that is timed with its copies: the input to the GPU, and the result back.
fn prepare_copied<Op: Operation, T: Real>(gpu: &Gpu, elements: u64, is_pinned: bool) -> Ready<'_> {
    let name = Op::TRAITS.kernel;
    assert!(
        Op::TRAITS.inputs == 1 && Op::TRAITS.form == Form::Thread,
        "{name} has one input"
    );
    let bytes = elements * T::DTYPE.bytes();
    let host = || HostMemory::<T>::new(gpu, elements, is_pinned);
    let (mut input, mut result) = (host()?, host()?);
    fill(input.slice_mut(), |index| T::random(SEED_A, index));
    fill(result.slice_mut(), |_| T::POISON);
    let kernel = gpu.kernel(kernels::ELEMENTWISE, &format!("{name}_{}", T::DTYPE))?;
    let (a, out) = (gpu.poisoned(bytes)?, gpu.poisoned(bytes)?);
    prepare_work(
        (input, result),
        move |(input, result)| {
            gpu.time(|queue| {
                input.copy_in(queue, &a)?;
                let arguments = [Out(&out), In(&a), U64(elements)];
                queue.launch(&kernel, thread_each(elements), &arguments)?;
                result.copy_out(queue, &out)
            })
        },
        |(_, result)| Ok(check::<Op, T>(result.slice(), 0)),
    )
}

/// Prepares an operation on all threads of the CPU, or on a single one. Each array is first written
/// by the threads that use it, so that it is in their memory and caches. Arrays that the operation
/// does not read are empty.
fn on_cpu<Op: Operation, T: Real>(elements: u64, is_alone: bool) -> Ready<'static> {
    let array = |elements: u64, element: &(dyn Fn(u64) -> T + Sync)| {
        if is_alone {
            (0..elements).map(element).collect()
        } else {
            random::array(elements, element)
        }
    };
    let input = |number, seed| {
        let is_read = Op::TRAITS.inputs >= number;
        array(if is_read { elements } else { 0 }, &|index| {
            T::random(seed, index)
        })
    };
    let (a, b) = (input(1, SEED_A), input(2, SEED_B));
    prepare_on_cpu(
        array(elements, &|_| T::POISON),
        move |out: &mut Vec<T>| {
            if is_alone {
                apply::<Op, T>(out, &a, &b);
            } else {
                parallel::for_each(out.chunks_mut(CHUNK).enumerate(), &|(chunk, out)| {
                    apply::<Op, T>(out, part_of(&a, chunk), part_of(&b, chunk));
                });
            }
        },
        |out| check::<Op, T>(out, 0),
    )
}

/// Returns the part of an input for a chunk of the result. The part is empty if the operation does
/// not read the array.
fn part_of<T>(array: &[T], chunk: usize) -> &[T] {
    let begin = (chunk * CHUNK).min(array.len());
    &array[begin..(begin + CHUNK).min(array.len())]
}

/// Applies an operation to slices. There is one loop for each number of inputs, so that the
/// compiler can vectorize them.
fn apply<Op: Operation, T: Real>(out: &mut [T], a: &[T], b: &[T]) {
    match Op::TRAITS.inputs {
        0 => out.fill(Op::apply(T::default(), T::default())),
        1 => out
            .iter_mut()
            .zip(a)
            .for_each(|(out, a)| *out = Op::apply(*a, T::default())),
        _ => out
            .iter_mut()
            .zip(a.iter().zip(b))
            .for_each(|(out, (a, b))| *out = Op::apply(*a, *b)),
    }
}

/// The workload `vector-add-32x128`, which adds one element per thread of its grid. The check also
/// adds numbers with obvious sums.
pub(super) struct VectorAddGrid;

const GRID: Grid = Grid {
    blocks: 32,
    threads: 128,
};
pub(super) const GRID_ELEMENTS: u64 = GRID.blocks as u64 * GRID.threads as u64;

impl Program for VectorAddGrid {
    fn cost_of(&self, size: Size) -> Cost {
        Elementwise(VectorAdd, Arrays::OnDevice).cost_of(Size {
            n: GRID_ELEMENTS,
            ..size
        })
    }

    fn on_cuda<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> Ready<'gpu> {
        let kernel = || gpu.kernel(kernels::ELEMENTWISE, "vector_add_fp32");
        let random = |seed| gpu.random_array::<f32>(GRID_ELEMENTS, seed);
        let out = move || gpu.poisoned(GRID_ELEMENTS * size.dtype.bytes());
        let memory = vec![out()?, random(SEED_A)?, random(SEED_B)?];
        let links: Links =
            Box::new(|queue, memory, kernels| add_on_grid(queue, &kernels[0], memory));
        let chain = Chain::new(gpu, chain::Form::Fused, links, memory, vec![kernel()?])?;
        let kernel = kernel()?;
        prepare_work(
            chain,
            move |chain| gpu.time(|queue| chain.put(queue)),
            move |chain| {
                let random =
                    gpu.check(&chain.memory()[0], GRID_ELEMENTS, check::<VectorAdd, f32>)?;
                // The sums of 0, 1, 2, ... and 1 must be exactly 1, 2, 3, ...
                let counting: Vec<f32> = (0..GRID_ELEMENTS).map(|index| index as f32).collect();
                let ones = vec![1.0_f32; GRID_ELEMENTS as usize];
                let (a, b) = (gpu.upload(&counting)?, gpu.upload(&ones)?);
                let memory = [out()?, a, b];
                gpu.stream
                    .run(|queue| add_on_grid(queue, &kernel, &memory))?;
                let sums: Vec<f32> = gpu.download(&memory[0])?;
                let bits: Vec<_> = sums.into_iter().map(Real::word).collect();
                let counted = compare_words(&bits, 0, |index| (index as f32 + 1.0).word());
                Ok(random.and(counted))
            },
        )
    }

    fn on_cpu(&self, _: Size) -> Ready<'static> {
        on_cpu::<VectorAdd, f32>(GRID_ELEMENTS, true)
    }
}

/// Queues an addition. `memory` contains the sum and its two operands.
fn add_on_grid<'held>(
    queue: &Queue<'_, 'held>,
    kernel: &'held Kernel,
    memory: &'held [DeviceMemory],
) -> Result<(), CudaError> {
    let arguments = [
        Out(&memory[0]),
        In(&memory[1]),
        In(&memory[2]),
        U64(GRID_ELEMENTS),
    ];
    queue.launch(kernel, GRID, &arguments)
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
        // A block processes 4096 elements of 4 bytes, or a quarter of that in a copy.
        assert_eq!(
            [3, 4096, 4100, 1 << 28].map(|n| stream_grid(n, 4, SEVERAL).blocks),
            [1, 1, 2, 1 << 16]
        );
        assert_eq!(
            [3, 1024, 1028].map(|n| stream_grid(n, 4, 1).blocks),
            [1, 1, 2]
        );
    }

    #[test]
    fn what_is_moved_is_counted_once_each_way() {
        let size = Size {
            n: 1000,
            dtype: Dtype::Fp32,
        };
        let copy = Elementwise(Copy, Arrays::OnDevice).cost_of(size);
        let write = Elementwise(Write, Arrays::OnDevice).cost_of(size);
        assert_eq!([copy.moved_bytes, write.moved_bytes], [8000, 4000]);
        let triad = Elementwise(Triad, Arrays::OnDevice).cost_of(size);
        assert_eq!((triad.moved_bytes, triad.operations), (12_000, 2000));
    }
}
