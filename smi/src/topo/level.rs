//! How far apart two devices are on PCIe.

/// From near to far, as `nvmlGpuTopologyLevel_t` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Internal,
    Single,
    Multiple,
    HostBridge,
    Node,
    System,
}

/// The levels that `-n` knows.
pub(super) const TYPED: &[&str] = &["0", "1", "2", "3", "4", "5"];

impl Level {
    /// The level of a number of `nvmlGpuTopologyLevel_t`.
    pub(super) fn of(number: i128) -> Option<Self> {
        match number {
            0 => Some(Self::Internal),
            10 => Some(Self::Single),
            20 => Some(Self::Multiple),
            30 => Some(Self::HostBridge),
            40 => Some(Self::Node),
            50 => Some(Self::System),
            _ => None,
        }
    }

    /// The level that `-n` counts from 0 to 5, and its number in NVML.
    pub(super) fn typed(number: i64) -> Option<(Self, u32)> {
        let number = u32::try_from(number).ok()?.checked_mul(10)?;
        Self::of(i128::from(number)).map(|level| (level, number))
    }

    /// As the matrix writes it.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Internal | Self::Single => "PIX",
            Self::Multiple => "PXB",
            Self::HostBridge => "PHB",
            Self::Node => "NODE",
            Self::System => "SYS",
        }
    }

    /// What lies between two GPUs at most.
    pub(super) fn between(self) -> &'static str {
        match self {
            Self::Internal => "by way of an single on-board PCIe switch",
            Self::Single => "by way of a single PCIe switch",
            Self::Multiple => "by way of potentially multiple PCIe switches",
            Self::HostBridge => "by the same PCIe host bridge",
            Self::Node => "by way of an on-CPU interconnect between PCIe host bridges",
            Self::System => "by way of an SMP interconnect link between NUMA nodes",
        }
    }

    /// The way between two GPUs.
    pub(super) fn way(self) -> &'static str {
        match self {
            Self::Internal => "an single on-board PCIe switch",
            Self::Single => "a single PCIe switch",
            Self::Multiple => "multiple PCIe switches",
            Self::HostBridge => "a PCIe host bridge",
            Self::Node => "an on-CPU interconnect link between PCIe host bridges",
            Self::System => "an SMP interconnect link between NUMA nodes",
        }
    }
}
