//! Workloads that compute one result for each element of their inputs.

use super::{
    chain::{self, Chain, QueueKernels, prepare_chain},
    prelude::*,
    transfer::HostMemory,
};

/// The factor used in the STREAM benchmark. It has no exact binary representation, so rounding
/// errors become visible.
const SCALAR: f64 = 0.42;
/// The number of elements that a CPU thread takes at a time, large enough to make the cost of a
/// task negligible.
const CHUNK_ELEMENTS: usize = 1 << 15;
/// The size in bytes of the packs that `stream.cu` processes.
const PACK_BYTES: u64 = 16;
/// The number of packs that each thread of `stream.cu` processes. In plain copies, a thread
/// processes only one pack.
pub(super) const PACKS_PER_THREAD: u64 = 4;

/// An operation on the elements of up to two arrays. If an array is missing, its operand is 0.
pub(super) trait Operation: Sync + 'static {
    const TRAITS: Traits;

    fn apply<T: Real>(a: T, b: T) -> T;
    fn expected_result<T: Real>(a: DoubleDouble, b: DoubleDouble) -> Expected;
}

/// The properties of an operation that are needed for its kernel, its cost and its check.
pub(super) struct Traits {
    /// The kernel's name without the type at its end.
    kernel: &'static str,
    form: KernelForm,
    inputs: u64,
    /// The number of floating-point operations per element.
    operations: u64,
    /// The largest error of a correct element, divided by the type's precision and by the size of
    /// the inputs.
    tolerance: f64,
    /// The operation's name in other frameworks; `None` if they do not have the operation.
    framework: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelForm {
    /// A kernel of `stream.cu` with several packs per thread.
    Stream,
    /// A kernel in `elementwise.cu`, with one element per thread.
    Thread,
}

/// Defines operations. Each has a kernel, its form, the number of inputs, the number of operations
/// per element, the tolerance, and the name in other frameworks. The first closure computes a
/// result, and the second computes the exact result.
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
                form: KernelForm::$form,
                inputs: $inputs,
                operations: $operations,
                tolerance: $tolerance,
                framework: $framework,
            };

            fn apply<T: Real>($a: T, $b: T) -> T {
                $apply
            }
            fn expected_result<T: Real>($exact_a: DoubleDouble, $exact_b: DoubleDouble) -> Expected {
                $expected
            }
        }
    )*};
}

operations! {
    Copy("stream_copy", Stream, 1, 0, 0.0, None):
        |a, _| a,
        |a, _| expected_after_one_rounding(a);
    Scale("stream_scale", Stream, 1, 1, 0.5, Some("scale")):
        |a, _| rounded_scalar::<T>() * a,
        |a, _| expected_after_one_rounding(exact_scalar::<T>() * a);
    Add("stream_add", Stream, 2, 1, 0.5, Some("add")):
        |a, b| a + b,
        |a, b| expected_after_one_rounding(a + b);
    /// The sum of an operand and a scaled operand. It is rounded twice, or once if the hardware
    /// fuses both operations.
    Triad("stream_triad", Stream, 2, 2, 1.0, Some("triad")):
        |a, b| a + rounded_scalar::<T>() * b,
        |a, b| {
            let product = exact_scalar::<T>() * b;
            Expected { value: a + product, scale: a.abs() + product.abs() }
        };
    Write("stream_write", Stream, 0, 0, 0.0, None):
        |_, _| rounded_scalar(),
        |_, _| expected_after_one_rounding(exact_scalar::<T>());
    VectorAdd("vector_add", Thread, 2, 1, 0.5, Some("add")):
        |a, b| a + b,
        |a, b| expected_after_one_rounding(a + b);
    /// The sum of the squares of sine and cosine. According to CUDA's manual, each function has an
    /// error of up to two units, which results in four units in the squares. Rounding the squares
    /// and the sum adds less than two more. The exact result is 1, so no higher precision is
    /// needed.
    Trig("trig", Thread, 1, 5, 6.0, Some("trig")):
        |a, _| {
            let (cosine, sine) = a.cos_sin();
            cosine * cosine + sine * sine
        },
        |_, _| expected_after_one_rounding(DoubleDouble::from_f64(1.0));
    Square("square", Thread, 1, 1, 0.5, Some("square")):
        |a, _| a * a,
        |a, _| expected_after_one_rounding(a * a);
}

fn rounded_scalar<T: Real>() -> T {
    T::from_f64(SCALAR)
}

fn exact_scalar<T: Real>() -> DoubleDouble {
    DoubleDouble::from_f64(rounded_scalar::<T>().to_f64())
}

