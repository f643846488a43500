//! Why a workload did not run to its end.

use crate::{
    cuda::{CublasError, CudaError, Unavailable},
    protocol::{Backend, Dtype},
};

const GIB: f64 = (1_u64 << 30) as f64;

/// Why a workload did not run, or not to its end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RunError {
    /// There is no CUDA.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The driver failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// There is nothing to compare with.
    #[error(transparent)]
    Cublas(#[from] CublasError),
    /// cuBLAS does not do it.
    #[error("cuBLAS does not do '{id}' in {dtype}: leave out --engine, or give another --dtype")]
    NotInCublas {
        /// The workload.
        id: &'static str,
        /// What was asked for.
        dtype: Dtype,
    },
    /// It was run, and its result is not what it should be.
    #[error(
        "the result of '{id}' is a mismatch on this GPU: look with `gpumon bench {id}`, and stress test it with `gpumon burn`"
    )]
    Wrong {
        /// The workload.
        id: &'static str,
    },
    /// It runs elsewhere.
    #[error("'{id}' does not run on {backend}; see `gpumon bench list`")]
    NotThere {
        /// The workload.
        id: &'static str,
        /// Where it was asked to run.
        backend: Backend,
    },
    /// It would go on for longer than its result can be checked.
    #[error(
        "'{id}' does the same {most} times at most, since nothing could be checked beyond that: give a smaller --size"
    )]
    TooOften {
        /// The workload.
        id: &'static str,
        /// How often it may.
        most: u64,
    },
    /// It takes more GPUs than there are.
    #[error(
        "'{id}' needs {needed} GPUs, and there are {found}: run it where there are more, or let CUDA_VISIBLE_DEVICES show them"
    )]
    TooFewGpus {
        /// The workload.
        id: &'static str,
        /// How many it takes.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// It has other types.
    #[error("'{id}' has no type {dtype}: {}", types(.valid))]
    NoSuchType {
        /// The workload.
        id: &'static str,
        /// What was asked for.
        dtype: Dtype,
        /// What it has.
        valid: &'static [Dtype],
    },
    /// The hardware lacks the type.
    #[error(
        "'{id}' in {dtype} needs compute capability {}.{}, and this GPU has {}.{}: give another --dtype", .needed.0,
        .needed.1, .has.0, .has.1
    )]
    NotOnThisGpu {
        /// The workload.
        id: &'static str,
        /// What was asked for.
        dtype: Dtype,
        /// What it needs, as (8, 9).
        needed: (u32, u32),
        /// What there is.
        has: (u32, u32),
    },
    /// It would take what others may need, or what is not there.
    #[error(
        "{id} needs {} {place}, where {} of {} are free and {} stay free for others: {cure}",
        gib(*.needed_bytes), gib(*.free_bytes), gib(*.total_bytes), gib(*.reserve_bytes)
    )]
    TooLarge {
        /// The workload.
        id: &'static str,
        /// As `on GPU 0`.
        place: String,
        /// What it needs.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What there is.
        total_bytes: u64,
        /// What is left alone.
        reserve_bytes: u64,
        /// What to do about it.
        cure: &'static str,
    },
    /// What it may take is too little.
    #[error(
        "{id} needs {} {place} at least, and may take {} of the {} that are free: give a larger --mem, or end what holds \
         the rest", gib(*.needed_bytes), gib(*.allowed_bytes), gib(*.free_bytes)
    )]
    TooLittle {
        /// The workload.
        id: &'static str,
        /// As `on GPU 0`.
        place: String,
        /// What it needs.
        needed_bytes: u64,
        /// What it may take of what is free, after what others are left.
        allowed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
}

fn types(valid: &[Dtype]) -> String {
    match valid {
        [] => "leave out --dtype".to_owned(),
        valid => format!("give one of {}", valid.iter().map(Dtype::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// `12.3 GiB`, and below one in MiB.
pub(crate) fn gib(bytes: u64) -> String {
    match bytes as f64 / GIB {
        small if small < 1.0 => format!("{:.0} MiB", small * 1024.0),
        gib => format!("{gib:.1} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_told_with_what_there_is() {
        let error = RunError::TooLarge {
            id: "copy",
            place: "on GPU 0".to_owned(),
            needed_bytes: 160 << 30,
            free_bytes: (139 << 30) + (1 << 29),
            total_bytes: 140 << 30,
            reserve_bytes: 512 << 20,
            cure: "give a smaller --size",
        };
        let said = "copy needs 160.0 GiB on GPU 0, where 139.5 GiB of 140.0 GiB are free and 512 MiB stay free for \
            others: give a smaller --size";
        assert_eq!(error.to_string(), said);
    }
}
