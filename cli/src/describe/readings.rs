//! The readings of a GPU as text, and the levels of load that they indicate.

use gpumon_probe::model::{
    Activity, Gpu, GpuSample, MemoryKind, MigSample, Reading,
    fields::{GPU_FIELDS, OVERVIEW},
};

use super::{Level, Phrase};
use crate::terminal::units::{ABSENT, GIB};

/// The width of a utilization with the label `SM`.
pub(crate) const BUSY_WIDTH_WITH_SM: usize = "SM 100 %".len();
pub(crate) const BUSY_WIDTH: usize = "100 %".len();

/// A level of load. Terminals show levels by color and weight, so that no information depends on
/// color alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LoadLevel {
    #[default]
    Light,
    Moderate,
    Heavy,
}

impl LoadLevel {
    /// Returns the level of load for a fraction between 0 and 1. The thresholds are percentages.
    pub(crate) fn from_share(share: Option<f64>, [moderate, heavy]: [u32; 2]) -> Self {
        match share.map(|share| share * 100.0) {
            Some(percent) if percent >= heavy.into() => Self::Heavy,
            Some(percent) if percent >= moderate.into() => Self::Moderate,
            _ => Self::Light,
        }
    }
}

/// Parses a pair of percentages, the smaller one first.
fn parse_threshold_pair(text: &str) -> Result<[u32; 2], String> {
    let numbers: Option<Vec<u32>> = text
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect();
    match numbers.as_deref() {
        Some([low, high]) if 1 <= *low && low < high && *high <= 100 => Ok([*low, *high]),
        _ => Err(
            "use two percentages from 1 to 100, the smaller first, such as 10 and 75".to_owned(),
        ),
    }
}

/// Formats two thresholds in the format of the command line.
fn format_threshold_pair([low, high]: [u32; 2]) -> String {
    format!("{low},{high}")
}

/// Percentages of each reading's limit at which the load becomes moderate and heavy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct Thresholds {
    /// GPU utilization from which load is moderate, and heavy, in percent
    #[arg(
        long = "utilization-thresholds", env = "GPUMON_TOP_UTILIZATION_THRESHOLDS",
        value_name = "LOW,HIGH", default_value = format_threshold_pair(Self::default().utilization),
        value_parser = parse_threshold_pair
    )]
    pub(crate) utilization: [u32; 2],

    /// Memory use from which load is moderate, and heavy, in percent of all memory
    #[arg(
        long = "memory-thresholds", env = "GPUMON_TOP_MEMORY_THRESHOLDS", value_name = "LOW,HIGH",
        default_value = format_threshold_pair(Self::default().memory), value_parser = parse_threshold_pair
    )]
    pub(crate) memory: [u32; 2],

    /// Temperature from which load is moderate, and heavy, in percent of the slowdown
    /// temperature
    #[arg(
        long = "temperature-thresholds", env = "GPUMON_TOP_TEMPERATURE_THRESHOLDS",
        value_name = "LOW,HIGH", default_value = format_threshold_pair(Self::default().temperature),
        value_parser = parse_threshold_pair
    )]
    pub(crate) temperature: [u32; 2],

    /// Power draw from which load is moderate, and heavy, in percent of the power limit
    #[arg(
        long = "power-thresholds", env = "GPUMON_TOP_POWER_THRESHOLDS", value_name = "LOW,HIGH",
        default_value = format_threshold_pair(Self::default().power), value_parser = parse_threshold_pair
    )]
    pub(crate) power: [u32; 2],
}

impl Default for Thresholds {
    /// Returns the thresholds from the catalog of fields.
    fn default() -> Self {
        let of = |id| GPU_FIELDS.iter().find(|field| field.id == id)?.load;
        let [utilization, memory, power, temperature] =
            OVERVIEW.map(|id| of(id).expect("all fields of the overview have thresholds"));
        Self {
            utilization,
            memory,
            temperature,
            power,
        }
    }
}

