//! Whether a simulated GPU answers.

use std::{thread, time::Duration};

use super::Machine;
use crate::vendor::{
    DeviceError,
    nvml::{
        error::{device_error, driver_replaced},
        query::Code,
    },
};

/// How often a hung device looks whether its fault is over.
const HANG_POLL: Duration = Duration::from_millis(10);

/// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
pub(super) const VERSION_MISMATCH: u32 = 18;

/// Waits while a GPU hangs, then tells whether it is there.
pub(super) fn answer(machine: &Machine, index: u32) -> Result<(), DeviceError> {
    let scenario = machine.world.scenario();
    while scenario.hangs(Some(index), None, machine.timeline.elapsed_s()) {
        thread::sleep(HANG_POLL);
    }
    let seconds = machine.timeline.elapsed_s();
    if scenario.is_mismatched(seconds) {
        Err(driver_replaced(VERSION_MISMATCH))
    } else if scenario.is_lost(index, seconds) {
        Err(DeviceError::Lost)
    } else if let Some(code) = scenario.failure(index, seconds) {
        Err(device_error(Code(code)))
    } else {
        Ok(())
    }
}
