//! The imports that all files of this directory share.

pub(super) use crate::{
    check::{DoubleDouble, Expected, compare_elements, compare_words, make_random_check},
    cuda::{
        Argument::{self, At, F32, In, Out, Pinned, U64},
        Code, CudaError, DeviceMemory, Grid, Kernel, Queue,
    },
    error::RunError,
    frameworks::{self, OperationData, SharedOperation, to_bytes},
    gpu::{Gpu, THREADS_PER_BLOCK, grid_for_elements},
    kernels::{self, ptx},
    numbers::{self, Real, SEED_A, SEED_B, fill_elements},
    parallel,
    protocol::{Backend, Cost, Dtype, Verification},
    workload::{
        Prepared, PreparedResult, Program, Size, TimedRun, WORD_BYTES, prepare_cpu_work,
        prepare_work,
    },
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
