//! Further readings, which are shown in wide lines. Reasons for reduced clocks are shown as phrases
//! instead.

use gpumon_probe::model::{Absence, Activity, GpuDetails, GpuSample, Reading};

use crate::{
    describe,
    terminal::{
        glyphs::Glyphs,
        units::{ABSENT, format_energy, format_three_digits},
    },
};

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

    /// Formats the value. The result is empty if the GPU has no such value, does not respond, or
    /// has not been read yet. The result is a dash if the value cannot be read at present.
    pub(super) fn read(
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
