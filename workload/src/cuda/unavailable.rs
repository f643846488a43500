//! Why there is no CUDA on this machine, and what to do about it.

/// What keeps the driver from being used. Every message names its fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The loader does not find it, or finds what is no library.
    #[error("cannot load the CUDA driver {path}: {reason}; {fix}")]
    NoLibrary {
        /// What was looked for.
        path: String,
        /// What the loader says.
        reason: String,
        /// What to do about it.
        fix: &'static str,
    },
    /// A toolkit's placeholder, to link against.
    #[error(
        "{path} is the stub that CUDA's toolkit has to link against, not the driver: take the folder `stubs` out of \
         LD_LIBRARY_PATH, or name the driver's libcuda.so.1 in GPUMON_LIBCUDA"
    )]
    Stub {
        /// The library.
        path: String,
    },
    /// A library without the driver's functions.
    #[error(
        "{path} is not the CUDA driver: it has no function {missing}; name the driver's libcuda.so.1 in GPUMON_LIBCUDA, \
         or unset that"
    )]
    WrongLibrary {
        /// The library.
        path: String,
        /// The first function that it lacks.
        missing: &'static str,
    },
    /// A driver of before CUDA 11.
    #[error(
        "the driver knows CUDA {version}, and gpumon's work needs 11.0: update NVIDIA's driver to 450 or newer"
    )]
    TooOld {
        /// As `10.2`.
        version: String,
    },
    /// Nothing to compute on.
    #[error(
        "the CUDA driver sees no GPU: run `gpumon doctor`, and check whether CUDA_VISIBLE_DEVICES hides them or the \
         container has none"
    )]
    NoDevice,
    /// The library is of another version than the kernel's module.
    #[error(
        "the CUDA library and the driver in the kernel do not match: restart the machine, or load the driver's module \
         anew"
    )]
    Mismatch,
    /// Any other failure to start.
    #[error("the CUDA driver does not start: {name} ({text}); see `gpumon doctor`")]
    NotStarted {
        /// As `CUDA_ERROR_SYSTEM_NOT_READY`.
        name: String,
        /// The driver's own words.
        text: String,
    },
}
