//! All workloads.
//!
//! - [`elementwise`] contains workloads that compute one result for each element of their inputs,
//!   defined by a table of operations. [`reduce`] contains workloads that sum an array.
//! - [`matmul`] multiplies matrices, and [`batched`] many small matrices.
//! - [`transfer`] moves arrays between host and device, in one direction or both at the same time,
//!   and between GPUs.
//! - [`latency`] measures kernel launches and dependent loads, and [`transcendental`] expensive
//!   functions.
//! - [`selu`], [`matvec`], [`train`] and [`gram`] are small programs in several forms: operation by
//!   operation, as graphs, and in one kernel. They are built with [`chain`].
//! - [`prelude`] contains the imports that all of these modules share.

mod batched;
mod chain;
mod elementwise;
mod gram;
mod latency;
pub(crate) mod matmul;
mod matvec;
mod prelude;
mod reduce;
mod selu;
mod train;
mod transcendental;
mod transfer;

use self::{
    chain::LaunchMethod,
    elementwise::{
        Add,
        ArrayLocation::{OnDevice, OneThread, Pageable, Pinned},
        Copy, Elementwise, Scale, Square, Triad, Trig, VectorAdd, VectorAddGrid, Write,
    },
    gram::Gram,
    latency::{LaunchLatency, PointerChase},
    matmul::Matmul,
    matvec::Matvec,
    selu::Selu,
    train::Train,
    transfer::{BidirectionalCopy, PeerCopy, Transfer},
};
use crate::{
    protocol::{
        Backend, Dtype,
        Extent::{self, Elements, Fixed, Side, Times},
        LimitingResource::{self, Compute, Driver, Latency, Link, Memory},
    },
    workload::{
        Program,
        UsualSize::{self, Bytes, Computed, Count, LargerThanCaches},
        WORD_BYTES, Workload, WorkloadDescription,
    },
};

pub(crate) use self::reduce::write_and_check_zeros;

const FLOAT_DTYPES: &[Dtype] = &[Dtype::Fp32, Dtype::Fp64];
const FP32: &[Dtype] = &[Dtype::Fp32];
const BOTH_BACKENDS: &[Backend] = &[Backend::Cuda, Backend::Cpu];
const CUDA_ONLY: &[Backend] = &[Backend::Cuda];
const CPU_ONLY: &[Backend] = &[Backend::Cpu];
const MILLION: u64 = 1_000_000;

