//! The text of one GPU, MIG device, or total before it is laid out.

use gpumon_probe::model::{Gpu, GpuDetails, GpuSample, Health, MigDevice, MigSample};

use super::further::Further;
use crate::{
    describe::{self, Level, Load, Loads, Phrase, Thresholds, Total, add_up_gpus},
    terminal::{
        Layout,
        line::printable,
        units::{ABSENT, energy, whole},
    },
};

/// The context of all lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) thresholds: Thresholds,
    pub(crate) layout: Layout,
    pub(crate) phrases: describe::Context,
}

/// The cells of a line. Absent ones are empty.
#[derive(Debug, Default)]
pub(crate) struct GpuCells {
    pub(super) index: String,
    pub(super) name: String,
    /// The utilization of a GPU, or the SM activity of a MIG device.
    pub(super) utilization: String,
    pub(super) used: String,
    pub(super) total: String,
    pub(super) memory_share: Option<f64>,
    pub(super) temperature: String,
    pub(super) draw: String,
    pub(super) limit: String,
    pub(super) further: [String; Further::ALL.len()],
    pub(super) loads: Loads,
    /// Phrases worth showing, the most important first.
    pub(super) words: Vec<Phrase>,
    /// Whether the values are from the past.
    pub(super) is_stale: bool,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    #[default]
    Gpu,
    Part,
    Total,
}

impl GpuCells {
    pub(crate) fn of_gpu(
        gpu: &GpuSample,
        board: Option<&Gpu>,
        details: Option<&GpuDetails>,
        context: &Context,
    ) -> Self {
        let layout = context.layout;
        let name = describe::full_name(board.map(|board| &board.name));
        let power = &gpu.power;
        let watts = |watts: Option<&f64>| watts.map(|watts| format!("{watts:.0}"));
        Self {
            index: gpu.index.to_string(),
            name: printable(&name, layout),
            utilization: describe::busy(gpu),
            temperature: whole(&gpu.temperature.gpu_celsius, layout.glyphs.celsius()),
            draw: watts(power.draw_watts.value()).unwrap_or_else(|| ABSENT.to_owned()),
            limit: watts(power.limit_watts.value()).unwrap_or_default(),
            further: Further::ALL.map(|further| further.read(gpu, details, layout.glyphs)),
            loads: Loads::of_gpu(gpu, board, &context.thresholds),
            words: describe_gpu(gpu, context),
            is_stale: gpu.health != Health::Ok,
            ..Self::of_memory(
                gpu.memory.used_bytes.value(),
                gpu.memory.total_bytes.value(),
            )
        }
    }

    /// Returns the cells of a MIG device.
    pub(crate) fn of_part(
        part: &MigSample,
        device: Option<&MigDevice>,
        gpu: &GpuSample,
        context: &Context,
    ) -> Self {
        let profile = device
            .and_then(|device| device.profile.value())
            .map_or("MIG", String::as_str);
        let name = device.map_or_else(
            || profile.to_owned(),
            |device| format!("{} {profile}", describe::label(gpu.index, device)),
        );
        Self {
            name: printable(&name, context.layout),
            utilization: describe::of_part(&part.activity),
            loads: Loads::of_part(part, &context.thresholds),
            is_stale: gpu.health != Health::Ok,
            kind: Kind::Part,
            ..Self::of_memory(
                part.memory.used_bytes.value(),
                part.memory.total_bytes.value(),
            )
        }
    }

    /// Returns the cells of all GPUs together: the mean utilization, and sums. If some GPUs do not
    /// respond or lack a value, the words contain the number of those included.
    pub(crate) fn of_total(gpus: &[GpuSample], thresholds: &Thresholds) -> Self {
        let well: Vec<_> = gpus.iter().filter(|gpu| gpu.health == Health::Ok).collect();
        let [(busy, percent), (memory, _), (power, _)] = add_up_gpus(&well);
        let joules = Total::new(&well, |gpu| {
            Some((*gpu.power.energy_joules_total.value()?, None))
        });
        let or_dash = |total: &Total, text: String| match total.count {
            0 => ABSENT.to_owned(),
            _ => text,
        };
        let least = [&busy, &memory, &power].map(|total| total.count);
        let least = least.into_iter().min().unwrap_or(0);
        let count = format!("{least} of {} GPUs", gpus.len());
        let note = Phrase {
            short: count.clone(),
            long: count,
            level: Level::Quiet,
        };
        let load = |total: &Total, thresholds| Load::of(total.share(), thresholds);
        let bytes = |bytes: f64| bytes as u64;
        let mut cells = Self {
            utilization: or_dash(&busy, percent),
            draw: or_dash(&power, format!("{:.0}", power.sum)),
            limit: power
                .limit
                .map(|limit| format!("{limit:.0}"))
                .unwrap_or_default(),
            loads: Loads {
                utilization: load(&busy, thresholds.utilization),
                memory: load(&memory, thresholds.memory),
                temperature: Load::default(),
                power: load(&power, thresholds.power),
            },
            words: (least < gpus.len()).then_some(note).into_iter().collect(),
            kind: Kind::Total,
            ..Self::of_memory(
                (memory.count > 0).then_some(bytes(memory.sum)).as_ref(),
                memory.limit.map(bytes).as_ref(),
            )
        };
        if joules.count == gpus.len() {
            let place = Further::ALL
                .iter()
                .position(|further| *further == Further::Energy);
            cells.further[place.expect("all readings are in the list")] = energy(joules.sum);
        }
        cells
    }

    fn of_memory(used: Option<&u64>, total: Option<&u64>) -> Self {
        Self {
            used: used.map_or_else(|| ABSENT.to_owned(), |bytes| describe::used(*bytes)),
            total: total.map_or_else(String::new, |bytes| describe::total(*bytes)),
            memory_share: describe::share(used, total),
            ..Self::default()
        }
    }
}

/// Returns the phrases worth showing about a GPU, in characters that the terminal supports.
pub(crate) fn describe_gpu(gpu: &GpuSample, context: &Context) -> Vec<Phrase> {
    let layout = context.layout;
    let shown = |text: &str| printable(&layout.glyphs.replace_dashes(text), layout);
    let phrases = describe::of_gpu(gpu, context.phrases).into_iter();
    phrases
        .map(|phrase| Phrase {
            short: shown(&phrase.short),
            long: shown(&phrase.long),
            ..phrase
        })
        .collect()
}
