//! Errors of the CUDA driver.

use std::{borrow::Cow, fmt};

/// A failed call: the attempted action, and CUDA's name of the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaError {
    /// The attempted action, such as `allocate 8.00 GiB on GPU 0`.
    pub doing: Cow<'static, str>,
    /// The `CUresult` of the call.
    pub code: i32,
    pub name: String,
    /// The driver's description, such as `out of memory`, or the compiler's message if code does
    /// not compile.
    pub text: String,
}

impl CudaError {
    pub(super) const OUT_OF_MEMORY: i32 = 2;
    pub(super) const STUB_LIBRARY: i32 = 34;
    pub(super) const NO_DEVICE: i32 = 100;
    pub(super) const NOT_SUPPORTED: i32 = 801;
    pub(super) const SYSTEM_DRIVER_MISMATCH: i32 = 803;

    /// Returns the error for a function that this driver is too old to have.
    pub(super) fn too_old(doing: &'static str, needs: &str) -> Self {
        let text = format!(
            "the driver is older than CUDA {needs}, which brought this: update NVIDIA's driver"
        );
        Self {
            doing: doing.into(),
            code: Self::NOT_SUPPORTED,
            name: "CUDA_ERROR_NOT_SUPPORTED".to_owned(),
            text,
        }
    }

    pub fn is_out_of_memory(&self) -> bool {
        self.code == Self::OUT_OF_MEMORY
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            doing,
            name,
            text,
            code,
        } = self;
        write!(f, "cannot {doing}: {name}, code {code} ({text})")
    }
}

impl std::error::Error for CudaError {}

/// The reason why the driver cannot be used. Every message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The loader does not find the file, or it is not a library.
    #[error("cannot load the CUDA driver {path}: {reason}; {fix}")]
    NoLibrary {
        /// The path that was tried.
        path: String,
        /// The message of the loader.
        reason: String,
        fix: &'static str,
    },
    /// The library is the stub of a toolkit, which only serves for linking.
    #[error(
        "{path} is the stub that CUDA's toolkit has to link against, not the driver: take the \
             folder `stubs` out of \
         LD_LIBRARY_PATH, or name the driver's libcuda.so.1 in GPUMON_LIBCUDA"
    )]
    Stub { path: String },
    /// The library lacks the driver's functions.
    #[error(
        "{path} is not the CUDA driver: it has no function {missing}; name the driver's \
             libcuda.so.1 in GPUMON_LIBCUDA, \
         or unset that"
    )]
    WrongLibrary {
        path: String,
        /// The first function that it lacks.
        missing: &'static str,
    },
    /// The driver is older than CUDA 11.
    #[error(
        "the driver knows CUDA {version}, and gpumon's work needs 11.0: update NVIDIA's driver to \
             450 or newer"
    )]
    TooOld {
        /// The version, such as `10.2`.
        version: String,
    },
    /// The driver reports no GPU.
    #[error(
        "the CUDA driver sees no GPU: run `gpumon doctor`, and check whether CUDA_VISIBLE_DEVICES \
             hides them or the \
         container has none"
    )]
    NoDevice,
    /// The library and the kernel's module have different versions.
    #[error(
        "the CUDA library and the driver in the kernel do not match: restart the machine, or load \
             the driver's module \
         anew"
    )]
    Mismatch,
    /// Any other failure to start.
    #[error("the CUDA driver does not start: {name} ({text}); see `gpumon doctor`")]
    NotStarted {
        /// The name of the error, such as `CUDA_ERROR_SYSTEM_NOT_READY`.
        name: String,
        /// The driver's description of the error.
        text: String,
    },
}
