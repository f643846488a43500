//! Settings in the `[[gpu]]` and `[[process]]` tables, including a GPU's `mig` key.

use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::{
    super::Architecture,
    answers::GivenAnswers,
    values::{
        BoundedNumber, Bytes, Celsius, Count, Curve, Delay, Lanes, Megahertz, Percent, Seconds,
        Steps, Watts, value_or_zero,
    },
};
use crate::model::{MigInstance, ProcessKind, RecoveryAction, ThrottleReason};

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

/// The index of the GPU that a `[[gpu]]` table describes. This type exists because `Spanned` has no
/// default, which `GpuSettings` needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(super) struct GpuIndex(pub(super) Spanned<u32>);

impl Default for GpuIndex {
    fn default() -> Self {
        Self(Spanned::new(0..0, 0))
    }
}

/// A `[[gpu]]` table. The default contains the settings of a GPU without a table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpuSettings {
    pub(super) index: GpuIndex,
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
    /// The share of time in which kernels run. It overrides the GPU's utilization, which also
    /// contains copies.
    pub(crate) graphics_percent: Option<Curve<Percent>>,
    /// The utilization of the tensor cores. It overrides the value calculated from the GPU's
    /// utilization.
    pub(crate) tensor_percent: Option<Curve<Percent>>,
    /// The utilization of the single-precision units.
    pub(crate) fp32_percent: Option<Curve<Percent>>,
    /// The utilization of the memory bandwidth.
    pub(crate) dram_bandwidth_percent: Option<Curve<Percent>>,
    /// The data that the GPU receives over PCIe each second.
    pub(crate) pcie_per_second: Option<Curve<Bytes>>,
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
    /// Whether the driver keeps the GPU initialized (persistence mode). By default, it does.
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
    /// The GPU utilization. This key, `memory_percent` and `max_memory` are optional: the driver
    /// does not report a value whose key is missing.
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

/// A `[[process]]` table. If a GPU has such tables, their processes replace those of its profile.
// Each flag is a key of its own in the scenario.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessSettings {
    pub(crate) gpu: Spanned<u32>,
    /// The PID. With the fake library, a process with this PID should exist, because gpumon reads
    /// its name from the operating system.
    pub(crate) pid: u32,
    /// The number of identical processes. Their PIDs are consecutive, starting with `pid`.
    #[serde(default = "default_count")]
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
    #[serde(default = "default_kind")]
    pub(crate) kind: ProcessKind,
    pub(crate) from_s: Option<Spanned<Seconds>>,
    pub(crate) to_s: Option<Spanned<Seconds>>,
    /// The lifetime of each process. When the processes end, new ones with the next PIDs start. By
    /// default, processes do not end.
    pub(crate) lifetime_s: Option<Spanned<Seconds>>,
    /// The program's name. `name`, `user`, and `command` apply only to the simulated source.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) command: Option<Arc<str>>,
    /// The process's host memory. This key applies only to the simulated source.
    pub(crate) host_memory: Option<Curve<Bytes>>,
    /// The process's CPU use; 100 is one core. This key, `workers` and `blocked` apply only to the
    /// simulated source. By default, a process whose kernels run uses one core, because it waits
    /// for them without sleeping.
    pub(crate) cpu_percent: Option<Curve<Percent>>,
    /// The number of child processes that use a core each.
    #[serde(default)]
    pub(crate) workers: u32,
    /// Whether the process waits for a disk.
    #[serde(default)]
    pub(crate) blocked: bool,
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
            .saturating_add(self.replacement_count(seconds).saturating_mul(count));
        (0..count).map(move |number| first.saturating_add(number))
    }

    /// Returns how many times the processes have been replaced by new ones.
    fn replacement_count(&self, seconds: f64) -> u32 {
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

    /// Returns the start time of the processes that are running at `seconds`.
    pub(crate) fn started_s(&self, seconds: f64) -> f64 {
        let lifetime_s = self
            .lifetime_s
            .as_ref()
            .map_or(0.0, |lifetime| lifetime.get_ref().0);
        self.first_started_s() + f64::from(self.replacement_count(seconds)) * lifetime_s
    }

    /// Returns the start time of the first process. By default, this is the start of the timeline
    /// if `lifetime_s` is set, and ten minutes earlier otherwise.
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
        value_or_zero(self.sm_percent.as_ref(), seconds)
    }

    pub(crate) fn encoder_percent(&self, seconds: f64) -> f64 {
        value_or_zero(self.encoder_percent.as_ref(), seconds)
    }

    pub(crate) fn decoder_percent(&self, seconds: f64) -> f64 {
        value_or_zero(self.decoder_percent.as_ref(), seconds)
    }
}

fn default_count() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn default_kind() -> ProcessKind {
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

/// A video stream that a process is encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderSession {
    /// The average number of frames per second.
    pub fps: u32,
    /// The average time to encode a frame, in microseconds.
    pub latency_us: u32,
}

