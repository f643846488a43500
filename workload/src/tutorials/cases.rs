//! The cases: programs from the tutorials of CUDA.jl, Flux, CuPy, Numba, JAX and D2L, with the
//! times of other frameworks for comparison.

use super::{
    Case,
    MeasuredDevice::{AllCores, OneCore},
    Variant, programs,
};
use crate::protocol::Dtype::{Bytes, Fp32, Fp64, Tf32};

const MILLION: u64 = 1_000_000;
/// The number of elements in quick measurements, for arrays that otherwise have a million elements.
/// It is odd, so that some elements remain after the last full block.
const QUICK_ELEMENTS: u64 = 10_007;

/// All cases, in the order in which they are run.
pub const CASES: &[Case] = &[
    Case {
        id: "a",
        title: "Matrix product of 1024x1024 and sum of 1000x1000, fp32",
        teaches: "A product has a thousand operations for each number that is moved; a sum has \
                  one.",
        variants: &[
            Variant::new_on_cuda("product", "matmul", Fp32, 1024, 64).with_framework("CuPy", 73.0),
            Variant::new_on_cuda("sum", "add", Fp32, MILLION, QUICK_ELEMENTS)
                .with_framework("CuPy", 19.0),
            Variant::new_on_cpu("product", "matmul", Fp32, 1024, 64),
            Variant::new_on_cpu("sum", "add", Fp32, MILLION, QUICK_ELEMENTS),
        ],
    },
    Case {
        id: "b",
        title: "Training Dense(10, 10, sigmoid) -> Dense(10, 1), 1000 steps of Adam",
        teaches: "The time to launch kernels limits the training of a small network: with fewer \
                  kernels per step, it is faster.",
        variants: &[
            Variant::new_on_cuda(
                "a kernel for each operation",
                "train-per-op",
                Fp32,
                1000,
                10,
            )
            .with_framework("PyTorch", 632_000.0),
            Variant::new_on_cuda("a graph for each step", "train-graph", Fp32, 1000, 10)
                .with_framework("PyTorch", 632_000.0),
            Variant::new_on_cuda("one kernel for all steps", "train", Fp32, 1000, 10)
                .with_framework("PyTorch", 632_000.0),
            Variant::new_on_cpu("one thread", "train", Fp32, 1000, 10),
        ],
    },
    Case {
        id: "c",
        title: "Square of 1000x1000, fp64, with its copies",
        teaches: "A GPU that has to fetch its data and return the result is slower than a CPU \
         that already has the data.",
        variants: &[
            Variant::new_on_cuda(
                "pageable copies",
                "square-pageable",
                Fp64,
                MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("CuPy", 1162.0),
            Variant::new_on_cuda(
                "pinned copies",
                "square-pinned",
                Fp64,
                MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("CuPy", 1162.0),
            Variant::new_on_cuda("kernel alone", "square", Fp64, MILLION, QUICK_ELEMENTS),
            Variant::new_on_cpu("all threads", "square", Fp64, MILLION, QUICK_ELEMENTS),
            Variant::new_on_cpu("one thread", "square-serial", Fp64, MILLION, QUICK_ELEMENTS)
                .with_framework_on_device("NumPy", 494.0, OneCore),
        ],
    },
    Case {
        id: "d",
        title: "First kernel: sum of two vectors",
        teaches: "A kernel takes microseconds to launch and to wait for, however few elements it \
                  processes.",
        variants: &[
            Variant::new_on_cuda(
                "1000 elements, blocks of 256",
                "vector-add",
                Fp32,
                1000,
                1000,
            )
            .with_framework("Numba", 30.0),
            Variant::new_on_cuda(
                "4096 elements, 32 x 128",
                "vector-add-32x128",
                Fp32,
                4096,
                4096,
            )
            .with_framework("Numba", 29.0),
            Variant::new_on_cpu("1000 elements", "vector-add", Fp32, 1000, 1000),
        ],
    },
    Case {
        id: "e",
        title: "Zeros of 100000x100000, fp64: 80 GB",
        teaches: "Out of memory is an error like any other: a program that catches it continues \
                  and loses nothing.",
        variants: &[
            Variant::new_shown_on_gpu("80 GB", programs::allocate_zeros),
            Variant::new_shown_on_gpu("more memory than the GPU has", programs::request_too_much),
        ],
    },
    Case {
        id: "f",
        title: "cos(x)^2 + sin(x)^2 of ten million, fp64",
        teaches: "The bus determines the speed: with the copies, a GPU is about as fast as a CPU; \
                  without them, it is much faster.",
        variants: &[
            Variant::new_on_cpu(
                "one thread",
                "trig-serial",
                Fp64,
                10 * MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework_on_device("Numba", 146_000.0, OneCore),
            Variant::new_on_cpu("all threads", "trig", Fp64, 10 * MILLION, QUICK_ELEMENTS)
                .with_framework_on_device("Numba", 17_000.0, AllCores),
            Variant::new_on_cuda(
                "pageable copies",
                "trig-pageable",
                Fp64,
                10 * MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("Numba", 13_700.0),
            Variant::new_on_cuda(
                "pinned copies",
                "trig-pinned",
                Fp64,
                10 * MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("Numba", 13_700.0),
            Variant::new_on_cuda("kernel alone", "trig", Fp64, 10 * MILLION, QUICK_ELEMENTS)
                .with_framework("Numba", 212.0),
        ],
    },
    Case {
        id: "g",
        title: "Matrix product of 1000x1000, fp64",
        teaches: "For double-precision products, a GPU pays off even at this size, if it has full \
                  double-precision units.",
        variants: &[
            Variant::new_on_cuda("product", "matmul", Fp64, 1000, 64).with_framework("CuPy", 57.8),
            Variant::new_on_cpu("product", "matmul", Fp64, 1000, 64)
                .with_framework_on_device("NumPy", 2450.0, AllCores),
        ],
    },
    Case {
        id: "h",
        title: "Matrix product of 3000x3000, arrays on the host or on the device",
        teaches: "What a framework calls fp32 may be tf32: seven times as fast, with ten bits of \
                  fraction instead of 23.",
        variants: &[
            Variant::new_on_cuda("tf32, pageable copies", "matmul-pageable", Tf32, 3000, 96)
                .with_framework("JAX", 9204.0),
            Variant::new_on_cuda("tf32, pinned copies", "matmul-pinned", Tf32, 3000, 96)
                .with_framework("JAX", 9204.0),
            Variant::new_on_cuda("tf32, as JAX computes fp32", "matmul", Tf32, 3000, 96)
                .with_framework("JAX", 357.0),
            Variant::new_on_cuda("fp32, full precision", "matmul", Fp32, 3000, 96),
            Variant::new_on_cpu("product", "matmul", Fp32, 3000, 96),
        ],
    },
    Case {
        id: "i",
        title: "SELU of a million, fp32",
        teaches: "A compiler that fuses operations saves both kernel launches and memory traffic.",
        variants: &[
            Variant::new_on_cuda(
                "a kernel for each operation",
                "selu-per-op",
                Fp32,
                MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("JAX", 290.0),
            Variant::new_on_cuda(
                "the same kernels in one graph",
                "selu-graph",
                Fp32,
                MILLION,
                QUICK_ELEMENTS,
            )
            .with_framework("JAX", 290.0),
            Variant::new_on_cuda("fused", "selu", Fp32, MILLION, QUICK_ELEMENTS)
                .with_framework("JAX, jit", 50.1),
            Variant::new_on_cpu(
                "a pass for each operation",
                "selu-per-op",
                Fp32,
                MILLION,
                QUICK_ELEMENTS,
            ),
            Variant::new_on_cpu("one pass", "selu", Fp32, MILLION, QUICK_ELEMENTS),
        ],
    },
    Case {
        id: "j",
        title: "150x100 matrix times ten vectors, fp32",
        teaches: "Many vectors that are multiplied in one call take as long as a single vector; \
         in a loop, each vector takes that long.",
        variants: &[
            Variant::new_on_cuda("loop", "matvec-loop", Fp32, 10, 10).with_framework("JAX", 403.0),
            Variant::new_on_cuda("loop as a graph", "matvec-graph", Fp32, 10, 10)
                .with_framework("JAX, vmap", 381.0),
            Variant::new_on_cuda("batched", "matvec-batched", Fp32, 10, 10)
                .with_framework("JAX, jit(vmap)", 43.8),
            Variant::new_on_cpu("loop", "matvec-loop", Fp32, 10, 10),
            Variant::new_on_cpu("batched", "matvec-batched", Fp32, 10, 10),
        ],
    },
    Case {
        id: "k1",
        title: "Devices: list them, choose one, fall back",
        teaches: "A program that lists the devices first can choose where to run, instead of \
                  failing or being slow without notice.",
        variants: &[
            Variant::new_shown_on_gpu("list", programs::list_devices),
            Variant::new_on_cuda("on the chosen GPU", "vector-add", Fp32, 1000, 1000),
            Variant::new_shown_on_gpu("a GPU that does not exist", programs::fall_back_to_cpu),
        ],
    },
    Case {
        id: "k2",
        title: "Copying an array to another GPU",
        teaches: "A copy to the GPU that already has the data costs nothing; a copy to another GPU \
                  takes the time of the link between them.",
        variants: &[
            Variant::new_on_cuda("to another GPU", "peer", Bytes, 1 << 30, 80_056),
            Variant::new_on_cuda("both ways at once", "peer-both", Bytes, 1 << 30, 80_056),
            Variant::new_on_cuda("eight bytes", "peer-latency", Bytes, 8, 8),
            Variant::new_shown_on_gpu("already there", programs::skip_unneeded_copy),
        ],
    },
    Case {
        id: "k3",
        title: "Large and small matrix products, fp32",
        teaches: "Large products belong on a GPU; a CPU has finished a small one before a GPU has \
                  started it.",
        variants: &[
            Variant::new_on_cuda("4096x4096", "matmul", Fp32, 4096, 96),
            Variant::new_on_cpu("4096x4096", "matmul", Fp32, 4096, 96),
            Variant::new_on_cuda("32x32", "matmul", Fp32, 32, 32),
            Variant::new_on_cpu("32x32", "matmul", Fp32, 32, 32),
        ],
    },
    Case {
        id: "k4",
        title: "1000 products of 100x100, and a log of their traces",
        teaches: "Reading each result costs more than computing it: keep the log on the device \
                  that does the work.",
        variants: &[
            Variant::new_on_cuda("each trace to the host", "gram-one-by-one", Fp32, 1000, 7)
                .with_framework("CuPy", 27_400.0),
            Variant::new_on_cuda("log on the GPU", "gram-logged", Fp32, 1000, 7)
                .with_framework("CuPy", 18_300.0),
            Variant::new_on_cuda("one batch", "gram-batched", Fp32, 1000, 7)
                .with_framework("CuPy", 131.0),
            Variant::new_on_cpu("one thread", "gram-one-by-one", Fp32, 1000, 7),
            Variant::new_on_cpu("all threads", "gram-batched", Fp32, 1000, 7),
        ],
    },
    Case {
        id: "k5",
        title: "Products on two GPUs at once, or in sequence on one",
        teaches: "Independent work takes half the time on two GPUs.",
        variants: &[Variant::new_shown_on_gpu(
            "two GPUs compared with one",
            programs::run_on_two_gpus,
        )],
    },
];
