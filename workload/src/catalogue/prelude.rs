//! The imports that all files of the catalogue share.

pub(super) use crate::{
    beside::{self, Data, Shared, to_bytes},
    check::DoubleDouble,
    check::{Expected, compare, compare_random, compare_words},
    cuda::{
        Argument::{self, At, F32, In, Out, Pinned, U64},
        Code, CudaError, DeviceMemory, Grid, Kernel, Queue,
    },
    error::RunError,
    gpu::{Gpu, THREADS, thread_each},
    kernels::{self, ptx},
    parallel,
    protocol::{Backend, Cost, Dtype, Verification},
    random::{self, SEED_A, SEED_B, fill},
    real::Real,
    workload::{Prepared, Program, Ready, Sample, Size, WORD_BYTES, prepare_on_cpu, prepare_work},
};

/// Evaluates an expression with the floating-point type of a [`Dtype`].
macro_rules! of_float {
    ($dtype:expr, |$float:ident| $made:expr) => {
        if $dtype == Dtype::Fp64 {
            type $float = f64;
            $made
        } else {
            type $float = f32;
            $made
        }
    };
}

pub(super) use of_float;
