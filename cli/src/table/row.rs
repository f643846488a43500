//! One GPU, or one part of a GPU, as text, before it is laid out.

use anstyle::Style;
use gpumon_probe::model::{Activity, GpuSample, Health, Reading};

use super::View;

use crate::describe::{self, Context, Loads, Phrase};
use crate::terminal::{
    Layout,
    line::printable,
    style::{DIM, STRONG, UTILIZATION},
    units::{ABSENT, three_digits, whole},
};

/// The cells of a line. Numbers are split at what they are aligned on.
pub(super) struct Row {
    pub(super) index: String,
    pub(super) name: String,
    /// What it is busy with: the GPU's utilization, a part's multiprocessors.
    pub(super) busy: String,
    pub(super) used: String,
    pub(super) total: String,
    pub(super) memory_share: Option<f64>,
    pub(super) temperature: String,
    pub(super) draw: String,
    pub(super) limit: String,
    pub(super) loads: Loads,
    /// What wide terminals show, too; each empty where it is absent.
    pub(super) extras: [String; EXTRAS],
    pub(super) past: Vec<(u64, f64)>,
    /// What is to be said of it, what matters most first.
    pub(super) words: Vec<Phrase>,
    /// Whether its values are old ones.
    pub(super) is_stale: bool,
    pub(super) is_part: bool,
}

/// How many [`Row::extras`] there are.
pub(super) const EXTRAS: usize = 7;

pub(super) fn of_gpu(gpu: &GpuSample, view: &View<'_>, layout: Layout) -> Row {
    let known = view
        .inventory
        .gpus
        .iter()
        .find(|known| known.index == gpu.index);
    let name = describe::full_name(known.map(|known| &known.name));
    let (used, total) = (
        gpu.memory.used_bytes.value(),
        gpu.memory.total_bytes.value(),
    );
    Row {
        index: gpu.index.to_string(),
        name: printable(&name, layout),
        busy: describe::busy(gpu),
        used: used.map_or_else(|| ABSENT.to_owned(), |bytes| describe::used(*bytes)),
        total: total.map_or_else(String::new, |bytes| describe::total(*bytes)),
        memory_share: describe::share(used, total),
        temperature: whole(&gpu.temperature.gpu_celsius, degrees(layout)),
        draw: gpu
            .power
            .draw_watts
            .value()
            .map_or_else(|| ABSENT.to_owned(), |watts| format!("{watts:.0}")),
        limit: gpu
            .power
            .limit_watts
            .value()
            .map_or_else(String::new, |watts| format!("{watts:.0}")),
        loads: Loads::of_gpu(gpu, known, &view.thresholds),
        extras: extras(gpu, layout),
        past: view.past.of_gpu(gpu),
        words: phrases(gpu, view, layout),
        is_stale: gpu.health != Health::Ok,
        is_part: false,
    }
}

/// What the columns of a line are painted in.
impl Row {
    pub(super) fn style(&self, style: Style) -> Style {
        if self.is_stale { DIM } else { style }
    }

    pub(super) const NAME: Style = STRONG;
    pub(super) const PAST: Style = UTILIZATION;
}

/// What is to be said of a GPU, as this terminal can show it.
pub(super) fn phrases(gpu: &GpuSample, view: &View<'_>, layout: Layout) -> Vec<Phrase> {
    let shown = |text: String| {
        printable(
            &if layout.unicode {
                text
            } else {
                text.replace('–', "-")
            },
            layout,
        )
    };
    let context = Context {
        now_ms: view.sample.at_ms,
        is_one_shot: view.is_one_shot,
    };
    let phrases = describe::of_gpu(gpu, context).into_iter();
    phrases
        .map(|phrase| Phrase {
            short: shown(phrase.short),
            long: shown(phrase.long),
            ..phrase
        })
        .collect()
}

fn degrees(layout: Layout) -> &'static str {
    if layout.unicode { "°C" } else { "C" }
}

fn extras(gpu: &GpuSample, layout: Layout) -> [String; EXTRAS] {
    let percent = |word: &str, reading: Option<&Reading<f64>>| {
        reading
            .and_then(Reading::value)
            .map_or_else(String::new, |value| format!("{word} {value:>3.0} %"))
    };
    let activity: Option<&Activity> = gpu.activity.value();
    let memory = &gpu.temperature.memory_celsius;
    [
        percent("SM", activity.map(|activity| &activity.sm_percent)),
        percent("tensor", activity.map(|activity| &activity.tensor_percent)),
        gpu.clocks
            .sm_mhz
            .value()
            .map_or_else(String::new, |mhz| format!("{mhz:>4} MHz")),
        memory.value().map_or_else(String::new, |value| {
            format!("memory {value:.0} {}", degrees(layout))
        }),
        percent("fan", Some(&gpu.fan_percent)),
        describe::format_codec(gpu).unwrap_or_default(),
        format_pcie(gpu),
    ]
}

/// Formats generation and width of the PCIe link, and its traffic: `PCIe 5x16 1.24 out 0.30 in
/// GB/s`.
fn format_pcie(gpu: &GpuSample) -> String {
    let rate = |bytes: &f64| three_digits(bytes / 1e9);
    let pcie = &gpu.pcie;
    let traffic = (
        pcie.tx_bytes_per_second.value(),
        pcie.rx_bytes_per_second.value(),
    );
    let traffic = match traffic {
        (Some(sent), Some(received)) => {
            format!("{:>4} out {:>4} in GB/s", rate(sent), rate(received))
        }
        _ => String::new(),
    };
    let parts = [describe::format_pcie_link(gpu).unwrap_or_default(), traffic];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("PCIe {}", parts.join(" "))
}
