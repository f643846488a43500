//! The cases: programs from the tutorials of CUDA.jl, Flux, CuPy, Numba, JAX and D2L, with the
//! times of frameworks.

use super::{
    case::{
        Case,
        On::{AllCores, OneCore},
        Variant,
    },
    programs,
};
use crate::protocol::Dtype::{Bytes, Fp32, Fp64, Tf32};

const MILLION: u64 = 1_000_000;
/// The quick size of an array with a million elements. It is odd, so that there is a remainder.
const FEW: u64 = 10_007;

/// All cases, in the order in which they are run.
pub const CASES: &[Case] = &[
    Case {
        id: "a",
        title: "Matrix product of 1024x1024 and sum of 1000x1000, fp32",
        teaches: "A product has a thousand operations for each number that is moved, and a sum has one.",
        variants: &[
            Variant::cuda("product", "matmul", Fp32, 1024, 64).beside("CuPy", 73.0),
            Variant::cuda("sum", "add", Fp32, MILLION, FEW).beside("CuPy", 19.0),
            Variant::cpu("product", "matmul", Fp32, 1024, 64),
            Variant::cpu("sum", "add", Fp32, MILLION, FEW),
        ],
    },
    Case {
        id: "b",
        title: "Training Dense(10, 10, sigmoid) -> Dense(10, 1), 1000 steps of Adam",
        teaches: "A small network trains as fast as kernels are begun, so that fewer kernels are all that helps.",
        variants: &[
            Variant::cuda(
                "a kernel for each operation",
                "train-per-op",
                Fp32,
                1000,
                10,
            )
            .beside("PyTorch", 632_000.0),
            Variant::cuda("a graph for each step", "train-graph", Fp32, 1000, 10)
                .beside("PyTorch", 632_000.0),
            Variant::cuda("one kernel for all steps", "train", Fp32, 1000, 10)
                .beside("PyTorch", 632_000.0),
            Variant::cpu("one thread", "train", Fp32, 1000, 10),
        ],
    },
    Case {
        id: "c",
        title: "Square of 1000x1000, fp64, with its copies",
        teaches: "A GPU that has to fetch its data and bring it back is slower than a CPU that has it.",
        variants: &[
            Variant::cuda("pageable copies", "square-pageable", Fp64, MILLION, FEW)
                .beside("CuPy", 1162.0),
            Variant::cuda("pinned copies", "square-pinned", Fp64, MILLION, FEW)
                .beside("CuPy", 1162.0),
            Variant::cuda("kernel alone", "square", Fp64, MILLION, FEW),
            Variant::cpu("all threads", "square", Fp64, MILLION, FEW),
            Variant::cpu("one thread", "square-serial", Fp64, MILLION, FEW)
                .beside_on_cpu("NumPy", 494.0, OneCore),
        ],
    },
    Case {
        id: "d",
        title: "First kernel: sum of two vectors",
        teaches: "However few elements there are, a kernel takes microseconds to begin and to be waited for.",
        variants: &[
            Variant::cuda(
                "1000 elements, blocks of 256",
                "vector-add",
                Fp32,
                1000,
                1000,
            )
            .beside("Numba", 30.0),
            Variant::cuda(
                "4096 elements, 32 x 128",
                "vector-add-32x128",
                Fp32,
                4096,
                4096,
            )
            .beside("Numba", 29.0),
            Variant::cpu("1000 elements", "vector-add", Fp32, 1000, 1000),
        ],
    },
    Case {
        id: "e",
        title: "Zeros of 100000x100000, fp64: 80 GB",
        teaches: "Out of memory is an error like any other: a program that catches it continues and loses nothing.",
        variants: &[
            Variant::show_on_gpu("80 GB", programs::take_zeros),
            Variant::show_on_gpu("more than there is", programs::more_than_there_is),
        ],
    },
    Case {
        id: "f",
        title: "cos(x)^2 + sin(x)^2 of ten million, fp64",
        teaches: "The bus decides: with the copies a GPU is about as fast as a CPU, and without them far ahead.",
        variants: &[
            Variant::cpu("one thread", "trig-serial", Fp64, 10 * MILLION, FEW)
                .beside_on_cpu("Numba", 146_000.0, OneCore),
            Variant::cpu("all threads", "trig", Fp64, 10 * MILLION, FEW)
                .beside_on_cpu("Numba", 17_000.0, AllCores),
            Variant::cuda("pageable copies", "trig-pageable", Fp64, 10 * MILLION, FEW)
                .beside("Numba", 13_700.0),
            Variant::cuda("pinned copies", "trig-pinned", Fp64, 10 * MILLION, FEW)
                .beside("Numba", 13_700.0),
            Variant::cuda("kernel alone", "trig", Fp64, 10 * MILLION, FEW).beside("Numba", 212.0),
        ],
    },
    Case {
        id: "g",
        title: "Matrix product of 1000x1000, fp64",
        teaches: "For a product of doubles a GPU is worth it even at this size, if it has full units for them.",
        variants: &[
            Variant::cuda("product", "matmul", Fp64, 1000, 64).beside("CuPy", 57.8),
            Variant::cpu("product", "matmul", Fp64, 1000, 64)
                .beside_on_cpu("NumPy", 2450.0, AllCores),
        ],
    },
    Case {
        id: "h",
        title: "Matrix product of 3000x3000, arrays on the host or on the device",
        teaches: "What a framework calls fp32 may be tf32: seven times as fast, with ten bits of fraction instead of 23.",
        variants: &[
            Variant::cuda("tf32, pageable copies", "matmul-pageable", Tf32, 3000, 96)
                .beside("JAX", 9204.0),
            Variant::cuda("tf32, pinned copies", "matmul-pinned", Tf32, 3000, 96)
                .beside("JAX", 9204.0),
            Variant::cuda("tf32, as JAX computes fp32", "matmul", Tf32, 3000, 96)
                .beside("JAX", 357.0),
            Variant::cuda("fp32 in full", "matmul", Fp32, 3000, 96),
            Variant::cpu("product", "matmul", Fp32, 3000, 96),
        ],
    },
    Case {
        id: "i",
        title: "SELU of a million, fp32",
        teaches: "A compiler that fuses operations saves both the kernels and the ways through memory.",
        variants: &[
            Variant::cuda(
                "a kernel for each operation",
                "selu-per-op",
                Fp32,
                MILLION,
                FEW,
            )
            .beside("JAX", 290.0),
            Variant::cuda("those in one graph", "selu-graph", Fp32, MILLION, FEW)
                .beside("JAX", 290.0),
            Variant::cuda("fused", "selu", Fp32, MILLION, FEW).beside("JAX, jit", 50.1),
            Variant::cpu(
                "a pass for each operation",
                "selu-per-op",
                Fp32,
                MILLION,
                FEW,
            ),
            Variant::cpu("one pass", "selu", Fp32, MILLION, FEW),
        ],
    },
    Case {
        id: "j",
        title: "150x100 matrix times ten vectors, fp32",
        teaches: "Vectors that go through together take as long as one, and a loop takes as long as all of them.",
        variants: &[
            Variant::cuda("loop", "matvec-loop", Fp32, 10, 10).beside("JAX", 403.0),
            Variant::cuda("loop as a graph", "matvec-graph", Fp32, 10, 10)
                .beside("JAX, vmap", 381.0),
            Variant::cuda("batched", "matvec-batched", Fp32, 10, 10).beside("JAX, jit(vmap)", 43.8),
            Variant::cpu("loop", "matvec-loop", Fp32, 10, 10),
            Variant::cpu("batched", "matvec-batched", Fp32, 10, 10),
        ],
    },
    Case {
        id: "k1",
        title: "Devices: list them, choose one, fall back",
        teaches: "Who asks first what there is can say where the work goes, instead of failing or silently being slow.",
        variants: &[
            Variant::show_on_gpu("list", programs::list),
            Variant::cuda("on the one chosen", "vector-add", Fp32, 1000, 1000),
            Variant::show_on_gpu("one that is not there", programs::fall_back),
        ],
    },
    Case {
        id: "k2",
        title: "An array to another GPU",
        teaches: "A copy to where the data already is costs nothing; one to another GPU costs the link between them.",
        variants: &[
            Variant::cuda("to another GPU", "peer", Bytes, 1 << 30, 80_056),
            Variant::cuda("both ways at once", "peer-both", Bytes, 1 << 30, 80_056),
            Variant::cuda("eight bytes", "peer-latency", Bytes, 8, 8),
            Variant::show_on_gpu("already there", programs::already_there),
        ],
    },
    Case {
        id: "k3",
        title: "Large and small matrix products, fp32",
        teaches: "Large products belong on a GPU; at small ones it is not even awake before a CPU is done.",
        variants: &[
            Variant::cuda("4096x4096", "matmul", Fp32, 4096, 96),
            Variant::cpu("4096x4096", "matmul", Fp32, 4096, 96),
            Variant::cuda("32x32", "matmul", Fp32, 32, 32),
            Variant::cpu("32x32", "matmul", Fp32, 32, 32),
        ],
    },
    Case {
        id: "k4",
        title: "1000 products of 100x100, and a log of their traces",
        teaches: "Looking at each result costs more than the result: keep the log where the work is.",
        variants: &[
            Variant::cuda("each trace to the host", "gram-one-by-one", Fp32, 1000, 7)
                .beside("CuPy", 27_400.0),
            Variant::cuda("log on the GPU", "gram-logged", Fp32, 1000, 7).beside("CuPy", 18_300.0),
            Variant::cuda("one batch", "gram-batched", Fp32, 1000, 7).beside("CuPy", 131.0),
            Variant::cpu("one thread", "gram-one-by-one", Fp32, 1000, 7),
            Variant::cpu("all threads", "gram-batched", Fp32, 1000, 7),
        ],
    },
    Case {
        id: "k5",
        title: "Products on two GPUs at once, or in sequence on one",
        teaches: "Work that does not depend on each other takes half of the time on two GPUs.",
        variants: &[Variant::show_on_gpu(
            "two GPUs against one",
            programs::at_once,
        )],
    },
];
