//! Settings in the `[[gpu]]` and `[[process]]` tables.

use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use crate::model::{MigInstance, ProcessKind, RecoveryAction, ThrottleReason};

use super::{
    super::{Architecture, encoder::EncoderSession},
    curve::Curve,
    given::GivenAnswers,
    mig::MigSettings,
    quantity::{
        BoundedNumber, Bytes, Celsius, Count, Delay, Lanes, Megahertz, Percent, Seconds, Watts,
    },
    steps::Steps,
};

/// A GPU's default workload, which other settings can override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A training loop near the power limit, with data loader dips, validations, and checkpoints.
    Training,
    /// A model server that uses most of the memory and works when requests arrive.
    Inference,
    /// A program whose memory grows until it fails and starts again.
    Leak,
    /// An idle notebook that keeps its memory allocated.
    Held,
    /// A collective that waits for a process that never joins.
    Hang,
    /// A GPU without any processes.
    Idle,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpuSettings {
    pub(crate) index: Spanned<u32>,
    /// The time at which the GPU is added. By default, the GPU is present from the start.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// The time at which the GPU is removed. By default, the GPU is never removed.
    pub(super) to_s: Option<Spanned<Seconds>>,
    pub(crate) name: Option<String>,
    pub(crate) profile: Option<Profile>,
    pub(crate) memory: Option<Bytes>,
    /// Whether the GPU has no memory of its own. In that case, `memory` is the machine's memory.
    #[serde(default)]
    pub(crate) unified_memory: bool,
    pub(crate) power_limit_watts: Option<Watts>,
    /// The GPU's utilization. It overrides the profile's utilization.
    pub(crate) utilization_percent: Option<Curve<Percent>>,
    /// The memory in use. It overrides the sum of the processes' memory.
    pub(crate) memory_used: Option<Curve<Bytes>>,
    /// The power draw. It overrides the value calculated from utilization and clocks.
    pub(crate) power_watts: Option<Curve<Watts>>,
    /// The maximum clock of the multiprocessors, up to that of an H200.
    pub(crate) max_sm_mhz: Option<Curve<Megahertz>>,
    /// The temperature. It overrides the value calculated from the power draw.
    pub(crate) temperature_celsius: Option<Curve<Celsius>>,
    /// The chip generation. The default is Hopper.
    pub(crate) architecture: Option<Architecture>,
    /// Whether the hardware has activity counters (GPM). The default depends on the architecture.
    pub(crate) gpm: Option<bool>,
    /// The share of multiprocessors that have work. It overrides the value calculated from the
    /// utilization.
    pub(crate) sm_percent: Option<Curve<Percent>>,
    /// The utilization of the tensor cores. It overrides the value calculated from the GPU's
    /// utilization.
    pub(crate) tensor_percent: Option<Curve<Percent>>,
    pub(crate) encoder_percent: Option<Curve<Percent>>,
    pub(crate) decoder_percent: Option<Curve<Percent>>,
    pub(crate) jpeg_percent: Option<Curve<Percent>>,
    pub(crate) ofa_percent: Option<Curve<Percent>>,
    /// The reasons for reduced clocks. They override the reasons derived from power and
    /// utilization.
    pub(crate) throttle_reasons: Option<Steps<Vec<ThrottleReason>>>,
    /// Whether the memory has ECC. The default depends on the GPU's name.
    pub(crate) ecc: Option<bool>,
    /// The number of fans. The default depends on the GPU's name.
    pub(crate) fans: Option<BoundedNumber<8>>,
    pub(crate) ecc_corrected: Option<Curve<Count>>,
    pub(crate) ecc_uncorrected: Option<Curve<Count>>,
    pub(crate) remapped_rows: Option<RemappedRowsSettings>,
    pub(crate) retired_pages: Option<RetiredPagesSettings>,
    pub(crate) recovery_action: Option<Steps<RecoveryAction>>,
    /// The number of PCIe lanes in use. The default is 16.
    pub(crate) pcie_width: Option<Curve<Lanes>>,
    pub(crate) pcie_replays: Option<Curve<Count>>,
    /// The number of `NVLinks`. The default is 0.
    pub(crate) nvlinks: Option<BoundedNumber<18>>,
    #[serde(default)]
    pub(crate) nvlinks_down: Vec<Spanned<u32>>,
    /// The MIG devices, in the order of their NVML indices. If there are none, MIG mode is off.
    pub(crate) mig: Option<Spanned<Steps<Vec<MigSettings>>>>,
    /// Whether the driver keeps the GPU initialized (persistence mode), which is the default.
    pub(crate) persistence: Option<bool>,
    /// Whether the driver keeps accounts of processes. By default, it does not.
    #[serde(default)]
    pub(crate) accounting: bool,
    /// The answers of NVML functions about this GPU. They override all other settings.
    #[serde(default)]
    pub(super) answers: GivenAnswers,
}

