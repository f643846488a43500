//! Queries about a GPU whose answers never change while a process lives.

use crate::vendor::nvml::query::Query as Q;

/// Returns `true` if the answer stays the same for as long as the process lives. Settings do not,
/// nor does anything that a link or a driver option can change.
pub(in crate::vendor::nvml) fn has_constant_answer(query: Q) -> bool {
    matches!(
        query,
        Q::Name
            | Q::Uuid
            | Q::Serial
            | Q::BusId
            | Q::PciInfo
            | Q::Brand
            | Q::Architecture
            | Q::ComputeCapability
            | Q::MinorNumber
            | Q::MultiGpuBoard
            | Q::BoardId
            | Q::BoardPartNumber
            | Q::GpuPartNumber
            | Q::ModuleId
            | Q::Pdi
            | Q::PlatformInfo
            | Q::VbiosVersion
            | Q::InforomImageVersion
            | Q::InforomVersion(_)
            | Q::GspFirmwareVersion
            | Q::SupportedThrottleReasons
            | Q::TemperatureThreshold(_)
            | Q::DefaultPowerLimit
            | Q::PowerLimitConstraints
            | Q::MaxClock(_)
            | Q::DefaultApplicationsClock(_)
            | Q::SupportedMemoryClocks
            | Q::SupportedGraphicsClocks(_)
            | Q::GpuMaxPcieGeneration
            | Q::MaxPcieGeneration
            | Q::MaxPcieWidth
            | Q::HostMaxPcieGeneration
            | Q::GpuInstanceProfile(_)
            | Q::GpuInstanceProfileName(_)
            | Q::BridgeChips
            | Q::CpuAffinity
            | Q::MemoryAffinity
            | Q::NumaNode
            | Q::NvLinkCapability(..)
            | Q::NvLinkRemoteBusId(_)
            | Q::CommonAncestor(_)
            | Q::NearestGpus(_)
            | Q::MigInstance
            | Q::MigAttributes
    )
}