/// The `mig` key of a `[[gpu]]` table, which divides the GPU into MIG devices.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigSettings {
    pub(crate) profile: MigProfile,
    /// The number of the GPU instance, from 0 to 14.
    pub(super) gpu_instance: u32,
    /// The number of the compute instance within the GPU instance, from 0 to 7.
    #[serde(default)]
    pub(super) compute_instance: u32,
    #[serde(default)]
    pub(super) answers: GivenAnswers,
}

impl MigSettings {
    /// The number of slices in a GPU, and thus the maximum number of MIG devices.
    pub(crate) const MAX_SLICES: u32 = 7;

    pub(crate) fn instance(&self) -> MigInstance {
        MigInstance {
            gpu_instance: self.gpu_instance,
            compute_instance: self.compute_instance,
        }
    }

    /// Returns an error message if `devices` cannot exist together on one GPU.
    pub(super) fn find_device_error(devices: &[Self]) -> Option<String> {
        let placed = devices
            .iter()
            .enumerate()
            .find_map(|(at, device)| device.find_conflict(&devices[..at]));
        placed.or_else(|| {
            // The slices of a GPU instance are counted only once, for the instance's first device.
            let first = |(at, own): &(usize, &Self)| {
                !devices[..*at]
                    .iter()
                    .any(|other| other.is_in_same_instance(own))
            };
            let slices: u32 = devices
                .iter()
                .enumerate()
                .filter(first)
                .map(|(_, own)| own.profile.slices)
                .sum();
            (slices > Self::MAX_SLICES).then(|| {
                format!(
                    "these MIG devices have {slices} slices in total; use at most {}",
                    Self::MAX_SLICES
                )
            })
        })
    }

    fn is_in_same_instance(&self, other: &Self) -> bool {
        self.gpu_instance == other.gpu_instance
    }

    /// Returns an error message if the device conflicts with one of the devices in `before`.
    fn find_conflict(&self, before: &[Self]) -> Option<String> {
        let (gpu, compute) = (self.gpu_instance, self.compute_instance);
        if gpu > 14 || compute > 7 {
            return Some(format!(
                "instance {gpu}/{compute} is out of range; use 0 to 14 for the GPU instance and 0 \
                 to 7 for the compute instance"
            ));
        }
        let sharing = || {
            before
                .iter()
                .filter(|other| other.is_in_same_instance(self))
        };
        let MigProfile {
            gpu_instance,
            slices,
            ..
        } = &self.profile;
        if sharing().any(|other| other.compute_instance == compute) {
            return Some(format!(
                "instance {gpu}/{compute} is used twice; give each MIG device its own instance"
            ));
        }
        if let Some(other) = sharing().find(|other| other.profile.gpu_instance != *gpu_instance) {
            let known = &other.profile.gpu_instance;
            return Some(format!(
                "GPU instance {gpu} cannot be both {known} and {gpu_instance}; use the same \
                 profile for both"
            ));
        }
        let taken: u32 = sharing()
            .chain([self])
            .map(|device| device.profile.compute_slices)
            .sum();
        (taken > *slices).then(|| {
            format!(
                "the compute instances of GPU instance {gpu} have {taken} slices in total, but \
                 the GPU instance has only {slices}; give compute instances that share a GPU \
                 instance a profile such as 1c.{gpu_instance}"
            )
        })
    }
}

/// A MIG profile in nvidia-smi's format: `1g.18gb`, or `1c.3g.71gb` for a part of a GPU instance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MigProfile {
    pub(crate) text: String,
    /// The profile of the GPU instance, for example `3g.71gb`.
    gpu_instance: String,
    /// The number of slices in the GPU instance. A slice is a seventh of the GPU.
    pub(crate) slices: u32,
    /// The number of slices in the compute instance.
    pub(crate) compute_slices: u32,
    /// The memory of the GPU instance, in GB.
    pub(crate) gigabytes: u32,
}

impl TryFrom<String> for MigProfile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (compute, whole) = text
            .split_once("c.")
            .map_or((None, text.as_str()), |(compute, whole)| {
                (Some(compute), whole)
            });
        let parts = whole.split_once("g.").and_then(|(slices, memory)| {
            let slices = slices.parse().ok()?;
            let compute_slices = compute.map_or(Some(slices), |compute| compute.parse().ok())?;
            // If a compute instance has all slices of its GPU instance, its profile contains no
            // `c`.
            let is_part = compute.is_none() || compute_slices < slices;
            is_part.then_some((
                slices,
                compute_slices,
                memory.strip_suffix("gb")?.parse().ok()?,
            ))
        });
        match parts {
            Some((
                slices @ (1 | 2 | 3 | 4 | 7),
                compute_slices @ (1 | 2 | 3 | 4 | 7),
                gigabytes @ 1..=1_000,
            )) => Ok(Self {
                gpu_instance: whole.to_owned(),
                text,
                slices,
                compute_slices,
                gigabytes,
            }),
            _ => Err(format!(
                "unknown MIG profile `{text}`; use a profile such as 1g.18gb, 2g.35gb, 3g.71gb, \
                 4g.71gb or 7g.141gb, or a compute instance profile such as 1c.3g.71gb"
            )),
        }
    }
}