impl GpuSettings {
    pub(super) fn is_present(&self, seconds: f64) -> bool {
        is_within(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }

    pub(super) fn is_removed(&self, seconds: f64) -> bool {
        self.to_s
            .as_ref()
            .is_some_and(|to| to.get_ref().0 <= seconds)
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RemappedRowsSettings {
    pub(crate) correctable: u32,
    pub(crate) uncorrectable: u32,
    pub(crate) pending: bool,
    pub(crate) failed: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetiredPagesSettings {
    pub(crate) single_bit: u32,
    pub(crate) double_bit: u32,
    pub(crate) pending: bool,
}

/// An `[[accounted]]` table: a process that ended before the timeline started.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountedSettings {
    pub(super) gpu: Spanned<u32>,
    pub(crate) pid: u32,
    /// The GPU utilization. If this key or one of the next two keys is missing, the driver does not
    /// report that value.
    pub(crate) gpu_percent: Option<Percent>,
    pub(crate) memory_percent: Option<Percent>,
    pub(crate) max_memory: Option<Bytes>,
    /// How long the process ran, in seconds.
    pub(crate) ran_s: Seconds,
}

/// An entry in a process's `encoder_sessions`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncoderSessionSettings {
    fps: BoundedNumber<1_000>,
    latency: Delay,
}

impl From<&EncoderSessionSettings> for EncoderSession {
    fn from(own: &EncoderSessionSettings) -> Self {
        Self {
            fps: own.fps.0 as u32,
            latency_us: own.latency.0.as_micros() as u32,
        }
    }
}

/// A `[[process]]` table. If a GPU has any, they replace the processes from its profile.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessSettings {
    pub(crate) gpu: Spanned<u32>,
    /// The PID. With the fake library, a process with this PID should exist, because gpumon reads
    /// its name from the operating system.
    pub(crate) pid: u32,
    /// The number of identical processes. Their PIDs are consecutive, starting with `pid`.
    #[serde(default = "one")]
    pub(crate) count: Spanned<u32>,
    /// The process's memory. By default, the driver does not know it.
    pub(crate) memory: Option<Curve<Bytes>>,
    sm_percent: Option<Curve<Percent>>,
    encoder_percent: Option<Curve<Percent>>,
    decoder_percent: Option<Curve<Percent>>,
    /// The video streams that the process encodes throughout its run time.
    #[serde(default)]
    pub(crate) encoder_sessions: Vec<EncoderSessionSettings>,
    /// Whether the process's kernels only wait for another GPU.
    #[serde(default)]
    pub(crate) waits: bool,
    #[serde(default = "compute")]
    pub(crate) kind: ProcessKind,
    pub(crate) from_s: Option<Spanned<Seconds>>,
    pub(crate) to_s: Option<Spanned<Seconds>>,
    /// The lifetime of each process. When it ends, new processes with the next PIDs start. By
    /// default, processes do not end.
    pub(crate) lifetime_s: Option<Spanned<Seconds>>,
    /// The program's name. `name`, `user`, and `command` apply only to the simulated source.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) command: Option<Arc<str>>,
    /// The process's host memory. This key applies only to the simulated source.
    pub(crate) host_memory: Option<Curve<Bytes>>,
    /// Whether a debugger is attached. This key applies only to the simulated source.
    #[serde(default)]
    pub(crate) traced: bool,
    /// The process's Slurm job. This key applies only to the simulated source.
    pub(crate) slurm_job: Option<Arc<str>>,
    #[serde(default)]
    pub(crate) mps: bool,
    /// The GPU instance that the process runs on. By default, the process uses the whole GPU.
    pub(super) gpu_instance: Option<Spanned<u32>>,
    #[serde(default)]
    compute_instance: u32,
}

impl ProcessSettings {
    /// Returns the PIDs of the processes that are running at the given time.
    pub(crate) fn list_pids(&self, seconds: f64) -> impl Iterator<Item = u32> + use<> {
        let count = *self.count.get_ref();
        let first = self
            .pid
            .saturating_add(self.generation(seconds).saturating_mul(count));
        (0..count).map(move |number| first.saturating_add(number))
    }

