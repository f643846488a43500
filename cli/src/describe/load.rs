//! The load of a GPU in three levels, derived from utilization, memory, temperature and power.

use gpumon_probe::model::{
    Gpu, GpuSample, MigSample,
    fields::{GPU_FIELDS, OVERVIEW},
};

use super::{memory::unavailable_memory_fraction, used_memory_fraction};

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
    pub(crate) fn from_part(part: &MigSample, thresholds: &Thresholds) -> Self {
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
