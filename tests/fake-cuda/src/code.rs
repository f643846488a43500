//! The return codes of CUDA.

use std::ffi::{CStr, c_int};

/// A return code of CUDA (`CUresult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const STUB_LIBRARY: Self = Self(34);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const ILLEGAL_ADDRESS: Self = Self(700);
    pub(crate) const CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: Self = Self(701);
    pub(crate) const DEVICE_UNAVAILABLE: Self = Self(46);

    /// Returns CUDA's name and description; `None` for an unknown code.
    pub(crate) fn name_and_description(self) -> Option<(&'static CStr, &'static CStr)> {
        Some(match self {
            Self(0) => (c"CUDA_SUCCESS", c"no error"),
            Self::INVALID_VALUE => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
            Self::OUT_OF_MEMORY => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
            Self::NOT_INITIALIZED => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
            Self::STUB_LIBRARY => (c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
            Self::DEVICE_UNAVAILABLE => (
                c"CUDA_ERROR_DEVICE_UNAVAILABLE",
                c"device is busy or unavailable",
            ),
            Self::NO_DEVICE => (
                c"CUDA_ERROR_NO_DEVICE",
                c"no CUDA-capable device is detected",
            ),
            Self::INVALID_DEVICE => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
            Self::INVALID_CONTEXT => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
            Self::INVALID_PTX => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
            Self::INVALID_HANDLE => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
            Self::NOT_FOUND => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
            Self::LAUNCH_OUT_OF_RESOURCES => (
                c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                c"too many resources requested for launch",
            ),
            Self::ILLEGAL_ADDRESS => (
                c"CUDA_ERROR_ILLEGAL_ADDRESS",
                c"an illegal memory access was encountered",
            ),
            Self::CAPTURE_UNSUPPORTED => (
                c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
                c"operation not permitted when stream is capturing",
            ),
            Self(_) => return None,
        })
    }
}

/// The result of a call within this library.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

/// Returns the return code of a call with this outcome.
pub(crate) fn to_return_code(outcome: Outcome) -> c_int {
    outcome.err().map_or(0, |code| code.0)
}
