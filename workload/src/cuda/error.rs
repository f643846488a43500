//! What the driver answers when it fails.

use std::{borrow::Cow, fmt};

/// A call that failed: what was being done, and CUDA's name for the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaError {
    /// As `allocate 8.00 GiB on GPU 0`.
    pub doing: Cow<'static, str>,
    /// The `CUresult`.
    pub code: i32,
    pub name: String,
    /// The driver's own words, as `out of memory`; for code that does not compile, what its compiler says.
    pub text: String,
}

impl CudaError {
    pub(super) const OUT_OF_MEMORY: i32 = 2;
    pub(super) const STUB_LIBRARY: i32 = 34;
    pub(super) const NO_DEVICE: i32 = 100;
    pub(super) const NOT_SUPPORTED: i32 = 801;
    pub(super) const SYSTEM_DRIVER_MISMATCH: i32 = 803;

    /// What a driver would answer that had functions which this one does not have.
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
