//! What a host of virtual GPUs can do.

use gpumon_probe::vendor::nvml::query::{Answer, Query};

use super::{
    format::{enabled, supported},
    item::{Item, group, value},
};

/// The board's capabilities; hosts alone show them.
pub(super) static CAPABILITIES: &[Item] = &[group(
    "vGPU Device Capability",
    "vgpu_device_capability",
    &[
        value("Fractional Multi-vGPU", "fractional_multiVgpu", |at| at.format(Query::VgpuCapability(0), 0, supported)),
        value("Heterogeneous Time-Slice Profiles", "heterogeneous_timeSlice_profile", |at| {
            at.format(Query::VgpuCapability(1), 0, supported)
        }),
        value("Heterogeneous Time-Slice Sizes", "heterogeneous_timeSlice_sizes", |at| {
            at.format(Query::VgpuCapability(2), 0, supported)
        }),
        value("Homogeneous Placements", "homogeneous_placements", |at| {
            at.format(Query::VgpuCapability(9), 0, supported)
        }),
        value("MIG Time-Slicing", "mig_timeSlicing", |at| at.format(Query::VgpuCapability(10), 0, supported)),
        value("MIG Time-Slicing Mode", "mig_timeSlicing_mode", |at| at.format(Query::VgpuCapability(11), 0, enabled)),
    ],
)
.when(|at| is_host(&at.ask(Query::VirtualizationMode)))];

/// Whether the answer to [`Query::VirtualizationMode`] is that of a host of virtual GPUs.
pub(super) fn is_host(mode: &Answer) -> bool {
    matches!(mode.as_ref().ok().and_then(|mode| mode.at(0)), Some(3 | 4))
}
