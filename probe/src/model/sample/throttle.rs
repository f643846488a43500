//! Reasons for reduced clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::super::{
    Severity::{self, Critical, Notice, Warning},
    Vendor::{self, Amd, Intel, Nvidia},
};
use ThrottleCause::{Hardware, Idle, Other, Power, Setting, Thermal};
use ThrottleReason::{
    ApplicationsClocksSetting, CurrentLimit, DisplayClockSetting, GpuIdle, HwPowerBrakeSlowdown,
    HwSlowdown, HwThermalSlowdown, MemoryThermalLimit, OtherLimit, PowerLimit, Prochot,
    RegulatorThermalLimit, SwPowerCap, SwThermalSlowdown, SyncBoost, ThermalLimit,
};

/// A reason for reduced clocks. NVIDIA's reasons are NVML's `nvmlClocksEventReason...` bits. The
/// reasons of AMD and Intel are the limits that the firmware applies to the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleReason {
    /// No kernel is running, so the clocks are low. This is normal.
    GpuIdle,
    /// The application clocks that a user has set.
    ApplicationsClocksSetting,
    /// The power limit of the board.
    SwPowerCap,
    /// Hardware slowdown: temperature, a power brake, or a clock too high for the voltage.
    HwSlowdown,
    /// Clocks matched to the slowest GPU of a sync boost group.
    SyncBoost,
    /// Software thermal slowdown: the chip or the memory is near its temperature limit.
    SwThermalSlowdown,
    /// Hardware thermal slowdown: the clocks are reduced to half or less.
    HwThermalSlowdown,
    /// Power brake: the system's power supply requested lower power.
    HwPowerBrakeSlowdown,
    /// The fixed clock that a display needs.
    DisplayClockSetting,
    /// A power limit (AMD: PPT; Intel: PL1, PL2 and PL4).
    PowerLimit,
    /// An electric current limit (AMD: TDC and EDC; Intel: VR TDC).
    CurrentLimit,
    /// The temperature limit of the chip (Intel: thermal and RATL).
    ThermalLimit,
    /// The temperature limit of the memory.
    MemoryThermalLimit,
    /// The temperature limit of a voltage regulator.
    RegulatorThermalLimit,
    /// Lowest clocks, requested by the board (PROCHOT).
    Prochot,
    /// Another limit of the firmware.
    OtherLimit,
}

/// The cause of reduced clocks, in terms that are the same for all vendors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrottleCause {
    /// No kernel is running.
    Idle,
    /// A user has set a lower clock.
    Setting,
    /// A limit on power or electric current was reached.
    Power,
    Thermal,
    /// A slowdown by the hardware. The driver may report the cause of the slowdown as an additional
    /// reason.
    Hardware,
    Other,
}

/// A throttle reason with its vendors, cause, severity and wording.
#[derive(Debug)]
pub struct ReasonInfo {
    pub reason: ThrottleReason,
    /// The vendors whose drivers report the reason.
    pub vendors: &'static [Vendor],
    pub cause: ThrottleCause,
    /// The severity of the resulting condition, or `None` if reduced clocks are intended.
    pub severity: Option<Severity>,
    /// A phrase of at most 24 columns, for tables.
    pub short: &'static str,
    /// A longer phrase, for lists. For a reason without a severity, a complete sentence for the web
    /// page.
    pub long: &'static str,
    /// The part of the condition's text that describes the reason. Names in braces are fields of
    /// the condition.
    pub text: &'static str,
}

macro_rules! reasons {
    ($([$($vendor:ident)+] $reason:ident $cause:ident $severity:expr,
        $short:literal $long:literal $text:literal;)+) => {
        [$(ReasonInfo {
            reason: $reason,
            vendors: &[$($vendor),+],
            cause: $cause,
            severity: $severity,
            short: $short,
            long: $long,
            text: $text,
        }),+]
    };
}

