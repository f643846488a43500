//! How loaded a GPU is, in three levels: its time, its memory, and temperature and power against their limits.

use gpumon_probe::model::{
    Activity, Gpu, GpuSample, MemoryKind, MigSample, Reading,
    fields::{GPU_FIELDS, OVERVIEW},
};

use super::{Level, Phrase};
use crate::terminal::units::ABSENT;

/// What terminals color alike. Each level is told by its weight, too, so that color is never alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Load {
    #[default]
    Light,
    Moderate,
    Heavy,
}

impl Load {
    /// Of a share of 1.
    pub(crate) fn of(share: Option<f64>, [moderate, heavy]: [u32; 2]) -> Self {
        match share.map(|share| share * 100.0) {
            Some(percent) if percent >= heavy.into() => Self::Heavy,
            Some(percent) if percent >= moderate.into() => Self::Moderate,
            _ => Self::Light,
        }
    }
}

/// Two percentages, the smaller first.
fn parse_pair(text: &str) -> Result<[u32; 2], String> {
    let numbers: Option<Vec<u32>> = text
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect();
    match numbers.as_deref() {
        Some([low, high]) if 1 <= *low && low < high && *high <= 100 => Ok([*low, *high]),
        _ => Err("use two percentages from 1 to 100, the smaller first, as 10 and 75".to_owned()),
    }
}

/// As it is typed.
fn typed([low, high]: [u32; 2]) -> String {
    format!("{low},{high}")
}

/// From which percentages of its limit on a reading is moderate, and heavy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct Thresholds {
    /// GPU utilization from which on load is moderate, and heavy, in percent
    #[arg(long = "utilization-thresholds", env = "GPUMON_TOP_UTILIZATION_THRESHOLDS", value_name = "LOW,HIGH", default_value = typed(Self::default().utilization), value_parser = parse_pair)]
    pub(crate) utilization: [u32; 2],

    /// The same of memory, in percent of all memory
    #[arg(long = "memory-thresholds", env = "GPUMON_TOP_MEMORY_THRESHOLDS", value_name = "LOW,HIGH", default_value = typed(Self::default().memory), value_parser = parse_pair)]
    pub(crate) memory: [u32; 2],

    /// The same of the temperature, in percent of the slowdown temperature
    #[arg(long = "temperature-thresholds", env = "GPUMON_TOP_TEMPERATURE_THRESHOLDS", value_name = "LOW,HIGH", default_value = typed(Self::default().temperature), value_parser = parse_pair)]
    pub(crate) temperature: [u32; 2],

    /// The same of power, in percent of the power limit
    #[arg(long = "power-thresholds", env = "GPUMON_TOP_POWER_THRESHOLDS", value_name = "LOW,HIGH", default_value = typed(Self::default().power), value_parser = parse_pair)]
    pub(crate) power: [u32; 2],
}

impl Default for Thresholds {
    /// Those of the catalogue, for an overview's fields.
    fn default() -> Self {
        let of = |id| GPU_FIELDS.iter().find(|field| field.id == id)?.load;
        let [utilization, memory, power, temperature] =
            OVERVIEW.map(|id| of(id).expect("what an overview shows has thresholds"));
        Self {
            utilization,
            memory,
            temperature,
            power,
        }
    }
}

/// The load by reading; light where a reading or its limit is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Loads {
    pub(crate) utilization: Load,
    pub(crate) memory: Load,
    pub(crate) temperature: Load,
    pub(crate) power: Load,
}

impl Loads {
    pub(crate) fn of_gpu(gpu: &GpuSample, board: Option<&Gpu>, thresholds: &Thresholds) -> Self {
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
            utilization: Load::of(busy.map(|percent| percent / 100.0), thresholds.utilization),
            memory: Load::of(taken_share(gpu), thresholds.memory),
            temperature: Load::of(
                of(gpu.temperature.gpu_celsius.value(), slowdown),
                thresholds.temperature,
            ),
            power: Load::of(
                of(gpu.power.draw_watts.value(), gpu.power.limit_watts.value()),
                thresholds.power,
            ),
        }
    }

    /// Of a part, which has no temperature and power of its own.
    pub(crate) fn of_part(part: &MigSample, thresholds: &Thresholds) -> Self {
        let busy = part.activity.value().and_then(|activity| {
            let graphics = activity.graphics_percent.value();
            activity.sm_percent.value().or(graphics)
        });
        Self {
            utilization: Load::of(busy.map(|percent| percent / 100.0), thresholds.utilization),
            memory: Load::of(
                share(
                    part.memory.used_bytes.value(),
                    part.memory.total_bytes.value(),
                ),
                thresholds.memory,
            ),
            ..Self::default()
        }
    }
}

/// The columns of what [`busy`] says with a mark, and without.
pub(crate) const BUSY_WIDTH_WITH_SM: usize = "SM 100 %".len();
pub(crate) const BUSY_WIDTH: usize = "100 %".len();

