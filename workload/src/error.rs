//! Errors while running workloads.

use crate::{
    cuda::{CublasError, CudaError, DriverUnavailable},
    protocol::{Backend, Dtype},
};

const GIB: f64 = (1_u64 << 30) as f64;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Unavailable(#[from] DriverUnavailable),
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error("cuBLAS cannot run '{id}' in {dtype}: leave out --engine, or use another --dtype")]
    NotInCublas { id: &'static str, dtype: Dtype },
    #[error(
        "the result of '{id}' is wrong on this GPU: verify it with `gpumon bench {id}`, and stress \
         test the GPU with `gpumon burn`"
    )]
    Wrong { id: &'static str },
    #[error("'{id}' does not run on {backend}; see `gpumon bench list`")]
    NotThere { id: &'static str, backend: Backend },
    #[error(
        "'{id}' can repeat its work at most {most} times, because more repetitions cannot be \
         verified: use a smaller --size"
    )]
    TooOften { id: &'static str, most: u64 },
    #[error(
        "'{id}' needs {needed} GPUs (found: {found}): use a machine with more GPUs, or make more \
         GPUs visible with CUDA_VISIBLE_DEVICES"
    )]
    TooFewGpus {
        id: &'static str,
        needed: usize,
        found: usize,
    },
    #[error("'{id}' does not support the type {dtype}: {}", suggest_types(.valid))]
    NoSuchType {
        id: &'static str,
        dtype: Dtype,
        valid: &'static [Dtype],
    },
    #[error(
        "'{id}' in {dtype} needs compute capability {}.{}, but this GPU has {}.{}: use another \
         --dtype", .needed.0,
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
        "{id} needs {} {place}; {} of {} are free, and {} must stay free for others: {fix}",
        format_gib(*.needed_bytes), format_gib(*.free_bytes), format_gib(*.total_bytes), format_gib(*.reserve_bytes)
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
        "{id} needs at least {} {place}, but may use only {} of the {} that are free: use a \
         larger --mem, or stop the processes that use the rest", format_gib(*.needed_bytes), format_gib(*.allowed_bytes), format_gib(*.free_bytes)
    )]
    TooLittle {
        id: &'static str,
        /// The location of the memory, such as `on GPU 0`.
        place: String,
        needed_bytes: u64,
        /// The free memory in bytes, without the part reserved for other processes.
        allowed_bytes: u64,
        free_bytes: u64,
    },
}

fn suggest_types(valid: &[Dtype]) -> String {
    match valid {
        [] => "leave out --dtype".to_owned(),
        valid => format!(
            "use one of {}",
            valid
                .iter()
                .map(Dtype::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Formats a size in GiB, such as `12.3 GiB`, or in MiB if it is less than 1 GiB.
pub(crate) fn format_gib(bytes: u64) -> String {
    match bytes as f64 / GIB {
        small if small < 1.0 => format!("{:.0} MiB", small * 1024.0),
        gib => format!("{gib:.1} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_error_shows_available_memory() {
        let error = RunError::TooLarge {
            id: "copy",
            place: "on GPU 0".to_owned(),
            needed_bytes: 160 << 30,
            free_bytes: (139 << 30) + (1 << 29),
            total_bytes: 140 << 30,
            reserve_bytes: 512 << 20,
            fix: "use a smaller --size",
        };
        let said = "copy needs 160.0 GiB on GPU 0; 139.5 GiB of 140.0 GiB are free, and 512 MiB \
                    must stay free for others: use a smaller --size";
        assert_eq!(error.to_string(), said);
    }
}