/// The level of load for each reading. The level is light if the reading or its limit is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LoadLevels {
    pub(crate) utilization: LoadLevel,
    pub(crate) memory: LoadLevel,
    pub(crate) temperature: LoadLevel,
    pub(crate) power: LoadLevel,
}

impl LoadLevels {
    pub(crate) fn from_gpu(gpu: &GpuSample, board: Option<&Gpu>, thresholds: &Thresholds) -> Self {
        let sm = gpu
            .activity
            .value()
            .and_then(|activity| activity.sm_percent.value());
        let busy = gpu.utilization.gpu_percent.value().or(sm);
        let slowdown = board.and_then(|board| board.board.thresholds.slowdown_celsius.value());
        let of = |value: Option<&f64>, limit: Option<&f64>| {
            Some(value? / limit.filter(|limit| **limit > 0.0)?)
        };
        Self {
            utilization: LoadLevel::from_share(
                busy.map(|percent| percent / 100.0),
                thresholds.utilization,
            ),
            memory: LoadLevel::from_share(unavailable_memory_fraction(gpu), thresholds.memory),
            temperature: LoadLevel::from_share(
                of(gpu.temperature.gpu_celsius.value(), slowdown),
                thresholds.temperature,
            ),
            power: LoadLevel::from_share(
                of(gpu.power.draw_watts.value(), gpu.power.limit_watts.value()),
                thresholds.power,
            ),
        }
    }

    /// Returns the loads of a MIG device. A MIG device has no temperature or power readings.
    pub(crate) fn from_mig_device(part: &MigSample, thresholds: &Thresholds) -> Self {
        let busy = part.activity.value().and_then(|activity| {
            let graphics = activity.graphics_percent.value();
            activity.sm_percent.value().or(graphics)
        });
        Self {
            utilization: LoadLevel::from_share(
                busy.map(|percent| percent / 100.0),
                thresholds.utilization,
            ),
            memory: LoadLevel::from_share(
                used_memory_fraction(
                    part.memory.used_bytes.value(),
                    part.memory.total_bytes.value(),
                ),
                thresholds.memory,
            ),
            ..Self::default()
        }
    }
}

/// Formats memory in use in GiB without the unit, such as `8.5`, `78.2`, or `130.0`, so that
/// decimal points align.
pub(crate) fn format_used_memory(bytes: u64) -> String {
    match bytes as f64 / GIB {
        many if many >= 999.95 => format!("{many:.0}"),
        few => format!("{few:.1}"),
    }
}

/// Formats total memory in GiB without the unit, such as `22.5`, `80.0`, or `141`.
pub(crate) fn format_total_memory(bytes: u64) -> String {
    match bytes as f64 / GIB {
        large if large >= 99.95 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    }
}

/// Formats memory in use, such as `78.2/140 GiB`. The total is left out if it is unknown.
pub(crate) fn format_used_of_total(bytes: u64, of: Option<u64>) -> String {
    let of = of.map_or_else(String::new, |all| format!("/{}", format_total_memory(all)));
    format!("{}{of} GiB", format_used_memory(bytes))
}

/// Returns the fraction of memory in use, from 0 to 1, or `None` if either amount is unknown.
pub(crate) fn used_memory_fraction(used: Option<&u64>, total: Option<&u64>) -> Option<f64> {
    used.zip(total)
        .filter(|(_, total)| **total > 0)
        .map(|(used, total)| *used as f64 / *total as f64)
}

/// Returns the fraction of memory that is not free, from 0 to 1, or `None` if unknown. For unified
/// memory, this includes the memory that the rest of the system uses.
fn unavailable_memory_fraction(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let (used, total) = (memory.used_bytes.value(), memory.total_bytes.value());
    match gpu.memory_kind {
        MemoryKind::Device => used_memory_fraction(used, total),
        MemoryKind::Unified => {
            used_memory_fraction(memory.free_bytes.value(), total).map(|free| 1.0 - free)
        }
    }
}

