//! The text of the cells of a GPU, MIG device, or total, before the cells are laid out.

use gpumon_probe::model::{
    Absence, Activity, Gpu, GpuDetails, GpuSample, Health, MigDevice, MigSample, Reading,
};

use crate::{
    describe::{self, Level, LoadLevel, LoadLevels, Phrase, Thresholds, Total, sum_gpu_readings},
    terminal::{
        Layout,
        line::make_printable,
        screen::Glyphs,
        units::{ABSENT, format_energy, format_optional, format_three_digits, format_whole_number},
    },
};

/// The context in which all lines are formatted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineContext {
    pub(crate) thresholds: Thresholds,
    pub(crate) layout: Layout,
    pub(crate) phrases: describe::Context,
}

/// The text of the cells in a line. Absent values are empty.
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
    pub(super) further: [String; FurtherReading::ALL.len()],
    pub(super) loads: LoadLevels,
    /// Phrases about the GPU's state, most important first.
    pub(super) words: Vec<Phrase>,
    /// A phrase about what limits the GPU. It is shown only if there is room next to the other
    /// phrases.
    pub(crate) limits: Option<Phrase>,
    /// Whether the values are old, rather than current readings.
    pub(super) is_stale: bool,
    pub(super) kind: CellsKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum CellsKind {
    #[default]
    Gpu,
    Part,
    Total,
}

impl GpuCells {
    pub(crate) fn from_gpu(
        gpu: &GpuSample,
        board: Option<&Gpu>,
        details: Option<&GpuDetails>,
        context: &LineContext,
    ) -> Self {
        let layout = context.layout;
        let name = describe::format_name_without_vendor(board.map(|board| &board.name));
        let power = &gpu.power;
        let watts = |watts: &f64| format!("{watts:.0}");
        Self {
            index: gpu.index.to_string(),
            name: make_printable(&name, layout),
            utilization: describe::format_utilization(gpu),
            temperature: format_whole_number(&gpu.temperature.gpu_celsius, layout.glyphs.celsius()),
            draw: format_optional(power.draw_watts.value(), watts),
            limit: power.limit_watts.value().map(watts).unwrap_or_default(),
            further: FurtherReading::ALL
                .map(|further| further.format_reading_value(gpu, details, layout.glyphs)),
            loads: LoadLevels::from_gpu(gpu, board, &context.thresholds),
            words: describe_gpu(gpu, context),
            is_stale: gpu.health != Health::Ok,
            ..Self::from_memory(
                gpu.memory.used_bytes.value(),
                gpu.memory.total_bytes.value(),
            )
        }
    }

    /// Returns the cells of a MIG device.
    pub(crate) fn from_mig_device(
        part: &MigSample,
        device: Option<&MigDevice>,
        gpu: &GpuSample,
        context: &LineContext,
    ) -> Self {
        let profile = device
            .and_then(|device| device.profile.value())
            .map_or("MIG", String::as_str);
        let name = match device {
            Some(_) => format!(
                "{} {profile}",
                describe::format_device_label(gpu.index, device)
            ),
            None => profile.to_owned(),
        };
        Self {
            name: make_printable(&name, context.layout),
            utilization: describe::format_mig_utilization(&part.activity),
            loads: LoadLevels::from_mig_device(part, &context.thresholds),
            is_stale: gpu.health != Health::Ok,
            kind: CellsKind::Part,
            ..Self::from_memory(
                part.memory.used_bytes.value(),
                part.memory.total_bytes.value(),
            )
        }
    }

    /// Returns the cells for the total of all GPUs: the mean utilization, and sums of the other
    /// values. If some GPUs do not respond or lack a value, a phrase states how many GPUs are
    /// included.
    pub(crate) fn from_total(gpus: &[GpuSample], thresholds: &Thresholds) -> Self {
        let well: Vec<_> = gpus.iter().filter(|gpu| gpu.health == Health::Ok).collect();
        let [(busy, percent), (memory, _), (power, _)] = sum_gpu_readings(&well);
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
        let load =
            |total: &Total, thresholds| LoadLevel::from_share(total.share_of_limit(), thresholds);
        let bytes = |bytes: f64| bytes as u64;
        let mut cells = Self {
            utilization: or_dash(&busy, percent),
            draw: or_dash(&power, format!("{:.0}", power.sum)),
            limit: power
                .limit
                .map(|limit| format!("{limit:.0}"))
                .unwrap_or_default(),
            loads: LoadLevels {
                utilization: load(&busy, thresholds.utilization),
                memory: load(&memory, thresholds.memory),
                temperature: LoadLevel::default(),
                power: load(&power, thresholds.power),
            },
            words: (least < gpus.len()).then_some(note).into_iter().collect(),
            kind: CellsKind::Total,
            ..Self::from_memory(
                (memory.count > 0).then_some(bytes(memory.sum)).as_ref(),
                memory.limit.map(bytes).as_ref(),
            )
        };
        if joules.count == gpus.len() {
            let place = FurtherReading::ALL
                .iter()
                .position(|further| *further == FurtherReading::Energy);
            cells.further[place.expect("the energy is one of the further readings")] =
                format_energy(joules.sum);
        }
        cells
    }

    fn from_memory(used: Option<&u64>, total: Option<&u64>) -> Self {
        Self {
            used: format_optional(used, |bytes| describe::format_used_memory(*bytes)),
            total: total.map_or_else(String::new, |bytes| describe::format_total_memory(*bytes)),
            memory_share: describe::used_memory_fraction(used, total),
            ..Self::default()
        }
    }
}