/// The reasons of all vendors, the most severe first.
pub static REASONS: [ReasonInfo; 16] = reasons! {
    [Nvidia] HwThermalSlowdown Thermal Some(Critical), "thermal slowdown (HW)"
        "hardware thermal slowdown: check the cooling"
        "[gpu_celsius|hardware thermal slowdown ({gpu_celsius}), check the cooling|hardware \
         thermal slowdown, check the cooling]";
    [Amd Intel] Prochot Hardware Some(Warning), "PROCHOT"
        "PROCHOT: the board requested the lowest clocks"
        "lowest clocks, because the board requested them (PROCHOT); check cooling and power supply";
    [Nvidia] HwPowerBrakeSlowdown Power Some(Warning), "power brake"
        "power brake by the power supply" "power brake by the system's power supply";
    [Nvidia] HwSlowdown Hardware Some(Warning), "hardware slowdown" "hardware slowdown"
        "hardware slowdown (temperature, power or voltage)";
    [Nvidia] SwThermalSlowdown Thermal Some(Warning), "thermal slowdown" "thermal slowdown"
        "[gpu_celsius|thermal slowdown ({gpu_celsius})|thermal slowdown]";
    [Amd Intel] ThermalLimit Thermal Some(Warning), "temperature limit" "temperature limit"
        "[gpu_celsius|temperature limit ({gpu_celsius})|temperature limit]";
    [Amd] MemoryThermalLimit Thermal Some(Warning), "memory temperature limit"
        "memory temperature limit" "memory temperature limit";
    [Amd Intel] RegulatorThermalLimit Thermal Some(Warning), "VR temperature limit"
        "temperature limit of a voltage regulator" "temperature limit of a voltage regulator";
    [Amd Intel] PowerLimit Power Some(Notice), "power-limited" "power-limited"
        "[limit_watts|power-limited at {limit_watts}|power-limited]";
    [Amd Intel] CurrentLimit Power Some(Notice), "current-limited" "current-limited"
        "current-limited";
    [Amd Intel] OtherLimit Other Some(Notice), "firmware limit" "firmware limit"
        "limited by the firmware";
    [Nvidia] SwPowerCap Power Some(Notice), "power-capped" "power-capped"
        "[limit_watts|power-capped at {limit_watts}|power-capped]";
    [Nvidia] SyncBoost Other Some(Notice), "sync boost limit" "sync boost limit"
        "limited by a slower GPU of its sync boost group";
    [Nvidia] ApplicationsClocksSetting Setting None, "application clocks set"
        "Clocks are limited by the application clock setting." "application clocks";
    [Nvidia] DisplayClockSetting Setting None, "display clock set"
        "Clocks are limited by the display clock setting." "display clocks";
    [Nvidia] GpuIdle Idle None, "" "Nothing is running, so clocks are reduced." "idle";
};

impl ThrottleReason {
    /// All reasons, in the order used by metrics. NVIDIA's reasons are in the order of NVML's bits.
    pub const ALL: [Self; 16] = [
        GpuIdle,
        ApplicationsClocksSetting,
        SwPowerCap,
        HwSlowdown,
        SyncBoost,
        SwThermalSlowdown,
        HwThermalSlowdown,
        HwPowerBrakeSlowdown,
        DisplayClockSetting,
        PowerLimit,
        CurrentLimit,
        ThermalLimit,
        MemoryThermalLimit,
        RegulatorThermalLimit,
        Prochot,
        OtherLimit,
    ];

    /// Returns the entry for this reason in [`REASONS`].
    pub fn info(self) -> &'static ReasonInfo {
        let known = REASONS.iter().find(|info| info.reason == self);
        known.unwrap_or(&REASONS[0])
    }

    pub fn cause(self) -> ThrottleCause {
        self.info().cause
    }

    /// Returns the reasons that the vendor's drivers can report.
    pub fn for_vendor(vendor: Vendor) -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(move |reason| reason.info().vendors.contains(&vendor))
    }

    /// Returns the reason's bit in NVML's mask, or 0 for a reason of another vendor.
    pub fn nvml_bit(self) -> u64 {
        let bit = Self::for_vendor(Nvidia).position(|reason| reason == self);
        bit.map_or(0, |bit| 1 << bit)
    }

    /// Returns the reasons whose bits are set in NVML's mask.
    pub fn from_nvml_mask(mask: u64) -> Vec<Self> {
        let bits = Self::for_vendor(Nvidia).enumerate();
        bits.filter_map(|(bit, reason)| (mask >> bit & 1 == 1).then_some(reason))
            .collect()
    }

    /// Returns `true` if `given` contains the cause of this reason. The driver reports a hardware
    /// slowdown together with its cause, if the cause is known.
    pub fn is_explained_by(self, given: &[Self]) -> bool {
        let causes = [HwThermalSlowdown, HwPowerBrakeSlowdown];
        self == HwSlowdown && given.iter().any(|other| causes.contains(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_mask_becomes_reasons_in_bit_order() {
        assert_eq!(
            ThrottleReason::from_nvml_mask(0x44),
            [SwPowerCap, HwThermalSlowdown]
        );
        assert_eq!(ThrottleReason::from_nvml_mask(0), []);
        assert_eq!(ThrottleReason::from_nvml_mask(0x100), [DisplayClockSetting]);
    }

    #[test]
    fn every_throttle_reason_has_matching_table_row() {
        for reason in ThrottleReason::ALL {
            assert_eq!(reason.info().reason, reason);
        }
    }
}
