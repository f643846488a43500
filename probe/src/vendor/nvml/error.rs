//! Conversion of NVML return codes to errors, and to reasons for absence.

use super::{
    return_code::{Explanation, explain},
    start,
};
use crate::{
    model::Absence,
    surroundings::Surroundings,
    vendor::{DeviceError, nvml::query::Code},
};

pub(super) fn to_absence(code: Code) -> Absence {
    match code {
        Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::DEPRECATED => Absence::NotSupported,
        Code::NO_PERMISSION => Absence::NoPermission,
        Code::GPU_IS_LOST => Absence::GpuLost,
        Code::NO_DATA => Absence::Unknown,
        Code(code) => Absence::DriverError { code },
    }
}

/// Returns `true` if `code` means that the driver was unloaded or replaced after the library was
/// loaded.
pub(super) fn is_driver_replaced(code: Code) -> bool {
    matches!(
        code,
        Code::UNINITIALIZED | Code::DRIVER_NOT_LOADED | Code::VERSION_MISMATCH
    )
}

pub(super) fn to_device_error(code: Code) -> DeviceError {
    match code {
        Code::GPU_IS_LOST => DeviceError::Lost,
        code if is_driver_replaced(code) => driver_replaced_error(code.0),
        code => {
            let Explanation { meaning, cure } = explain(code.0, Surroundings::detect_current());
            let meaning = format!("{meaning} (NVML error {})", code.0);
            DeviceError::Failed {
                reason: to_absence(code),
                meaning,
                advice: cure.to_owned(),
            }
        }
    }
}

/// Returns the error for a driver that was unloaded or replaced.
pub(super) fn driver_replaced_error(code: u32) -> DeviceError {
    DeviceError::DriverReplaced {
        code,
        cause: start::to_source_error(code),
    }
}
