//! Checks of whether a simulated GPU responds.

use std::{thread, time::Duration};

use super::Machine;
use crate::vendor::nvml::query::Code;

/// The interval at which a hung call checks whether the fault is over.
const HANG_POLL: Duration = Duration::from_millis(10);

/// Blocks while the GPU is hung.
///
/// # Errors
/// Returns the `nvmlReturn_t` if all calls about the GPU fail.
pub(super) fn wait_until_present(machine: &Machine, index: u32) -> Result<(), Code> {
    let scenario = machine.world.scenario();
    while scenario.is_hanging(Some(index), None, machine.timeline.elapsed_s()) {
        thread::sleep(HANG_POLL);
    }
    let seconds = machine.timeline.elapsed_s();
    if scenario.has_version_mismatch(seconds) {
        Err(Code::VERSION_MISMATCH)
    } else if scenario.is_lost(index, seconds) {
        Err(Code::GPU_IS_LOST)
    } else if let Some(code) = scenario.find_failure(index, seconds) {
        Err(Code(code))
    } else {
        Ok(())
    }
}
