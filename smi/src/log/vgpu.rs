//! The capabilities of a host of virtual GPUs.

use gpumon_probe::vendor::nvml::query::{Answer, Query as Q};

use super::{
    format::{enabled, supported},
    item::{Item, SAME, group, number},
};

/// The board's capabilities, which are shown only on vGPU hosts.
pub(super) static CAPABILITIES: &[Item] = &[group("vGPU Device Capability", SAME)
    .when(|at| is_host(&at.ask(Q::VirtualizationMode)))
    .holds(&[
        number(
            "Fractional Multi-vGPU",
            "fractional_multiVgpu",
            Q::VgpuCapability(0),
            0,
            supported,
        ),
        number(
            "Heterogeneous Time-Slice Profiles",
            "heterogeneous_timeSlice_profile",
            Q::VgpuCapability(1),
            0,
            supported,
        ),
        number(
            "Heterogeneous Time-Slice Sizes",
            "heterogeneous_timeSlice_sizes",
            Q::VgpuCapability(2),
            0,
            supported,
        ),
        number(
            "Homogeneous Placements",
            SAME,
            Q::VgpuCapability(9),
            0,
            supported,
        ),
        number(
            "MIG Time-Slicing",
            "mig_timeSlicing",
            Q::VgpuCapability(10),
            0,
            supported,
        ),
        number(
            "MIG Time-Slicing Mode",
            "mig_timeSlicing_mode",
            Q::VgpuCapability(11),
            0,
            enabled,
        ),
    ])];

/// Returns `true` if an answer to [`Q::VirtualizationMode`] is that of a vGPU host.
pub(super) fn is_host(mode: &Answer) -> bool {
    matches!(mode.as_ref().ok().and_then(|mode| mode.at(0)), Some(3 | 4))
}
