//! What the driver read of a GPU while it worked: clocks, power, energy, temperature, throttling,
//! and who else was there.

use std::{collections::BTreeMap, fmt};

use gpumon_probe::{flat, model::Process, stat::Stat};
use serde::{Deserialize, Serialize};

/// As many processes as are named in a sentence.
const NAMED: usize = 3;

/// What the readings of a stretch of time say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// How many readings there are.
    pub samples: usize,
    /// Clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<Stat>,
    /// The board's draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<Stat>,
    /// The power limit at the end, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_watts: Option<f64>,
    /// What the board used in all of the time, by its own counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// The chip's temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub celsius: Option<Stat>,
    /// The share of what the chip does at the clock that it had; left out where no clock changes
    /// that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_at_clock: Option<f64>,
    /// In how many of the readings each throttle reason was active, by NVML's name.
    #[serde(rename = "held_down_by")]
    pub throttled_by: BTreeMap<String, usize>,
    /// Who else computed there, as `others` and `others_omitted`.
    #[serde(flatten)]
    pub others: OtherProcesses,
}

/// Processes that are not the one that works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OtherProcesses {
    /// Those that are known.
    #[serde(rename = "others")]
    pub listed: Vec<OtherProcess>,
    /// Processes that the samples leave out, at most: they may compute, and may be anybody's.
    #[serde(rename = "others_omitted", default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
}

/// A process that is not the one that works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherProcess {
    /// As the driver lists it.
    pub pid: u32,
    /// Left out where nobody knows, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Of its program.
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
    /// The throttle reason of most of the time, by NVML's name.
    pub fn mostly_throttled_by(&self) -> Option<&str> {
        let (name, count) = self.throttled_by.iter().max_by_key(|(_, count)| **count)?;
        (count * 2 > self.samples).then_some(name)
    }
}

impl OtherProcesses {
    /// Whether there is nobody, for certain.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.omitted == 0
    }

    /// Whether there is somebody, for certain.
    pub fn is_anybody_listed(&self) -> bool {
        !self.listed.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl fmt::Display for OtherProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, other) in self.listed.iter().take(NAMED).enumerate() {
            let name = other.name.as_deref().unwrap_or("process");
            let user = other.user.as_deref().unwrap_or("an unknown user");
            write!(
                f,
                "{}{name} {} of {user}",
                if at > 0 { ", " } else { "" },
                other.pid
            )?;
        }
        match self.listed.len().saturating_sub(NAMED) {
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
