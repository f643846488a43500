//! NVML's return codes in the probe's words.

use std::mem::discriminant;

use nvml_wrapper::error::NvmlError;

use super::start;
use crate::{model::Absence, vendor::DeviceError, vendor::nvml::query::Code};

pub(super) fn absence(code: Code) -> Absence {
    match code {
        Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED => Absence::NotSupported,
        Code::NO_PERMISSION => Absence::NoPermission,
        Code::GPU_IS_LOST => Absence::GpuLost,
        Code::NO_DATA => Absence::Unknown,
        Code(code) => Absence::DriverError { code },
    }
}

/// Whether the driver is no longer the one that the library was loaded for: it was unloaded or replaced.
pub(super) fn is_driver_replaced(code: Code) -> bool {
    matches!(code, Code::UNINITIALIZED | Code::DRIVER_NOT_LOADED | Code::VERSION_MISMATCH)
}

pub(super) fn device_error(code: Code) -> DeviceError {
    match code {
        Code::GPU_IS_LOST => DeviceError::Lost,
        code if is_driver_replaced(code) => driver_replaced(code.0),
        code => DeviceError::Failed(absence(code)),
    }
}

/// The driver was unloaded or replaced, as this `nvmlReturn_t` says.
pub(in crate::vendor) fn driver_replaced(code: u32) -> DeviceError {
    DeviceError::DriverReplaced { code, cause: start::source_error(code) }
}

/// The `nvmlReturn_t` that an error stands for; 999 (`NVML_ERROR_UNKNOWN`) for those of the wrapper itself.
pub(super) fn code(error: &NvmlError) -> u32 {
    match error {
        NvmlError::FailedToLoadSymbol(_) => Code::FUNCTION_NOT_FOUND.0,
        // The wrapper knows no name for the codes past 22 and hands them over as they are.
        NvmlError::UnexpectedVariant(code) => *code,
        error => (1..=22).find(|code| discriminant(&NvmlError::from(*code)) == discriminant(error)).unwrap_or(999),
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
