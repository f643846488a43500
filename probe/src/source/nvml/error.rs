//! NVML's errors in the probe's words.

use nvml_wrapper::error::NvmlError;

use crate::{model::Absence, source::DeviceError};

/// Why one reading is not there.
pub(super) fn absence(error: &NvmlError) -> Absence {
    match error {
        NvmlError::NotSupported | NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => {
            Absence::NotSupported
        }
        NvmlError::NoPermission => Absence::NoPermission,
        NvmlError::GpuLost => Absence::GpuLost,
        NvmlError::NoData => Absence::Unknown,
        error => Absence::DriverError { code: code(error) },
    }
}

/// Why a whole GPU cannot be opened.
pub(super) fn device_error(error: &NvmlError) -> DeviceError {
    match absence(error) {
        Absence::GpuLost => DeviceError::Lost,
        Absence::DriverError { code: code @ (1 | 9 | 18) } => DeviceError::DriverGone { code },
        reason => DeviceError::Failed(reason),
    }
}

/// The `nvmlReturn_t` that an error stands for; 999 (`NVML_ERROR_UNKNOWN`) for those of the wrapper itself.
// NVML does not return 5 any more, which is no reason to call it another code.
#[expect(deprecated)]
pub(super) fn code(error: &NvmlError) -> u32 {
    match error {
        NvmlError::Uninitialized => 1,
        NvmlError::InvalidArg => 2,
        NvmlError::NotSupported => 3,
        NvmlError::NoPermission => 4,
        NvmlError::AlreadyInitialized => 5,
        NvmlError::NotFound => 6,
        NvmlError::InsufficientSize(_) => 7,
        NvmlError::InsufficientPower => 8,
        NvmlError::DriverNotLoaded => 9,
        NvmlError::Timeout => 10,
        NvmlError::IrqIssue => 11,
        NvmlError::LibraryNotFound => 12,
        NvmlError::FunctionNotFound => 13,
        NvmlError::CorruptedInfoROM => 14,
        NvmlError::GpuLost => 15,
        NvmlError::ResetRequired => 16,
        NvmlError::OperatingSystem => 17,
        NvmlError::LibRmVersionMismatch => 18,
        NvmlError::InUse => 19,
        NvmlError::InsufficientMemory => 20,
        NvmlError::NoData => 21,
        NvmlError::VgpuEccNotSupported => 22,
        // The wrapper knows no name for the codes past 22 and hands them over as they are.
        NvmlError::UnexpectedVariant(code) => *code,
        _ => 999,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_return_code_survives_the_wrapper() {
        for expected in (1..=30).chain([999]) {
            assert_eq!(code(&NvmlError::from(expected)), expected);
        }
    }
}
