//! The `[[gpu]]` and `[[process]]` tables.

use serde::Deserialize;
use toml::Spanned;

use crate::model::ProcessKind;

use super::{
    curve::Curve,
    quantity::{Bytes, Celsius, Percent, Seconds, Watts},
};

/// What a GPU is busy with, where nothing more exact is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A training loop near the power cap, with data-loader dips, validation and checkpoints.
    Training,
    /// A server that holds most of the memory and works in bursts.
    Inference,
    /// A program whose memory grows until it dies of it and starts again.
    Leak,
    /// A notebook that holds memory and computes nothing.
    Held,
    /// Nobody.
    Idle,
}

/// One `[[gpu]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpuSettings {
    /// NVML's index, from 0.
    pub(crate) index: Spanned<u32>,
    /// `nvmlDeviceGetName`.
    pub(crate) name: Option<String>,
    /// What it is busy with.
    pub(crate) profile: Option<Profile>,
    /// All its memory.
    pub(crate) memory: Option<Bytes>,
    /// The power limit in force.
    pub(crate) power_limit_watts: Option<Watts>,
    /// Instead of the profile's.
    pub(crate) utilization_percent: Option<Curve<Percent>>,
    /// Instead of the sum of the processes' memory.
    pub(crate) memory_used: Option<Curve<Bytes>>,
    /// Instead of what follows from utilisation and clocks.
    pub(crate) power_watts: Option<Curve<Watts>>,
    /// Instead of what follows from power.
    pub(crate) temperature_celsius: Option<Curve<Celsius>>,
}

/// One `[[process]]` table. A GPU that has any has none from its profile.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessSettings {
    /// The GPU's index.
    pub(crate) gpu: Spanned<u32>,
    /// Its PID; of a process that really exists where the fake library is read, since the reader looks it up.
    pub(crate) pid: u32,
    /// What it holds; without it, the driver cannot tell.
    pub(crate) memory: Option<Curve<Bytes>>,
    /// Share of time in which its kernels run.
    sm_percent: Option<Curve<Percent>>,
    /// What it does on the GPU.
    #[serde(default = "compute")]
    pub(crate) kind: ProcessKind,
    /// When it appears, in seconds.
    pub(crate) from_s: Option<Spanned<Seconds>>,
    /// When it disappears, in seconds.
    pub(crate) to_s: Option<Spanned<Seconds>>,
    /// The program's name. Simulated source only, as `user` and `command`.
    pub(crate) name: Option<String>,
    /// Its login name.
    pub(crate) user: Option<String>,
    /// Its command line.
    pub(crate) command: Option<String>,
}

impl ProcessSettings {
    /// Whether it runs at this time.
    pub(crate) fn runs(&self, seconds: f64) -> bool {
        lasts(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }

    /// When it started; a process without a beginning is ten minutes older than the timeline.
    pub(crate) fn started_s(&self) -> f64 {
        self.from_s.as_ref().map_or(-600.0, |from| from.get_ref().0)
    }

    /// Share of time in which its kernels run.
    pub(crate) fn sm_percent(&self, seconds: f64) -> f64 {
        self.sm_percent.as_ref().map_or(0.0, |curve| curve.at(seconds))
    }
}

fn compute() -> ProcessKind {
    ProcessKind::Compute
}

/// Whether a time lies from `from` on and before `to`.
pub(super) fn lasts(from: Option<&Spanned<Seconds>>, to: Option<&Spanned<Seconds>>, seconds: f64) -> bool {
    from.is_none_or(|from| from.get_ref().0 <= seconds) && to.is_none_or(|to| seconds < to.get_ref().0)
}