/// Returns the expectation for a result that is computed exactly and rounded once.
fn expected_after_one_rounding(value: DoubleDouble) -> Expected {
    Expected {
        value,
        scale: value.abs(),
    }
}

/// An operation, and the location of its arrays.
pub(super) struct Elementwise<Op>(pub(super) Op, pub(super) ArrayLocation);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayLocation {
    /// GPU memory, or host memory that is used by all threads of the CPU.
    OnDevice,
    /// Pinned host memory, from which a GPU copies the inputs, and to which it copies the result.
    Pinned,
    /// Pageable host memory, from which a GPU copies the inputs, and to which it copies the result.
    Pageable,
    /// Host memory that is used by a single thread of the CPU.
    OneThread,
}

impl<Op: Operation> Program for Elementwise<Op> {
    fn cost_of(&self, size: Size) -> Cost {
        let bytes = size.bytes().saturating_mul(Op::TRAITS.inputs + 1);
        Cost {
            memory_bytes: bytes,
            host_bytes: if self.includes_copies() { bytes } else { 0 },
            moved_bytes: bytes,
            operations: size.n.saturating_mul(Op::TRAITS.operations),
        }
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        of_float!(size.dtype, |Float| if self.includes_copies() {
            prepare_timed_with_copies::<Op, Float>(gpu, size.n, self.1 == ArrayLocation::Pinned)
        } else {
            prepare_on_gpu::<Op, Float>(gpu, size.n)
        })
    }

    fn prepare_cpu_run(&self, size: Size) -> PreparedResult<'static> {
        let is_alone = self.1 == ArrayLocation::OneThread;
        of_float!(size.dtype, |Float| prepare_on_threads::<Op, Float>(
            size.n, is_alone
        ))
    }

    fn operation_for_frameworks(&self, size: Size) -> Option<SharedOperation> {
        let operation = frameworks::Operation {
            name: Op::TRAITS.framework?,
            dtype: size.dtype,
            shape: vec![size.n],
            copies: self.includes_copies(),
            one_thread: self.1 == ArrayLocation::OneThread,
            fused: true,
        };
        of_float!(size.dtype, |Float| Some(SharedOperation::from_arrays(
            operation,
            Op::TRAITS.inputs,
            check_elements::<Op, Float>
        )))
    }
}

impl<Op> Elementwise<Op> {
    fn includes_copies(&self) -> bool {
        matches!(self.1, ArrayLocation::Pinned | ArrayLocation::Pageable)
    }
}

fn check_elements<Op: Operation, T: Real>(out: &[T], first: u64) -> Verification {
    compare_elements(out, first, Op::TRAITS.tolerance, |index| {
        Op::expected_result::<T>(
            T::random_exact(SEED_A, index),
            T::random_exact(SEED_B, index),
        )
    })
}

/// Prepares an operation on a GPU. Arrays that the operation does not read are allocated with a
/// single element.
fn prepare_on_gpu<Op: Operation, T: Real>(gpu: &Gpu, elements: u64) -> PreparedResult<'_> {
    let Traits {
        kernel,
        form,
        inputs,
        ..
    } = Op::TRAITS;
    let input = |number, seed| {
        let elements = if inputs >= number { elements } else { 1 };
        gpu.allocate_random_array::<T>(elements, seed)
    };
    let code = match form {
        KernelForm::Stream => kernels::STREAM,
        KernelForm::Thread => kernels::ELEMENTWISE,
    };
    let links: QueueKernels = Box::new(move |queue, memory, kernels| {
        let (out, n) = (Out(&memory[0]), U64(elements));
        let [a, b] = [&memory[1], &memory[2]].map(In);
        let (grid, arguments) = match (form, inputs) {
            (KernelForm::Stream, inputs) => {
                let packs_a_thread = if inputs == 1 { 1 } else { PACKS_PER_THREAD };
                (
                    stream_grid(elements, T::DTYPE.bytes(), packs_a_thread),
                    vec![out, a, b, rounded_scalar::<T>().to_argument(), n],
                )
            }
            (KernelForm::Thread, 1) => (grid_for_elements(elements), vec![out, a, n]),
            (KernelForm::Thread, _) => (grid_for_elements(elements), vec![out, a, b, n]),
        };
        queue.launch(&kernels[0], grid, &arguments)
    });
    let kernels = vec![gpu.load_kernel(code, &format!("{kernel}_{}", T::DTYPE))?];
    let (a, b) = (input(1, SEED_A)?, input(2, SEED_B)?);
    let memory = vec![gpu.allocate_poisoned(elements * T::DTYPE.bytes())?, a, b];
    let chain = Chain::new(gpu, chain::LaunchMethod::Fused, links, memory, kernels)?;
    prepare_chain(gpu, chain, elements, check_elements::<Op, T>)
}

