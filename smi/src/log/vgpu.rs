//! Items for the capabilities of a vGPU host.

use gpumon_probe::vendor::nvml::query::{Answer, Query as Q};

use super::{
    format::{format_enabled, format_supported},
    item::{Item, TITLE_AS_TAG, group_item, number_item},
};

/// The items for the board's vGPU capabilities, which are shown only on vGPU hosts.
pub(super) static CAPABILITIES: &[Item] = &[group_item("vGPU Device Capability", TITLE_AS_TAG)
    .show_when(|at| is_vgpu_host(&at.run_query(Q::VirtualizationMode)))
    .with_items(&[
        number_item(
            "Fractional Multi-vGPU",
            "fractional_multiVgpu",
            Q::VgpuCapability(0),
            0,
            format_supported,
        ),
        number_item(
            "Heterogeneous Time-Slice Profiles",
            "heterogeneous_timeSlice_profile",
            Q::VgpuCapability(1),
            0,
            format_supported,
        ),
        number_item(
            "Heterogeneous Time-Slice Sizes",
            "heterogeneous_timeSlice_sizes",
            Q::VgpuCapability(2),
            0,
            format_supported,
        ),
        number_item(
            "Homogeneous Placements",
            TITLE_AS_TAG,
            Q::VgpuCapability(9),
            0,
            format_supported,
        ),
        number_item(
            "MIG Time-Slicing",
            "mig_timeSlicing",
            Q::VgpuCapability(10),
            0,
            format_supported,
        ),
        number_item(
            "MIG Time-Slicing Mode",
            "mig_timeSlicing_mode",
            Q::VgpuCapability(11),
            0,
            format_enabled,
        ),
    ])];

/// Returns `true` if `mode`, an answer to [`Q::VirtualizationMode`], is that of a vGPU host.
pub(super) fn is_vgpu_host(mode: &Answer) -> bool {
    matches!(
        mode.as_ref().ok().and_then(|mode| mode.number_at(0)),
        Some(3 | 4)
    )
}
