//! Readings of the driver while a GPU worked: clocks, power, energy, temperature, throttling, and
//! other processes.

use std::{collections::BTreeMap, fmt};

use gpumon_probe::{flat, model::Process, stat::Stat};
use serde::{Deserialize, Serialize};

/// The maximum number of processes that a sentence names.
const MAX_NAMED_PROCESSES: usize = 3;

/// A summary of the readings over a period of time.
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
    /// The energy that the board used during the period in joules, from the board's own counter.
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
    /// The maximum number of processes that were left out of a sample. They may be computing, and
    /// can belong to any user.
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