/// Returns the grid of a kernel in `stream.cu`.
pub(super) fn stream_grid(elements: u64, width: u64, packs_a_thread: u64) -> Grid {
    let packs = elements / (PACK_BYTES / width);
    Grid::with_blocks(
        packs
            .div_ceil(u64::from(THREADS_PER_BLOCK) * packs_a_thread)
            .max(1),
    )
}

/// Prepares an operation that is timed together with its copies: the input to the GPU, and the
/// result back to the host.
fn prepare_timed_with_copies<Op: Operation, T: Real>(
    gpu: &Gpu,
    elements: u64,
    is_pinned: bool,
) -> PreparedResult<'_> {
    let name = Op::TRAITS.kernel;
    assert!(
        Op::TRAITS.inputs == 1 && Op::TRAITS.form == KernelForm::Thread,
        "{name} has one input"
    );
    let bytes = elements * T::DTYPE.bytes();
    let host = || HostMemory::<T>::new(gpu, elements, is_pinned);
    let (mut input, mut result) = (host()?, host()?);
    fill_elements(input.slice_mut(), |index| T::random_number(SEED_A, index));
    fill_elements(result.slice_mut(), |_| T::POISON);
    let kernel = gpu.load_kernel(kernels::ELEMENTWISE, &format!("{name}_{}", T::DTYPE))?;
    let (a, out) = (gpu.allocate_poisoned(bytes)?, gpu.allocate_poisoned(bytes)?);
    prepare_work(
        (input, result),
        move |(input, result)| {
            gpu.run_timed(|queue| {
                input.copy_to_device(queue, &a)?;
                let arguments = [Out(&out), In(&a), U64(elements)];
                queue.launch(&kernel, grid_for_elements(elements), &arguments)?;
                result.copy_from_device(queue, &out)
            })
        },
        |(_, result)| Ok(check_elements::<Op, T>(result.slice(), 0)),
    )
}

/// Prepares an operation on all threads of the CPU, or on a single thread. The threads that will
/// use an array are the first to write to it, so that the array is in their memory and caches.
/// Arrays that the operation does not read are empty.
fn prepare_on_threads<Op: Operation, T: Real>(
    elements: u64,
    is_alone: bool,
) -> PreparedResult<'static> {
    let array = |elements: u64, element: &(dyn Fn(u64) -> T + Sync)| {
        if is_alone {
            (0..elements).map(element).collect()
        } else {
            numbers::generate_array(elements, element)
        }
    };
    let input = |number, seed| {
        let is_read = Op::TRAITS.inputs >= number;
        array(if is_read { elements } else { 0 }, &|index| {
            T::random_number(seed, index)
        })
    };
    let (a, b) = (input(1, SEED_A), input(2, SEED_B));
    prepare_cpu_work(
        array(elements, &|_| T::POISON),
        move |out: &mut Vec<T>| {
            if is_alone {
                apply_to_slices::<Op, T>(out, &a, &b);
            } else {
                parallel::for_each(
                    out.chunks_mut(CHUNK_ELEMENTS).enumerate(),
                    &|(chunk, out)| {
                        apply_to_slices::<Op, T>(
                            out,
                            slice_chunk(&a, chunk),
                            slice_chunk(&b, chunk),
                        );
                    },
                );
            }
        },
        |out| check_elements::<Op, T>(out, 0),
    )
}

/// Returns the part of an input for a chunk of the result. The part is empty if the operation does
/// not read the array.
fn slice_chunk<T>(array: &[T], chunk: usize) -> &[T] {
    let begin = (chunk * CHUNK_ELEMENTS).min(array.len());
    &array[begin..(begin + CHUNK_ELEMENTS).min(array.len())]
}

