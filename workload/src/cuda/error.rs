//! Errors reported by the CUDA driver.

use std::{borrow::Cow, fmt};

/// A failed call of the driver: the attempted action, and CUDA's name and description of the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaError {
    /// The action that was attempted, such as `allocate 8.00 GiB on GPU 0`.
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

    /// Returns the error for a function that an older driver does not have.
    pub(super) fn from_old_driver(doing: &'static str, needs: &str) -> Self {
        let text = format!(
            "this function needs a driver for CUDA {needs} or newer: update NVIDIA's driver"
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
pub enum DriverUnavailable {
    /// The loader did not find the file, or the file is not a library.
    #[error("cannot load the CUDA driver {path}: {reason}; {fix}")]
    NoLibrary {
        /// The path that the loader tried.
        path: String,
        /// The loader's error message.
        reason: String,
        fix: &'static str,
    },
    /// The library is the stub of a CUDA toolkit, which is only meant for linking.
    #[error(
        "{path} is a stub library of the CUDA toolkit, which is only for linking, and not the \
         driver: remove the folder `stubs` from LD_LIBRARY_PATH, or set GPUMON_LIBCUDA to the \
         driver's libcuda.so.1"
    )]
    Stub { path: String },
    /// The library lacks functions that the driver has.
    #[error(
        "{path} is not the CUDA driver: it has no function {missing}; set GPUMON_LIBCUDA to the \
         driver's libcuda.so.1, or unset it"
    )]
    WrongLibrary {
        path: String,
        /// The first function that the library lacks.
        missing: &'static str,
    },
    /// The driver is older than CUDA 11.
    #[error(
        "the driver supports CUDA {version}, but workloads need 11.0: update NVIDIA's driver to \
         450 or newer"
    )]
    TooOld {
        /// The CUDA version that the driver supports, such as `10.2`.
        version: String,
    },
    /// The driver reports no GPU.
    #[error(
        "the CUDA driver finds no GPU: run `gpumon doctor`, and check whether \
         CUDA_VISIBLE_DEVICES hides the GPUs or the container has none"
    )]
    NoDevice,
    /// The library and the kernel module have different versions.
    #[error(
        "the CUDA library and the kernel driver have different versions: reboot the machine, or \
         reload the driver's kernel modules"
    )]
    Mismatch,
    /// Any other error while initializing the driver.
    #[error(
        "the CUDA driver does not start: {name} ({text}); run `gpumon doctor` to find the cause"
    )]
    NotStarted {
        /// The name of the error, such as `CUDA_ERROR_SYSTEM_NOT_READY`.
        name: String,
        /// The driver's description of the error.
        text: String,
    },
}