/// Returns a note about memory that the GPU shares with the CPU.
pub(super) fn find_unified_memory_phrase(gpu: &GpuSample) -> Option<Phrase> {
    if gpu.memory_kind != MemoryKind::Unified {
        return None;
    }
    let short = "unified memory";
    let available = gpu.memory.free_bytes.value();
    let long = available.map_or_else(
        || short.to_owned(),
        |bytes| {
            format!(
                "{short}, shared with the CPU: {} GiB available",
                format_total_memory(*bytes)
            )
        },
    );
    Some(Phrase::new(Level::Quiet, short, long))
}

/// Formats a power draw, such as `692/700 W`. The limit is left out if it is unknown.
pub(crate) fn format_power_draw(watts: f64, limit: Option<f64>) -> String {
    let limit = limit.map_or_else(String::new, |limit| format!("/{limit:.0}"));
    format!("{watts:.0}{limit} W")
}

/// The total of a reading over all GPUs that report it.
pub(crate) struct Total {
    pub(crate) count: usize,
    pub(crate) sum: f64,
    /// The sum of the GPUs' limits, or `None` if a GPU has no limit.
    pub(crate) limit: Option<f64>,
}

impl Total {
    pub(crate) fn new(
        gpus: &[&GpuSample],
        read: impl Fn(&GpuSample) -> Option<(f64, Option<f64>)>,
    ) -> Self {
        let values: Vec<_> = gpus.iter().filter_map(|gpu| read(gpu)).collect();
        Self {
            count: values.len(),
            sum: values.iter().map(|value| value.0).sum(),
            limit: values.iter().map(|value| value.1).sum(),
        }
    }

    /// Returns the total as a fraction of the limit.
    pub(crate) fn share_of_limit(&self) -> Option<f64> {
        let limit = self.limit.filter(|limit| *limit > 0.0);
        limit.map(|limit| self.sum / limit)
    }
}

/// Returns the totals of utilization, memory, and power, such as `63 %`, `512.3/1128 GiB`, and
/// `3200/5600 W`.
pub(crate) fn sum_gpu_readings(gpus: &[&GpuSample]) -> [(Total, String); 3] {
    let busy = Total::new(gpus, |gpu| {
        Some((*gpu.utilization.gpu_percent.value()?, Some(100.0)))
    });
    let memory = Total::new(gpus, |gpu| {
        let total = gpu.memory.total_bytes.value();
        Some((
            *gpu.memory.used_bytes.value()? as f64,
            total.map(|total| *total as f64),
        ))
    });
    let power = Total::new(gpus, |gpu| {
        let limit = gpu.power.limit_watts.value().copied();
        Some((*gpu.power.draw_watts.value()?, limit))
    });
    let percent = format!("{:.0} %", busy.sum / busy.count as f64);
    let used = format_used_of_total(memory.sum as u64, memory.limit.map(|total| total as u64));
    let draw = format_power_draw(power.sum, power.limit);
    [(busy, percent), (memory, used), (power, draw)]
}