/// `93 %`: the time in which anything ran. The driver does not tell it of a GPU that is divided: there it is `SM 45 %`,
/// the share of the multiprocessors that the hardware counts as active.
pub(crate) fn busy(gpu: &GpuSample) -> String {
    match (
        gpu.utilization.gpu_percent.value(),
        sm(gpu.activity.value()),
    ) {
        (Some(percent), _) => format!("{percent:.0} %"),
        (None, Some(percent)) => from_sm_activity(percent),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Returns the use of a part of a GPU: that of its multiprocessors, or else `45 %`, the time in
/// which the dies of a partition of AMD were busy.
pub(crate) fn of_part(activity: &Reading<Activity>) -> String {
    let activity = activity.value();
    let graphics = activity.and_then(|activity| activity.graphics_percent.value());
    match (sm(activity), graphics) {
        (Some(percent), _) => from_sm_activity(percent),
        (None, Some(percent)) => format!("{percent:.0} %"),
        (None, None) => ABSENT.to_owned(),
    }
}

/// Whether a GPU's utilization is absent, and its multiprocessors stand in for it.
pub(crate) fn is_sm_activity(gpu: &GpuSample) -> bool {
    gpu.utilization.gpu_percent.value().is_none() && sm(gpu.activity.value()).is_some()
}

fn from_sm_activity(percent: f64) -> String {
    format!("SM {percent:.0} %")
}

fn sm(activity: Option<&Activity>) -> Option<f64> {
    activity?.sm_percent.value().copied()
}

/// `692/700 W`; without the limit where that is not known.
pub(crate) fn draw_of(watts: f64, limit: Option<f64>) -> String {
    let limit = limit.map_or_else(String::new, |limit| format!("/{limit:.0}"));
    format!("{watts:.0}{limit} W")
}

const GIB: f64 = (1u64 << 30) as f64;

/// `8.5`, `78.2`, `130.0`: what is in use, in GiB without the unit, so that points stand below each other.
pub(crate) fn used(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / GIB)
}

/// `22.5`, `80.0`, `141`: all that there is, in GiB without the unit.
pub(crate) fn total(bytes: u64) -> String {
    match bytes as f64 / GIB {
        large if large >= 99.95 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    }
}

/// `78.2/140 GiB`; without the total where that is not known.
pub(crate) fn used_of(bytes: u64, of: Option<u64>) -> String {
    let of = of.map_or_else(String::new, |all| format!("/{}", total(all)));
    format!("{}{of} GiB", used(bytes))
}

/// The share that is in use, from 0 to 1; `None` where one of both is not known.
pub(crate) fn share(used: Option<&u64>, total: Option<&u64>) -> Option<f64> {
    used.zip(total)
        .filter(|(_, total)| **total > 0)
        .map(|(used, total)| *used as f64 / *total as f64)
}

/// Returns the share that is taken, from 0 to 1, of unified memory also by the rest of the system;
/// `None` if it is not known.
pub(crate) fn taken_share(gpu: &GpuSample) -> Option<f64> {
    let memory = &gpu.memory;
    let (used, total) = (memory.used_bytes.value(), memory.total_bytes.value());
    match gpu.memory_kind {
        MemoryKind::Device => share(used, total),
        MemoryKind::Unified => share(memory.free_bytes.value(), total).map(|free| 1.0 - free),
    }
}

/// Returns a note about memory that the GPU shares with the CPU.
pub(super) fn unified_phrase(gpu: &GpuSample) -> Option<Phrase> {
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
                total(*bytes)
            )
        },
    );
    Some(Phrase::new(Level::Quiet, short, long))
}

/// A reading of the GPUs that have it, together.
pub(crate) struct Total {
    pub(crate) count: usize,
    pub(crate) sum: f64,
    /// The sum of the limits; `None` if a GPU has none.
    limit: Option<f64>,
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

    /// Returns the share of the limit.
    pub(crate) fn share(&self) -> Option<f64> {
        let limit = self.limit.filter(|limit| *limit > 0.0);
        limit.map(|limit| self.sum / limit)
    }
}

/// Returns utilization, memory and power of GPUs together, such as `63 %`, `512.3/1128 GiB` and
/// `3200/5600 W`.
pub(crate) fn add_up_gpus(gpus: &[&GpuSample]) -> [(Total, String); 3] {
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
    let used = used_of(memory.sum as u64, memory.limit.map(|total| total as u64));
    let draw = draw_of(power.sum, power.limit);
    [(busy, percent), (memory, used), (power, draw)]
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use crate::table::examples;

    use super::*;

    #[test]
    fn each_reading_is_compared_with_its_own_limit() {
        let mut gpu = examples::sample(1).gpus.remove(0);
        let mut board = examples::inventory(1, "NVIDIA H200").gpus.remove(0);
        gpu.utilization.gpu_percent = Reading::Now(9.9);
        (gpu.memory.used_bytes, gpu.memory.total_bytes) = (Reading::Now(80), Reading::Now(100));
        gpu.temperature.gpu_celsius = Reading::Now(64.0);
        board.board.thresholds.slowdown_celsius = Reading::Now(90.0);
        (gpu.power.draw_watts, gpu.power.limit_watts) = (Reading::Now(69.0), Reading::Now(70.0));
        let loads = |gpu: &GpuSample, thresholds| Loads::of_gpu(gpu, Some(&board), &thresholds);
        let (light, moderate, heavy) = (Load::Light, Load::Moderate, Load::Heavy);
        let usual = Loads {
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
            Loads {
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

    #[test]
    fn all_that_there_is_has_three_digits() {
        assert_eq!(
            [22.5, 80.0, 140.4].map(|gib| total((gib * GIB) as u64)),
            ["22.5", "80.0", "140"]
        );
        assert_eq!(
            [0.5, 71.5, 113.8].map(|gib| used((gib * GIB) as u64)),
            ["0.5", "71.5", "113.8"]
        );
    }
}
