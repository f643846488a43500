//! The return codes of NVML.

use std::ffi::CStr;

use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// An `nvmlReturn_t` that reports a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) nvmlReturn_t);

pub(crate) type Outcome = Result<(), Code>;

impl Code {
    pub(crate) const UNINITIALIZED: Self = Self(1);
    pub(crate) const INVALID_ARGUMENT: Self = Self(2);
    pub(crate) const NOT_SUPPORTED: Self = Self(3);
    pub(crate) const NOT_FOUND: Self = Self(6);
    pub(crate) const INSUFFICIENT_SIZE: Self = Self(7);
    pub(crate) const TIMEOUT: Self = Self(10);
    pub(crate) const FUNCTION_NOT_FOUND: Self = Self(13);
    pub(crate) const GPU_IS_LOST: Self = Self(15);
    pub(crate) const LIB_RM_VERSION_MISMATCH: Self = Self(18);
    pub(crate) const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
}

/// Returns the return code of a call with this outcome.
pub(crate) fn to_return_code(outcome: Outcome) -> nvmlReturn_t {
    outcome.err().map_or(0, |code| code.0)
}

/// Returns the text of a code, as in `nvmlErrorString`.
pub(crate) fn error_text(code: nvmlReturn_t) -> &'static CStr {
    match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"ECC is not available because of vGPU",
        23 => c"Insufficient resources",
        24 => c"Requested frequency is not supported",
        25 => c"Argument version mismatch",
        26 => c"Requested functionality has been deprecated",
        27 => c"Not ready",
        28 => c"GPU not found",
        29 => c"Invalid state",
        30 => c"Reset type is not supported",
        _ => c"Unknown Error",
    }
}
