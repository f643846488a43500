//! Further readings of a GPU's line, where it is wide. Why clocks are reduced stands behind them in words.

use gpumon_probe::model::{Absence, GpuDetails, GpuSample, Reading};

use crate::{
    describe,
    terminal::units::energy,
    top::{glyphs::Glyphs, model::Model},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    SmClock,
    Fan,
    PerformanceState,
    MemoryTemperature,
    /// Errors since the driver was loaded that the hardware did not correct.
    Ecc,
    /// Since the driver was loaded.
    Energy,
    /// Generation and width of the link.
    Pcie,
    /// Encoder and decoder.
    Codec,
}

impl Further {
    /// The most important first; the others go first where there is less room.
    pub(super) const ALL: [Self; 8] = [
        Self::SmClock,
        Self::Fan,
        Self::PerformanceState,
        Self::MemoryTemperature,
        Self::Ecc,
        Self::Energy,
        Self::Pcie,
        Self::Codec,
    ];

    /// What its unit does not tell.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Fan => "fan ",
            Self::MemoryTemperature => "mem ",
            Self::Ecc => "ECC ",
            Self::Pcie => "PCIe ",
            Self::SmClock | Self::PerformanceState | Self::Energy | Self::Codec => "",
        }
    }

    pub(super) fn value_width(self) -> usize {
        match self {
            Self::PerformanceState | Self::Ecc => 3,
            Self::Fan | Self::Pcie => 5,
            Self::MemoryTemperature => 6,
            Self::SmClock | Self::Energy => 8,
            Self::Codec => "enc/dec 100/100 %".len(),
        }
    }

    pub(super) fn width(self) -> usize {
        self.label().len() + self.value_width()
    }

    pub(super) fn read(
        self,
        gpu: &GpuSample,
        details: Option<&GpuDetails>,
        glyphs: Glyphs,
    ) -> Reading<String> {
        match self {
            Self::SmClock => gpu.clocks.sm_mhz.clone().map(|mhz| format!("{mhz} MHz")),
            Self::Fan => gpu
                .fan_percent
                .clone()
                .map(|percent| format!("{percent:.0} %")),
            Self::PerformanceState => gpu
                .performance_state
                .clone()
                .map(|state| format!("P{state}")),
            Self::MemoryTemperature => {
                let celsius = gpu.temperature.memory_celsius.clone();
                celsius.map(|celsius| format!("{celsius:.0} {}", glyphs.celsius()))
            }
            Self::Ecc => details.map_or(Reading::Absent(Absence::NotReadYet), |details| {
                details
                    .ecc
                    .volatile
                    .uncorrected_total
                    .clone()
                    .map(|count| count.to_string())
            }),
            Self::Energy => gpu.power.energy_joules_total.clone().map(energy),
            Self::Pcie => or_unsupported(describe::format_pcie_link(gpu)),
            Self::Codec => or_unsupported(describe::format_codec(gpu)),
        }
    }

    /// Whether any of the boards can have it. One that is lost keeps its place.
    pub(super) fn is_supported(self, all: &[GpuSample], model: &Model) -> bool {
        let read = |gpu: &GpuSample| self.read(gpu, model.details(gpu.index), Glyphs::Ascii);
        all.iter()
            .any(|gpu| read(gpu).absence() != Some(&Absence::NotSupported))
    }
}

fn or_unsupported(text: Option<String>) -> Reading<String> {
    text.map_or(Reading::Absent(Absence::NotSupported), Reading::Now)
}
