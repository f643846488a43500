//! The driver's readings while a GPU worked, and comparisons of readings with known loads.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use gpumon_probe::{
    flat,
    model::{Process, Reading},
    stat::Stat,
};
use serde::{Deserialize, Serialize};

/// The comparison of a reading with a known load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingCheck {
    /// The name of the load.
    pub load: Cow<'static, str>,
    /// A description of what the load does.
    pub does: Cow<'static, str>,
    /// The CUDA index of the GPU.
    pub gpu: u32,
    /// The path of the reading in a sample, such as `utilization.gpu_percent`.
    pub reading: Cow<'static, str>,
    /// The unit of all numbers in this comparison.
    pub unit: Unit,
    /// The value that the load should produce.
    pub expected: Reading<f64>,
    /// The smallest reading that counts as correct; absent if the expected value is absent.
    pub least: Reading<f64>,
    /// The largest reading that counts as correct; absent if the expected value is absent.
    pub most: Reading<f64>,
    /// The value that gpumon reported.
    pub reported: Reading<f64>,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The way in which the expected value was determined.
    pub how: String,
    /// A sentence that summarizes the result of the comparison.
    pub text: String,
}

/// The result of comparing a reading with a known load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The reading is correct.
    Verified,
    /// The reading is wrong.
    Mismatch,
    /// The driver does not report this reading on this GPU, or the expected value is unknown.
    NotReported,
}

impl Verdict {
    /// Returns the verdict as text for display.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Mismatch => "mismatch",
            Self::NotReported => "not reported",
        }
    }
}

/// The unit of a reading's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A percentage of a total or of a maximum.
    Percent,
    Bytes,
    BytesPerSecond,
    Megahertz,
    Joules,
    /// Windows in which gpumon determines what limits the GPU.
    Windows,
}

impl Unit {
    /// Returns the unit's name for display, the divisor that converts a value to this unit, and the
    /// number of decimal places. There are enough decimal places to show the tolerances.
    fn display_format(self) -> (&'static str, f64, usize) {
        match self {
            Self::Percent => ("%", 1.0, 1),
            Self::Bytes => ("GiB", (1_u64 << 30) as f64, 3),
            Self::BytesPerSecond => ("GB/s", 1e9, 2),
            Self::Megahertz => ("MHz", 1.0, 0),
            Self::Joules => ("J", 1.0, 0),
            Self::Windows => ("windows", 1.0, 0),
        }
    }

    /// Returns the unit's name for display, such as `GiB`.
    pub fn name(self) -> &'static str {
        self.display_format().0
    }

    /// Formats a reading without its unit. Returns `None` if the reading is absent.
    pub fn format_without_unit(self, reading: &Reading<f64>) -> Option<String> {
        let (_, size, decimals) = self.display_format();
        reading
            .value()
            .map(|value| format!("{:.decimals$}", value / size))
    }

    /// Formats a reading with its unit, such as `50.0 %` or `55.40 GB/s`.
    pub fn format_with_unit(self, reading: &Reading<f64>) -> String {
        self.format_without_unit(reading).map_or_else(
            || "-".to_owned(),
            |figure| format!("{figure} {}", self.name()),
        )
    }
}

/// The maximum number of processes that a sentence names.
const MAX_NAMED_PROCESSES: usize = 3;

/// A summary of the driver's readings over a period of time: clocks, power, energy, temperature,
/// throttling, and other processes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// The number of readings.
    pub samples: usize,
    /// The clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<Stat>,
    /// The power draw of the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<Stat>,
    /// The power limit at the end of the period, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_watts: Option<f64>,
    /// The energy in joules that the board used during the period, from the board's own counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// The temperature of the chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Stat>,
    /// The achieved share of the peak rate at the actual clock; omitted if the clock does not
    /// affect the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_at_clock: Option<f64>,
    /// The number of readings in which each throttle reason was active. The keys are NVML's names.
    #[serde(rename = "held_down_by")]
    pub throttled_by: BTreeMap<String, usize>,
    /// Other processes that computed on the GPU. They are serialized as `others` and
    /// `others_omitted`.
    #[serde(flatten)]
    pub others: OtherProcesses,
}

/// Processes on a GPU other than the worker process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OtherProcesses {
    /// The processes that the driver listed.
    #[serde(rename = "others")]
    pub listed: Vec<OtherProcess>,
    /// The highest number of processes that a single sample did not list. These processes may be
    /// computing, and can belong to any user.
    #[serde(rename = "others_omitted", default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
}

/// A process other than the worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// The process ID, as listed by the driver.
    pub pid: u32,
    /// The process's user; omitted if unknown, for example in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of the process's program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl From<&Process> for OtherProcess {
    fn from(process: &Process) -> Self {
        Self {
            pid: process.pid,
            user: process.user.value().cloned(),
            name: process.name.value().cloned(),
        }
    }
}

flat! { Load {
    samples, sm_mhz, watts, limit_watts, joules, celsius, share_at_clock, throttled_by = "held_down_by", others: rest
} }

impl Load {
    /// Returns the throttle reason that was active in more than half of the readings. The name is
    /// NVML's.
    pub fn main_throttle_reason(&self) -> Option<&str> {
        let (name, count) = self.throttled_by.iter().max_by_key(|(_, count)| **count)?;
        (count * 2 > self.samples).then_some(name)
    }
}

impl OtherProcesses {
    /// Returns `true` if it is certain that there is no other process.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.omitted == 0
    }

    /// Returns `true` if it is certain that there is at least one other process.
    pub fn has_listed_processes(&self) -> bool {
        !self.listed.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl fmt::Display for OtherProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, other) in self.listed.iter().take(MAX_NAMED_PROCESSES).enumerate() {
            let name = other.name.as_deref().unwrap_or("process");
            let user = other.user.as_deref().unwrap_or("an unknown user");
            write!(
                f,
                "{}{name} {} of {user}",
                if at > 0 { ", " } else { "" },
                other.pid
            )?;
        }
        match self.listed.len().saturating_sub(MAX_NAMED_PROCESSES) {
            0 => {}
            more => write!(f, ", and {more} more")?,
        }
        let and = if self.listed.is_empty() { "" } else { ", and " };
        match self.omitted {
            0 => Ok(()),
            1 => write!(f, "{and}1 process that is not listed"),
            count => write!(f, "{and}{count} processes that are not listed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_have_enough_digits_to_explain_verdict() {
        let words = |unit: Unit, value| unit.format_with_unit(&Reading::Now(value));
        assert_eq!(words(Unit::Megahertz, 1755.2), "1755 MHz");
        assert_eq!(words(Unit::Joules, 3421.6), "3422 J");
        assert_eq!(words(Unit::Percent, 71.46), "71.5 %");
        assert_eq!(words(Unit::BytesPerSecond, 63.047e9), "63.05 GB/s");
        assert_eq!(
            words(Unit::Bytes, 8.009 * (1_u64 << 30) as f64),
            "8.009 GiB"
        );
    }
}