/// Formats the utilization of a GPU, such as `93 %`, which is the percentage of time in which any
/// kernel ran. If the driver does not report it, as in MIG mode, the SM activity is returned
/// instead, such as `SM 45 %`.
pub(crate) fn format_utilization(gpu: &GpuSample) -> String {
    match (
        gpu.utilization.gpu_percent.value(),
        read_sm_percent(gpu.activity.value()),
    ) {
        (Some(percent), _) => format!("{percent:.0} %"),
        (None, Some(percent)) => format_sm_activity(percent),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Formats the utilization of a part of a GPU: the SM activity of a MIG device, such as `SM 45 %`,
/// or the percentage of time in which an AMD partition was busy, such as `45 %`.
pub(crate) fn format_mig_utilization(activity: &Reading<Activity>) -> String {
    let activity = activity.value();
    let graphics = activity.and_then(|activity| activity.graphics_percent.value());
    match (read_sm_percent(activity), graphics) {
        (Some(percent), _) => format_sm_activity(percent),
        (None, Some(percent)) => format!("{percent:.0} %"),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns `true` if SM activity is shown instead of the GPU's utilization, because the utilization
/// is absent.
pub(crate) fn shows_sm_activity(gpu: &GpuSample) -> bool {
    gpu.utilization.gpu_percent.value().is_none() && read_sm_percent(gpu.activity.value()).is_some()
}

fn format_sm_activity(percent: f64) -> String {
    format!("SM {percent:.0} %")
}

fn read_sm_percent(activity: Option<&Activity>) -> Option<f64> {
    activity?.sm_percent.value().copied()
}

/// Formats the utilization of encoder and decoder, such as `enc/dec 0/35 %`. Returns `None` if both
/// are absent.
pub(crate) fn format_codec_utilization(gpu: &GpuSample) -> Option<String> {
    let utilization = &gpu.utilization;
    let [encoder, decoder] = [&utilization.encoder_percent, &utilization.decoder_percent]
        .map(|percent| percent.value().map(|percent| format!("{percent:.0}")));
    match (encoder, decoder) {
        (Some(encoder), Some(decoder)) => Some(format!("enc/dec {encoder}/{decoder} %")),
        (Some(encoder), None) => Some(format!("enc {encoder} %")),
        (None, Some(decoder)) => Some(format!("dec {decoder} %")),
        (None, None) => None,
    }
}

/// Formats the generation and width of the PCIe link, such as `5x16`. Returns `None` if either is
/// absent.
pub(crate) fn format_pcie_link(gpu: &GpuSample) -> Option<String> {
    let (generation, width) = (gpu.pcie.generation.value()?, gpu.pcie.width.value()?);
    Some(format!("{generation}x{width}"))
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::*;
    use crate::table::examples;

    #[test]
    fn each_reading_is_compared_with_its_own_limit() {
        let mut gpu = examples::example_sample(1).gpus.remove(0);
        let mut board = examples::example_inventory(1, "NVIDIA H200").gpus.remove(0);
        gpu.utilization.gpu_percent = Reading::Now(9.9);
        (gpu.memory.used_bytes, gpu.memory.total_bytes) = (Reading::Now(80), Reading::Now(100));
        gpu.temperature.gpu_celsius = Reading::Now(64.0);
        board.board.thresholds.slowdown_celsius = Reading::Now(90.0);
        (gpu.power.draw_watts, gpu.power.limit_watts) = (Reading::Now(69.0), Reading::Now(70.0));
        let loads =
            |gpu: &GpuSample, thresholds| LoadLevels::from_gpu(gpu, Some(&board), &thresholds);
        let (light, moderate, heavy) = (LoadLevel::Light, LoadLevel::Moderate, LoadLevel::Heavy);
        let usual = LoadLevels {
            utilization: light,
            memory: heavy,
            temperature: moderate,
            power: heavy,
        };
        assert_eq!(loads(&gpu, Thresholds::default()), usual);
        let mild = Thresholds {
            memory: [81, 99],
            temperature: [50, 71],
            ..Thresholds::default()
        };
        assert_eq!(
            loads(&gpu, mild),
            LoadLevels {
                memory: light,
                temperature: heavy,
                ..usual
            }
        );
        gpu.power.limit_watts = Reading::Absent(Absence::NotSupported);
        assert_eq!(
            loads(&gpu, Thresholds::default()).power,
            light,
            "without a limit there is nothing to compare"
        );
    }
}

#[cfg(test)]
mod memory_tests {
    use super::*;

    #[test]
    fn total_memory_has_three_digits() {
        assert_eq!(
            [22.5, 80.0, 140.4].map(|gib| format_total_memory((gib * GIB) as u64)),
            ["22.5", "80.0", "140"]
        );
        assert_eq!(
            [0.5, 71.5, 113.8, 1144.7].map(|gib| format_used_memory((gib * GIB) as u64)),
            ["0.5", "71.5", "113.8", "1145"]
        );
    }
}
