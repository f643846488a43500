//! Further readings, shown in wide lines. The reasons for reduced clocks follow as words.

use gpumon_probe::model::{Absence, Activity, GpuDetails, GpuSample, Reading};

use crate::{
    describe,
    terminal::{
        glyphs::Glyphs,
        units::{ABSENT, energy, three_digits},
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    SmActivity,
    TensorActivity,
    SmClock,
    MemoryTemperature,
    Fan,
    PerformanceState,
    /// Uncorrected errors since the driver was loaded.
    Ecc,
    /// Energy since the driver was loaded.
    Energy,
    /// Utilization of encoder and decoder.
    Codec,
    /// Generation and width of the link, and its traffic.
    Pcie,
}

impl Further {
    /// All further readings, the most important first. The last ones are omitted first.
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

    /// Returns the label of the reading, which is empty if the unit makes it clear.
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

    /// Returns the width of common values, which is reserved so that nothing moves.
    pub(super) fn common_width(self) -> usize {
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

    /// Returns the value as text. The text is empty if this GPU has no such value, does not
    /// respond, or has not been read yet, and a dash if the value cannot be read at present.
    pub(super) fn read(
        self,
        gpu: &GpuSample,
        details: Option<&GpuDetails>,
        glyphs: Glyphs,
    ) -> String {
        let percent = |reading: &Reading<f64>| as_text(reading, |value| format!("{value:.0} %"));
        let activity = |part: fn(&Activity) -> &Reading<f64>| match &gpu.activity {
            Reading::Absent(reason) => of_absence(reason),
            Reading::Now(all) | Reading::Earlier { value: all, .. } => percent(part(all)),
        };
        match self {
            Self::SmActivity => activity(|activity| &activity.sm_percent),
            Self::TensorActivity => activity(|activity| &activity.tensor_percent),
            Self::SmClock => as_text(&gpu.clocks.sm_mhz, |mhz| format!("{mhz} MHz")),
            Self::MemoryTemperature => as_text(&gpu.temperature.memory_celsius, |celsius| {
                format!("{celsius:.0} {}", glyphs.celsius())
            }),
            Self::Fan => percent(&gpu.fan_percent),
            Self::PerformanceState => as_text(&gpu.performance_state, |state| format!("P{state}")),
            Self::Ecc => details.map_or_else(String::new, |details| {
                as_text(&details.ecc.volatile.uncorrected_total, ToString::to_string)
            }),
            Self::Energy => as_text(&gpu.power.energy_joules_total, |joules| energy(*joules)),
            Self::Codec => describe::format_codec(gpu).unwrap_or_default(),
            Self::Pcie => format_pcie(gpu),
        }
    }
}

fn as_text<T>(reading: &Reading<T>, format: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Now(value) | Reading::Earlier { value, .. } => format(value),
        Reading::Absent(reason) => of_absence(reason),
    }
}

fn of_absence(reason: &Absence) -> String {
    match reason {
        Absence::NotSupported
        | Absence::NotReadYet
        | Absence::GpuLost
        | Absence::Asleep
        | Absence::NoAnswer => String::new(),
        _ => ABSENT.to_owned(),
    }
}

/// Formats the generation and width of the PCIe link, and its traffic, such as `5x16 1.24 out 0.30
/// in GB/s`.
fn format_pcie(gpu: &GpuSample) -> String {
    let pcie = &gpu.pcie;
    let (sent, received) = (
        pcie.tx_bytes_per_second.value(),
        pcie.rx_bytes_per_second.value(),
    );
    let rate = |bytes: &f64| three_digits(bytes / 1e9);
    let traffic = sent
        .zip(received)
        .map(|(sent, received)| format!("{:>4} out {:>4} in GB/s", rate(sent), rate(received)));
    let parts = [describe::format_pcie_link(gpu), traffic];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
