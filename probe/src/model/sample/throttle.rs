//! Why clocks are lower than they could be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What holds the clocks down: NVML's `nvmlClocksEventReason...` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// Nothing runs, so the clocks rest. No reason for concern.
    GpuIdle,
    /// The user set the application clocks.
    ApplicationsClocksSetting,
    /// The power limit.
    SwPowerCap,
    /// Hardware slowdown: heat, a power brake, or too fast a clock for the voltage.
    HwSlowdown,
    /// It runs in step with the slowest GPU of a sync boost group.
    SyncBoost,
    /// Software thermal slowdown: the chip or the memory is near its limit.
    SwThermalSlowdown,
    /// Hardware thermal slowdown: the clocks are at half or less.
    HwThermalSlowdown,
    /// The system's power supply asked for less.
    HwPowerBrakeSlowdown,
    /// A display needs a fixed clock.
    DisplayClockSetting,
}

impl ThrottleReason {
    /// Every reason, in the order of the bits.
    pub const ALL: [Self; 9] = [
        Self::GpuIdle,
        Self::ApplicationsClocksSetting,
        Self::SwPowerCap,
        Self::HwSlowdown,
        Self::SyncBoost,
        Self::SwThermalSlowdown,
        Self::HwThermalSlowdown,
        Self::HwPowerBrakeSlowdown,
        Self::DisplayClockSetting,
    ];

    /// Its bit in NVML's mask.
    pub const fn bit(self) -> u64 {
        1 << self as u64
    }
}
