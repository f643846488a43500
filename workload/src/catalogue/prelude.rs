//! What the files of the catalogue are written with.

pub(super) use crate::{
    beside::{self, Data, Shared, from_bytes, to_bytes},
    check::{Expected, compare, compare_random, compare_words},
    cuda::{Argument, Code, CudaError, DeviceMemory, Grid, Kernel, PinnedMemory, Queue},
    double_double::DoubleDouble,
    error::RunError,
    gpu::{Gpu, THREADS, thread_each},
    kernels::{self, ptx},
    memory_budget::MemoryBudget,
    parallel,
    protocol::{Backend, Bound, Cost, Dtype, Extent, Verification},
    random::{self, SEED_A, SEED_B, fill},
    real::Real,
    workload::{About, Prepared, Sample, Size, WORD_BYTES, Workload},
};

/// What can be made of any floating point type, made of the one that was asked for.
macro_rules! of_float {
    ($about:expr, $dtype:expr, |$float:ident| $made:expr) => {
        match $dtype {
            Dtype::Fp32 => {
                type $float = f32;
                Ok(Box::new($made))
            }
            Dtype::Fp64 => {
                type $float = f64;
                Ok(Box::new($made))
            }
            dtype => Err($about.no_such(dtype)),
        }
    };
}

pub(super) use of_float;
