//! What never changes about a simulated board.

use crate::{
    model::{Board, MaxClocks, PowerLimits, Reading, Thresholds},
    vendor::sim::{GpuIdentity, MAX_SM_MHZ, MAX_VIDEO_MHZ, MEMORY_MHZ},
};

use super::where_supported;

pub(super) fn read(identity: &GpuIdentity) -> Board {
    let (major, minor) = identity.architecture.compute_capability();
    // A board for players has no serial number that software could read.
    let on_a_label = |text: &String| where_supported(!identity.geforce, text.clone());
    let celsius = |degrees: u32| Reading::Now(f64::from(degrees));
    Board {
        serial: on_a_label(&identity.serial),
        part_number: on_a_label(&identity.part_number),
        vbios_version: Reading::Now(identity.vbios_version.clone()),
        architecture: Reading::Now(identity.architecture.name().to_owned()),
        compute_capability: Reading::Now(format!("{major}.{minor}")),
        cores: Reading::Now(identity.cores),
        memory_bus_bits: Reading::Now(identity.memory_bus_bits),
        minor_number: Reading::Now(identity.index),
        numa_node: Reading::Now(identity.numa_node),
        pcie_max_generation: Reading::Now(GpuIdentity::PCIE_GENERATION),
        pcie_max_width: Reading::Now(GpuIdentity::PCIE_WIDTH),
        max_clocks: MaxClocks {
            graphics_mhz: Reading::Now(MAX_SM_MHZ),
            sm_mhz: Reading::Now(MAX_SM_MHZ),
            memory_mhz: Reading::Now(MEMORY_MHZ),
            video_mhz: Reading::Now(MAX_VIDEO_MHZ),
        },
        power_limits: PowerLimits {
            default_watts: Reading::Now(identity.power_limit_watts),
            min_watts: Reading::Now(identity.lowest_limit_watts.round()),
            max_watts: Reading::Now(identity.power_limit_watts),
        },
        thresholds: Thresholds {
            shutdown_celsius: celsius(GpuIdentity::SHUTDOWN_CELSIUS),
            slowdown_celsius: celsius(GpuIdentity::SLOWDOWN_CELSIUS),
            memory_max_celsius: celsius(GpuIdentity::MEMORY_MAX_CELSIUS),
            gpu_max_celsius: celsius(GpuIdentity::GPU_MAX_CELSIUS),
        },
    }
}