/// Applies an operation to slices. Each number of inputs has a separate loop, so that the compiler
/// can vectorize it.
fn apply_to_slices<Op: Operation, T: Real>(out: &mut [T], a: &[T], b: &[T]) {
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

/// The workload `vector-add-32x128`. Each thread of its grid adds one element. The check also adds
/// numbers whose sums are obvious.
pub(super) struct VectorAddGrid;

const VECTOR_ADD_GRID: Grid = Grid {
    blocks: 32,
    threads: 128,
};
pub(super) const VECTOR_ADD_ELEMENTS: u64 =
    VECTOR_ADD_GRID.blocks as u64 * VECTOR_ADD_GRID.threads as u64;

impl Program for VectorAddGrid {
    fn cost_of(&self, size: Size) -> Cost {
        Elementwise(VectorAdd, ArrayLocation::OnDevice).cost_of(Size {
            n: VECTOR_ADD_ELEMENTS,
            ..size
        })
    }

    fn prepare_cuda_run<'gpu>(&self, gpu: &'gpu Gpu, size: Size) -> PreparedResult<'gpu> {
        let kernel = || gpu.load_kernel(kernels::ELEMENTWISE, "vector_add_fp32");
        let random = |seed| gpu.allocate_random_array::<f32>(VECTOR_ADD_ELEMENTS, seed);
        let out = move || gpu.allocate_poisoned(VECTOR_ADD_ELEMENTS * size.dtype.bytes());
        let memory = vec![out()?, random(SEED_A)?, random(SEED_B)?];
        let links: QueueKernels =
            Box::new(|queue, memory, kernels| queue_addition(queue, &kernels[0], memory));
        let chain = Chain::new(
            gpu,
            chain::LaunchMethod::Fused,
            links,
            memory,
            vec![kernel()?],
        )?;
        let kernel = kernel()?;
        prepare_work(
            chain,
            move |chain| gpu.run_timed(|queue| chain.enqueue(queue)),
            move |chain| {
                let random = gpu.check_memory_in_pieces(
                    &chain.memory()[0],
                    VECTOR_ADD_ELEMENTS,
                    check_elements::<VectorAdd, f32>,
                )?;
                // The sum of 1 and each of 0, 1, 2, ... must be exactly 1, 2, 3, ...
                let counting: Vec<f32> =
                    (0..VECTOR_ADD_ELEMENTS).map(|index| index as f32).collect();
                let ones = vec![1.0_f32; VECTOR_ADD_ELEMENTS as usize];
                let (a, b) = (gpu.copy_to_device(&counting)?, gpu.copy_to_device(&ones)?);
                let memory = [out()?, a, b];
                gpu.stream
                    .run(|queue| queue_addition(queue, &kernel, &memory))?;
                let sums: Vec<f32> = gpu.copy_to_host(&memory[0])?;
                let bits: Vec<_> = sums.into_iter().map(Real::to_bits_u64).collect();
                let counted = compare_words(&bits, 0, |index| (index as f32 + 1.0).to_bits_u64());
                Ok(random.merge(counted))
            },
        )
    }

    fn prepare_cpu_run(&self, _: Size) -> PreparedResult<'static> {
        prepare_on_threads::<VectorAdd, f32>(VECTOR_ADD_ELEMENTS, true)
    }
}

/// Queues a vector addition. `memory` contains the sum and the two operands.
fn queue_addition<'held>(
    queue: &Queue<'_, 'held>,
    kernel: &'held Kernel,
    memory: &'held [DeviceMemory],
) -> Result<(), CudaError> {
    let arguments = [
        Out(&memory[0]),
        In(&memory[1]),
        In(&memory[2]),
        U64(VECTOR_ADD_ELEMENTS),
    ];
    queue.launch(kernel, VECTOR_ADD_GRID, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grid_has_thread_for_every_element() {
        assert_eq!(
            [1000, 4096, 1, 257].map(|n| grid_for_elements(n).blocks),
            [4, 16, 1, 2]
        );
        // A block processes 4096 elements of 4 bytes, or a quarter of this number in a plain copy.
        assert_eq!(
            [3, 4096, 4100, 1 << 28].map(|n| stream_grid(n, 4, PACKS_PER_THREAD).blocks),
            [1, 1, 2, 1 << 16]
        );
        assert_eq!(
            [3, 1024, 1028].map(|n| stream_grid(n, 4, 1).blocks),
            [1, 1, 2]
        );
    }

    #[test]
    fn moved_bytes_count_each_read_and_write_once() {
        let size = Size {
            n: 1000,
            dtype: Dtype::Fp32,
        };
        let copy = Elementwise(Copy, ArrayLocation::OnDevice).cost_of(size);
        let write = Elementwise(Write, ArrayLocation::OnDevice).cost_of(size);
        assert_eq!([copy.moved_bytes, write.moved_bytes], [8000, 4000]);
        let triad = Elementwise(Triad, ArrayLocation::OnDevice).cost_of(size);
        assert_eq!((triad.moved_bytes, triad.operations), (12_000, 2000));
    }
}
