//! The check whether a simulated GPU responds.

use std::{thread, time::Duration};

use super::Machine;
use crate::vendor::nvml::query::Code;

/// The interval at which a hung call checks whether the fault has ended.
const HANG_POLL: Duration = Duration::from_millis(10);

/// Waits while a GPU hangs.
///
/// # Errors
/// Returns the `nvmlReturn_t` with which all calls about the GPU fail.
pub(super) fn check(machine: &Machine, index: u32) -> Result<(), Code> {
    let scenario = machine.world.scenario();
    while scenario.hangs(Some(index), None, machine.timeline.elapsed_s()) {
        thread::sleep(HANG_POLL);
    }
    let seconds = machine.timeline.elapsed_s();
    if scenario.is_mismatched(seconds) {
        Err(Code::VERSION_MISMATCH)
    } else if scenario.is_lost(index, seconds) {
        Err(Code::GPU_IS_LOST)
    } else if let Some(code) = scenario.failure(index, seconds) {
        Err(Code(code))
    } else {
        Ok(())
    }
}
