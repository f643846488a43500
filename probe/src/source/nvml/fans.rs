//! The fans of a board that is not cooled by its chassis.

use nvml_wrapper::{Device, error::NvmlError};

use super::ask::Asker;
use crate::model::{Fan, Reading};

/// Every fan, in NVML's order.
pub(super) fn read(device: &Device<'_>, asker: &mut Asker) -> Reading<Vec<Fan>> {
    match asker.ask("number of fans", || device.num_fans()) {
        Reading::Now(count) | Reading::Earlier { value: count, .. } => Reading::Now(
            (0..count)
                .map(|fan| Fan {
                    speed_percent: asker.ask("fan speed", || speed(device, fan)).map(f64::from),
                    rpm: asker.ask("fan turns", || device.fan_speed_rpm(fan)),
                })
                .collect(),
        ),
        Reading::Absent(reason) => Reading::Absent(reason),
    }
}

/// `nvmlDeviceGetFanSpeed_v2`, in percent. A board without fans has no first one either, which the driver takes for a
/// wrong argument.
pub(super) fn speed(device: &Device<'_>, fan: u32) -> Result<u32, NvmlError> {
    device.fan_speed(fan).map_err(|error| match error {
        NvmlError::InvalidArg => NvmlError::NotSupported,
        error => error,
    })
}