/// Returns the phrases to show about a GPU, using only characters that the terminal supports.
pub(crate) fn describe_gpu(gpu: &GpuSample, context: &LineContext) -> Vec<Phrase> {
    let layout = context.layout;
    let shown = |text: &str| make_printable(&layout.glyphs.replace_dashes(text), layout);
    let phrases = describe::list_gpu_phrases(gpu, context.phrases).into_iter();
    phrases
        .map(|phrase| Phrase {
            short: shown(&phrase.short),
            long: shown(&phrase.long),
            ..phrase
        })
        .collect()
}

/// A further reading, which is shown in wide lines. Reasons for reduced clocks are shown as phrases
/// instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FurtherReading {
    SmActivity,
    TensorActivity,
    SmClock,
    MemoryTemperature,
    Fan,
    PerformanceState,
    /// The number of uncorrected errors since the driver was loaded.
    Ecc,
    /// Energy since the driver was loaded.
    Energy,
    /// Utilization of the video encoder and decoder.
    Codec,
    /// Generation, width and traffic of the PCIe link.
    Pcie,
}

impl FurtherReading {
    /// All further readings, most important first. The last readings are omitted first.
    pub(super) const ALL: [Self; 10] = [
        Self::SmActivity,
        Self::TensorActivity,
        Self::SmClock,
        Self::MemoryTemperature,
        Self::Fan,
        Self::PerformanceState,
        Self::Ecc,
        Self::Energy,
        Self::Codec,
        Self::Pcie,
    ];

    /// Returns the reading's label, which is empty if the unit makes the meaning clear.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::SmActivity => "SM ",
            Self::TensorActivity => "tensor ",
            Self::MemoryTemperature => "memory ",
            Self::Fan => "fan ",
            Self::Ecc => "ECC ",
            Self::Pcie => "PCIe ",
            Self::SmClock | Self::PerformanceState | Self::Energy | Self::Codec => "",
        }
    }

    /// Returns the width of a typical value, which is reserved so that the other cells do not move.
    pub(super) fn typical_width(self) -> usize {
        let widest = match self {
            Self::SmActivity | Self::TensorActivity | Self::Fan => "100 %",
            Self::SmClock => "1980 MHz",
            Self::MemoryTemperature => "84 C",
            Self::PerformanceState => "P0",
            Self::Ecc => "0",
            Self::Energy => "12.3 kWh",
            Self::Codec => "enc/dec 0/0 %",
            Self::Pcie => "5x16",
        };
        widest.len()
    }

    /// Formats the value. The result is empty if the GPU has no such value, does not respond, or
    /// has not been read yet. The result is a dash if the value cannot be read at present.
    pub(super) fn format_reading_value(
        self,
        gpu: &GpuSample,
        details: Option<&GpuDetails>,
        glyphs: Glyphs,
    ) -> String {
        let percent =
            |reading: &Reading<f64>| format_reading(reading, |value| format!("{value:.0} %"));
        let activity = |part: fn(&Activity) -> &Reading<f64>| match &gpu.activity {
            Reading::Absent(reason) => format_absence(reason),
            Reading::Now(all) | Reading::Earlier { value: all, .. } => percent(part(all)),
        };
        match self {
            Self::SmActivity => activity(|activity| &activity.sm_percent),
            Self::TensorActivity => activity(|activity| &activity.tensor_percent),
            Self::SmClock => format_reading(&gpu.clocks.sm_mhz, |mhz| format!("{mhz} MHz")),
            Self::MemoryTemperature => format_reading(&gpu.temperature.memory_celsius, |celsius| {
                format!("{celsius:.0} {}", glyphs.celsius())
            }),
            Self::Fan => percent(&gpu.fan_percent),
            Self::PerformanceState => {
                format_reading(&gpu.performance_state, |state| format!("P{state}"))
            }
            Self::Ecc => details.map_or_else(String::new, |details| {
                format_reading(&details.ecc.volatile.uncorrected_total, ToString::to_string)
            }),
            Self::Energy => format_reading(&gpu.power.energy_joules_total, |joules| {
                format_energy(*joules)
            }),
            Self::Codec => describe::format_codec_utilization(gpu).unwrap_or_default(),
            Self::Pcie => format_pcie(gpu),
        }
    }
}

fn format_reading<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => format(value),
        Reading::Absent(reason) => format_absence(reason),
    }
}

fn format_absence(reason: &Absence) -> String {
    match reason {
        Absence::NotSupported
        | Absence::NotReadYet
        | Absence::GpuLost
        | Absence::Asleep
        | Absence::NoAnswer => String::new(),
        _ => ABSENT.to_owned(),
    }
}

/// Formats the generation, width and traffic of the PCIe link, such as `5x16 1.24 out 0.30 in
/// GB/s`.
fn format_pcie(gpu: &GpuSample) -> String {
    let pcie = &gpu.pcie;
    let (sent, received) = (
        pcie.tx_bytes_per_second.value(),
        pcie.rx_bytes_per_second.value(),
    );
    let rate = |bytes: &f64| format_three_digits(bytes / 1e9);
    let traffic = sent
        .zip(received)
        .map(|(sent, received)| format!("{:>4} out {:>4} in GB/s", rate(sent), rate(received)));
    let parts = [describe::format_pcie_link(gpu), traffic];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