/// All workloads, in the order in which they are listed and run. Each entry contains the name, the
/// description and the lesson, the types, the backends, the limiting resource and the quantity that
/// the size counts, the usual size, and the program.
pub(crate) static WORKLOADS: &[Workload] = &[
    define_workload(
        "copy",
        [
            "Copies an array to another (STREAM copy).",
            "This is the memory bandwidth that reads and writes share.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &Elementwise(Copy, OnDevice),
    ),
    define_workload(
        "scale",
        [
            "Multiplies each element of an array by a scalar (STREAM scale).",
            "One multiplication per element is hidden behind the memory traffic.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &Elementwise(Scale, OnDevice),
    ),
    define_workload(
        "add",
        [
            "Adds two large arrays (STREAM add).",
            "A third array adds 50 % more traffic, and takes 50 % more time.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &Elementwise(Add, OnDevice),
    ),
    define_workload(
        "triad",
        [
            "Adds an array and a multiple of another (STREAM triad).",
            "Two operations in one pass take the time of one; in separate passes they take twice \
                 that.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &Elementwise(Triad, OnDevice),
    ),
    define_workload(
        "read",
        [
            "Reads an array and sums its words.",
            "Reading alone is faster than reading and writing in turn; compare with `copy`.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &reduce::ReadWorkload,
    ),
    define_workload(
        "write",
        [
            "Writes the same value to every element of an array.",
            "Writing has a different rate than reading; compare with `read`.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &Elementwise(Write, OnDevice),
    ),
    define_workload(
        "h2d-pinned",
        [
            "Copies pinned host memory to the device.",
            "Pinned memory is transferred at the full rate of the bus.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(256 << 20, 2),
        &Transfer {
            to_device: true,
            is_pinned: true,
        },
    ),
    define_workload(
        "h2d-pageable",
        [
            "Copies pageable host memory to the device.",
            "Pageable memory is copied through pinned buffers: with all CPU threads, nearly at the \
             full rate of the bus.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(256 << 20, 2),
        &Transfer {
            to_device: true,
            is_pinned: false,
        },
    ),
    define_workload(
        "d2h-pinned",
        [
            "Copies device memory to pinned host memory.",
            "Results return at the full rate of the bus, a small part of the bandwidth of device \
                 memory.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(256 << 20, 2),
        &Transfer {
            to_device: false,
            is_pinned: true,
        },
    ),
    define_workload(
        "d2h-pageable",
        [
            "Copies device memory to pageable host memory.",
            "A notebook that prints an array copies it this way; the driver's own copy uses one \
             CPU thread, and is several times slower.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(256 << 20, 2),
        &Transfer {
            to_device: false,
            is_pinned: false,
        },
    ),
    define_workload(
        matmul::ID,
        [
            "Multiplies two square matrices.",
            "Halving the width of the data type doubles the rate. Tensor cores are ten times as \
                 fast as other cores.",
        ],
        matmul::DTYPES,
        BOTH_BACKENDS,
        (Compute, Side),
        Computed(matmul::usual_side),
        &Matmul::SQUARE,
    ),
    define_workload(
        "matmul-pinned",
        [
            "Copies two matrices to the GPU, multiplies them there and copies the product back.",
            "The transfers over the bus take several times longer than the product.",
        ],
        matmul::COPIED_DTYPES,
        CUDA_ONLY,
        (Link, Side),
        Count(3000),
        &matmul::CopiedMatmul { is_pinned: true },
    ),
    define_workload(
        "matmul-pageable",
        [
            "The same as matmul-pinned, but from and to pageable host memory.",
            "Keep arrays on the device for as long as you compute with them.",
        ],
        matmul::COPIED_DTYPES,
        CUDA_ONLY,
        (Link, Side),
        Count(3000),
        &matmul::CopiedMatmul { is_pinned: false },
    ),
    define_workload(
        "matmul-batched",
        [
            "Multiplies 1000 pairs of small matrices in one call.",
            "Batching keeps a GPU busy with problems that are too small on their own.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Side),
        Count(100),
        &batched::MatmulBatched,
    ),
    define_workload(
        "launch-latency",
        [
            "Launches empty kernels: 1000 in a row, timed by the device's clock, and one from \
             its launch to its completion, timed by the host's clock.",
            "A launch takes microseconds: many small kernels are slower than one that does all of \
                 their work.",
        ],
        &[],
        CUDA_ONLY,
        (Driver, Fixed),
        Count(1),
        &LaunchLatency,
    ),
    define_workload(
        "vector-add",
        [
            "Adds two vectors of 1000 elements, in blocks of 256 threads.",
            "So little work takes as long as a kernel launch: small arrays are no faster on a GPU.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        Count(1000),
        &Elementwise(VectorAdd, OnDevice),
    ),
    define_workload(
        "trig",
        [
            "Computes cos(x)^2 + sin(x)^2 of ten million elements.",
            "Functions that are expensive on a CPU cost a GPU little more than the memory traffic.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        Count(10 * MILLION),
        &Elementwise(Trig, OnDevice),
    ),
    define_workload(
        "trig-pinned",
        [
            "Copies ten million elements to the GPU, computes cos(x)^2 + sin(x)^2 there and \
                 copies the result back.",
            "The transfer over the bus takes many times longer than the computation, even from \
                 pinned memory.",
        ],
        FLOAT_DTYPES,
        CUDA_ONLY,
        (Link, Elements),
        Count(10 * MILLION),
        &Elementwise(Trig, Pinned),
    ),
    define_workload(
        "trig-pageable",
        [
            "The same as trig-pinned, but from and to pageable host memory.",
            "NumPy arrays are pageable: each copy passes through host memory twice.",
        ],
        FLOAT_DTYPES,
        CUDA_ONLY,
        (Link, Elements),
        Count(10 * MILLION),
        &Elementwise(Trig, Pageable),
    ),
    define_workload(
        "trig-serial",
        [
            "Computes cos(x)^2 + sin(x)^2 on one thread of the CPU.",
            "A comparison with `trig` on the CPU shows the speedup from using several threads.",
        ],
        FLOAT_DTYPES,
        CPU_ONLY,
        (Compute, Elements),
        Count(10 * MILLION),
        &Elementwise(Trig, OneThread),
    ),
    define_workload(
        "square",
        [
            "Squares each of a million elements.",
            "The computation takes microseconds: the location of the data determines the speed.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        Count(MILLION),
        &Elementwise(Square, OnDevice),
    ),
    define_workload(
        "square-pinned",
        [
            "Copies a million elements to the GPU, squares them there and copies the result back.",
            "With so little work per element, the copies make a GPU no faster than a CPU.",
        ],
        FLOAT_DTYPES,
        CUDA_ONLY,
        (Link, Elements),
        Count(MILLION),
        &Elementwise(Square, Pinned),
    ),
    define_workload(
        "square-pageable",
        [
            "The same as square-pinned, but from and to pageable host memory.",
            "Squaring a NumPy array on a GPU and reading it back is slower than squaring it on \
                 the CPU.",
        ],
        FLOAT_DTYPES,
        CUDA_ONLY,
        (Link, Elements),
        Count(MILLION),
        &Elementwise(Square, Pageable),
    ),
    define_workload(
        "square-serial",
        [
            "Squares a million elements on one thread of the CPU.",
            "For an array that fits into the CPU's caches, one thread is as fast as several.",
        ],
        FLOAT_DTYPES,
        CPU_ONLY,
        (Compute, Elements),
        Count(MILLION),
        &Elementwise(Square, OneThread),
    ),
    define_workload(
        "vector-add-32x128",
        [
            "Adds two vectors of 4096 random numbers in 32 blocks of 128 threads. On a GPU, the \
             check also adds 1 to each of 0, 1, 2, and so on.",
            "The grid covers the array: each thread computes its element from its block and \
                 thread index.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Driver, Fixed),
        Count(elementwise::VECTOR_ADD_ELEMENTS),
        &VectorAddGrid,
    ),
    define_workload(
        "selu-per-op",
        [
            "Computes SELU of a million elements with six operations, one kernel each.",
            "Each operation launches a kernel and reads and writes memory, as in a framework \
                 without a compiler.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Memory, Elements),
        Count(MILLION),
        &Selu(LaunchMethod::PerOp),
    ),
    define_workload(
        "selu-graph",
        [
            "Computes SELU of a million elements with six kernels in one CUDA graph.",
            "A CUDA graph removes launch overhead, but no memory traffic.",
        ],
        FP32,
        CUDA_ONLY,
        (Memory, Elements),
        Count(MILLION),
        &Selu(LaunchMethod::Graph),
    ),
    define_workload(
        "selu",
        [
            "Computes SELU of a million elements in one kernel.",
            "Kernel fusion, as a compiler does it: each element is read and written once.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Memory, Elements),
        Count(MILLION),
        &Selu(LaunchMethod::Fused),
    ),
    define_workload(
        "matvec-loop",
        [
            "Multiplies a 150x100 matrix by ten vectors, one after the other.",
            "A product this small takes as long as its kernel launch: the loop pays for ten \
                 launches.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Driver, Times),
        Count(10),
        &Matvec(LaunchMethod::PerOp),
    ),
    define_workload(
        "matvec-graph",
        [
            "Multiplies a 150x100 matrix by ten vectors, with ten kernels in one CUDA graph.",
            "A CUDA graph launches a fixed sequence of kernels with one call.",
        ],
        FP32,
        CUDA_ONLY,
        (Driver, Times),
        Count(10),
        &Matvec(LaunchMethod::Graph),
    ),
    define_workload(
        "matvec-batched",
        [
            "Multiplies a 150x100 matrix by ten vectors in one kernel.",
            "Batching replaces ten launches by one: ten vectors take as long as one.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Driver, Times),
        Count(10),
        &Matvec(LaunchMethod::Fused),
    ),
    define_workload(
        Train(LaunchMethod::PerOp).id(),
        [
            "Trains a network of 121 parameters for 1000 steps, with nineteen kernels per step.",
            "Launch overhead limits a network this small on any GPU: use the CPU, or a compiler.",
        ],
        FP32,
        CUDA_ONLY,
        (Latency, Times),
        Count(1000),
        &Train(LaunchMethod::PerOp),
    ),
    define_workload(
        Train(LaunchMethod::Graph).id(),
        [
            "Trains a network of 121 parameters for 1000 steps, with one CUDA graph per step.",
            "A fixed step is recorded once and launched with a single call.",
        ],
        FP32,
        CUDA_ONLY,
        (Latency, Times),
        Count(1000),
        &Train(LaunchMethod::Graph),
    ),
    define_workload(
        Train(LaunchMethod::Fused).id(),
        [
            "Trains a network of 121 parameters for 1000 steps in one kernel.",
            "A model that fits into one multiprocessor needs neither launches nor memory \
             traffic between steps.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Latency, Times),
        Count(1000),
        &Train(LaunchMethod::Fused),
    ),
    define_workload(
        "gram-one-by-one",
        [
            "Multiplies 1000 matrices of 100x100 by their transposes and reads each trace on \
             the host before computing the next.",
            "Reading each result on the host synchronizes host and GPU a thousand times.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Driver, Times),
        Count(1000),
        &Gram::OneByOne,
    ),
    define_workload(
        "gram-logged",
        [
            "Multiplies 1000 matrices of 100x100 by their transposes and keeps the traces on the \
                 GPU until the end.",
            "Results that stay on the GPU let the host run ahead: it synchronizes once, at the \
                 end.",
        ],
        FP32,
        CUDA_ONLY,
        (Driver, Times),
        Count(1000),
        &Gram::Logged,
    ),
    define_workload(
        "gram-batched",
        [
            "Multiplies 1000 matrices of 100x100 by their transposes in one kernel and computes \
                 the traces in another.",
            "Batched small products fill a GPU: each multiprocessor computes its own products.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Compute, Times),
        Count(1000),
        &Gram::Batched,
    ),
    define_workload(
        "reduce",
        [
            "Sums all elements of an array.",
            "A reduction runs at memory bandwidth if each block sums its part before the blocks \
                 are combined.",
        ],
        FLOAT_DTYPES,
        BOTH_BACKENDS,
        (Memory, Elements),
        LargerThanCaches,
        &reduce::Reduce,
    ),
    define_workload(
        "pointer-chase",
        [
            "Follows pointers through an array that is larger than any cache, to measure the \
             latency of one load.",
            "A load from memory takes hundreds of nanoseconds. Other threads hide this latency.",
        ],
        &[],
        BOTH_BACKENDS,
        (Latency, Elements),
        Computed(latency::memory_array_bytes),
        &PointerChase,
    ),
    define_workload(
        "pointer-chase-l2",
        [
            "Follows pointers through an array that fits into the last-level cache, to measure \
             the latency of one load.",
            "A load from the cache takes less than half the time of a load from memory.",
        ],
        &[],
        BOTH_BACKENDS,
        (Latency, Elements),
        Computed(latency::cached_array_bytes),
        &PointerChase,
    ),
    define_workload(
        "transcendental",
        [
            "Sums 32 sines, exponentials and inverse roots for each of a million elements.",
            "With hundreds of operations per element, compute throughput is the limit, not memory.",
        ],
        FP32,
        BOTH_BACKENDS,
        (Compute, Elements),
        Count(1 << 20),
        &transcendental::Transcendental,
    ),
    define_workload(
        "both-pinned",
        [
            "Copies pinned host memory to the device, and other device memory to the host at the \
                 same time.",
            "PCIe is full duplex: copies in opposite directions overlap, each at nearly its full \
                 rate.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(256 << 20, 4),
        &BidirectionalCopy,
    ),
    define_workload(
        PeerCopy::OneWay.id(),
        [
            "Copies memory from one GPU to the next.",
            "NVLink connects GPUs at several times the bandwidth of PCIe.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(1 << 30, 4),
        &PeerCopy::OneWay,
    ),
    define_workload(
        PeerCopy::BothWays.id(),
        [
            "Copies memory from one GPU to the next, and other memory back at the same time.",
            "Links are full duplex: an exchange between two GPUs reaches twice the rate.",
        ],
        &[],
        CUDA_ONLY,
        (Link, Elements),
        Bytes(1 << 30, 4),
        &PeerCopy::BothWays,
    ),
    define_workload(
        PeerCopy::Latency.id(),
        [
            "Copies eight bytes from one GPU to the next, a hundred times in a row, to measure \
             the latency of one copy.",
            "The smallest copy between GPUs takes microseconds: prefer a few large copies to \
             many small ones.",
        ],
        &[],
        CUDA_ONLY,
        (Latency, Fixed),
        Count(WORD_BYTES),
        &PeerCopy::Latency,
    ),
];

const fn define_workload(
    id: &'static str,
    [does, teaches]: [&'static str; 2],
    dtypes: &'static [Dtype],
    backends: &'static [Backend],
    (bound, extent): (LimitingResource, Extent),
    usual: UsualSize,
    program: &'static dyn Program,
) -> Workload {
    Workload {
        about: WorkloadDescription {
            id,
            does,
            teaches,
            dtypes,
            backends,
            bound,
            extent,
        },
        usual,
        program,
    }
}

/// Returns the descriptions of all workloads, in the order in which they are listed and run.
pub fn list_workloads() -> impl Iterator<Item = &'static WorkloadDescription> {
    WORKLOADS.iter().map(|workload| &workload.about)
}

pub(crate) fn find_workload(id: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.about.id == id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        protocol::{Backend, Extent},
        workload::Size,
    };

    #[test]
    fn names_are_unique_and_workloads_have_descriptions() {
        let ids: BTreeSet<_> = WORKLOADS.iter().map(|workload| workload.about.id).collect();
        assert_eq!(ids.len(), WORKLOADS.len());
        for workload in WORKLOADS {
            let about = workload.about;
            for sentence in [about.does, about.teaches] {
                assert!(
                    sentence.ends_with('.') && sentence.len() > 20,
                    "{}: {sentence}",
                    about.id
                );
            }
            assert!(!about.backends.is_empty(), "{}", about.id);
            assert_eq!(find_workload(about.id).unwrap().about.does, about.does);
        }
        assert!(find_workload("frobnicate").is_none());
    }

    /// Odd sizes leave some elements after the last full pack, chunk and block.
    #[test]
    fn cpu_workloads_verify_only_after_running() {
        let on_cpu = WORKLOADS
            .iter()
            .filter(|workload| workload.about.runs_on(Backend::Cpu));
        for workload in on_cpu {
            let about = workload.about;
            let sizes = match about.extent {
                Extent::Side => [1, 65],
                Extent::Times => [1, 7],
                Extent::Elements | Extent::Fixed => [1, 100_003],
            };
            let types = workload.types_on(Backend::Cpu).iter();
            for (dtype, n) in types.flat_map(|dtype| sizes.map(|n| (*dtype, n))) {
                let id = about.id;
                let mut work = workload.program.prepare_cpu_run(Size { n, dtype }).unwrap();
                assert!(!work.verify().unwrap().ok, "{id} has not run");
                let sample = work.run().unwrap();
                assert!(
                    sample.device_us.is_none() && sample.host_us > 0.0,
                    "{id}: {sample:?}"
                );
                let found = work.verify().unwrap();
                let is_all = match about.extent {
                    Extent::Elements => found.checked == n,
                    Extent::Side => found.checked >= n * n && found.checked % (n * n) == 0,
                    Extent::Times | Extent::Fixed => found.checked > 0,
                };
                assert!(found.ok && is_all, "{id} {dtype}: {found:?}");
            }
        }
    }
}
