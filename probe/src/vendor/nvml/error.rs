//! NVML's return codes in the probe's words.

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

pub(in crate::vendor) fn device_error(code: Code) -> DeviceError {
    match code {
        Code::GPU_IS_LOST => DeviceError::Lost,
        code if is_driver_replaced(code) => driver_replaced(code.0),
        code => DeviceError::Failed { reason: absence(code), meaning: meaning(code), advice: advice(code).to_owned() },
    }
}

/// What it means that every call about a GPU returns this code.
fn meaning(code: Code) -> String {
    let text = match code {
        Code::NO_PERMISSION => "this user may not use the GPU",
        Code::INSUFFICIENT_POWER => "the GPU's power cables are not connected",
        Code::TIMEOUT => "the driver gave up waiting for the GPU",
        Code::IRQ_ISSUE => "the driver gets no interrupts from the GPU",
        Code::CORRUPTED_INFOROM => "the GPU's infoROM is corrupted",
        Code::RESET_REQUIRED => "the GPU needs a reset",
        Code::OPERATING_SYSTEM => "the operating system does not let this process use the GPU",
        Code::UNKNOWN => "unknown error",
        _ => "the driver fails every call",
    };
    format!("{text} (NVML error {})", code.0)
}

/// What to do where the driver answers nothing but this code.
pub(super) fn advice(code: Code) -> &'static str {
    match code {
        Code::NO_PERMISSION | Code::OPERATING_SYSTEM => {
            "check the permissions of /dev/nvidia*, and the device rules of the container, service or job"
        }
        Code::INSUFFICIENT_POWER => "connect them",
        Code::CORRUPTED_INFOROM => "update the driver; if that does not help, have the board replaced",
        Code::RESET_REQUIRED => "`gpumon pause`, then `nvidia-smi --gpu-reset`; if that does not help, reboot",
        // NVIDIA's container toolkit, troubleshooting: containers lose access to GPUs.
        Code::UNKNOWN => {
            "in a container, `systemctl daemon-reload` on the host has taken its GPUs away: restart it, and have it keep \
             them by `--device` entries for /dev/nvidia*, by CDI, or by cgroupfs as the runtime's cgroup driver; \
             elsewhere, see `dmesg | grep -i nvrm`"
        }
        _ => "see `dmesg | grep -i nvrm`",
    }
}

/// The driver was unloaded or replaced, as this `nvmlReturn_t` says.
pub(in crate::vendor) fn driver_replaced(code: u32) -> DeviceError {
    DeviceError::DriverReplaced { code, cause: start::source_error(code) }
}
