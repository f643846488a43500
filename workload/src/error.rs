//! Errors of workloads.

use crate::{
    cuda::{CublasError, CudaError, Unavailable},
    protocol::{Backend, Dtype},
};

const GIB: f64 = (1_u64 << 30) as f64;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error("cuBLAS does not do '{id}' in {dtype}: leave out --engine, or give another --dtype")]
    NotInCublas { id: &'static str, dtype: Dtype },
    #[error(
        "the result of '{id}' is a mismatch on this GPU: verify it with `gpumon bench {id}`, and stress test it with `gpumon burn`"
    )]
    Wrong { id: &'static str },
    #[error("'{id}' does not run on {backend}; see `gpumon bench list`")]
    NotThere { id: &'static str, backend: Backend },
    #[error(
        "'{id}' does the same {most} times at most, since nothing could be checked beyond that: give a smaller --size"
    )]
    TooOften { id: &'static str, most: u64 },
    #[error(
        "'{id}' needs {needed} GPUs, and there are {found}: run it where there are more, or let CUDA_VISIBLE_DEVICES show them"
    )]
    TooFewGpus {
        id: &'static str,
        needed: usize,
        found: usize,
    },
    #[error("'{id}' has no type {dtype}: {}", types(.valid))]
    NoSuchType {
        id: &'static str,
        dtype: Dtype,
        valid: &'static [Dtype],
    },
    #[error(
        "'{id}' in {dtype} needs compute capability {}.{}, and this GPU has {}.{}: give another --dtype", .needed.0,
        .needed.1, .has.0, .has.1
    )]
    NotOnThisGpu {
        id: &'static str,
        dtype: Dtype,
        /// The required compute capability, such as (8, 9).
        needed: (u32, u32),
        has: (u32, u32),
    },
    #[error(
        "{id} needs {} {place}, where {} of {} are free and {} stay free for others: {fix}",
        gib(*.needed_bytes), gib(*.free_bytes), gib(*.total_bytes), gib(*.reserve_bytes)
    )]
    TooLarge {
        id: &'static str,
        /// The location of the memory, such as `on GPU 0`.
        place: String,
        needed_bytes: u64,
        free_bytes: u64,
        total_bytes: u64,
        reserve_bytes: u64,
        fix: &'static str,
    },
    #[error(
        "{id} needs {} {place} at least, and may take {} of the {} that are free: give a larger --mem, or end what holds \
         the rest", gib(*.needed_bytes), gib(*.allowed_bytes), gib(*.free_bytes)
    )]
    TooLittle {
        id: &'static str,
        /// The location of the memory, such as `on GPU 0`.
        place: String,
        needed_bytes: u64,
        /// The free memory without the part that is reserved for others.
        allowed_bytes: u64,
        free_bytes: u64,
    },
}

fn types(valid: &[Dtype]) -> String {
    match valid {
        [] => "leave out --dtype".to_owned(),
        valid => format!(
            "give one of {}",
            valid
                .iter()
                .map(Dtype::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Formats a size such as `12.3 GiB`, or in MiB if it is below one GiB.
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
            fix: "give a smaller --size",
        };
        let said = "copy needs 160.0 GiB on GPU 0, where 139.5 GiB of 140.0 GiB are free and 512 MiB stay free for \
            others: give a smaller --size";
        assert_eq!(error.to_string(), said);
    }
}