    /// Returns how many times the processes have been replaced by new ones.
    fn generation(&self, seconds: f64) -> u32 {
        self.lifetime_s.as_ref().map_or(0, |lifetime| {
            ((seconds - self.first_started_s()) / lifetime.get_ref().0) as u32
        })
    }

    pub(crate) fn mig(&self) -> Option<MigInstance> {
        let gpu_instance = *self.gpu_instance.as_ref()?.get_ref();
        Some(MigInstance {
            gpu_instance,
            compute_instance: self.compute_instance,
        })
    }

    pub(crate) fn process_count(&self) -> f64 {
        f64::from(*self.count.get_ref())
    }

    pub(crate) fn is_running(&self, seconds: f64) -> bool {
        is_within(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }

    pub(crate) fn has_started(&self, seconds: f64) -> bool {
        is_within(self.from_s.as_ref(), None, seconds)
    }

    pub(crate) fn ended_s(&self) -> Option<f64> {
        self.to_s.as_ref().map(|to| to.get_ref().0)
    }

    /// Returns the time at which the processes that are running at `seconds` started.
    pub(crate) fn started_s(&self, seconds: f64) -> f64 {
        let lifetime_s = self
            .lifetime_s
            .as_ref()
            .map_or(0.0, |lifetime| lifetime.get_ref().0);
        self.first_started_s() + f64::from(self.generation(seconds)) * lifetime_s
    }

    /// Returns the start time of the first process. By default, it is ten minutes before the start
    /// of the timeline, or the start itself if `lifetime_s` is set.
    fn first_started_s(&self) -> f64 {
        let oldest_s = if self.lifetime_s.is_some() {
            0.0
        } else {
            -600.0
        };
        self.from_s
            .as_ref()
            .map_or(oldest_s, |from| from.get_ref().0)
    }

    pub(crate) fn sm_percent(&self, seconds: f64) -> f64 {
        self.sm_percent
            .as_ref()
            .map_or(0.0, |curve| curve.value_at(seconds))
    }

    pub(crate) fn encoder_percent(&self, seconds: f64) -> f64 {
        self.encoder_percent
            .as_ref()
            .map_or(0.0, |curve| curve.value_at(seconds))
    }

    pub(crate) fn decoder_percent(&self, seconds: f64) -> f64 {
        self.decoder_percent
            .as_ref()
            .map_or(0.0, |curve| curve.value_at(seconds))
    }
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn compute() -> ProcessKind {
    ProcessKind::Compute
}

/// Returns `true` if `seconds` is at or after `from`, and before `to`.
pub(super) fn is_within(
    from: Option<&Spanned<Seconds>>,
    to: Option<&Spanned<Seconds>>,
    seconds: f64,
) -> bool {
    from.is_none_or(|from| from.get_ref().0 <= seconds)
        && to.is_none_or(|to| seconds < to.get_ref().0)
}
