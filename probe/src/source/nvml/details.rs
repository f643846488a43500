//! What changes slowly about a GPU: which call gives which part.
//!
//! All of it but the NVLinks costs about 12 ms on an H200, most of it for the times of throttling.

use nvml_wrapper::{
    Device, Nvml,
    enum_wrappers::device::{Clock, ComputeMode as NvmlComputeMode, PerformancePolicy},
};
use nvml_wrapper_sys::bindings::{
    field_id::NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
    nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET as DRAIN_AND_RESET,
    nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_DRAIN_P2P as DRAIN_P2P,
    nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_GPU_RESET as GPU_RESET,
    nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_NODE_REBOOT as NODE_REBOOT,
    nvmlDeviceGpuRecoveryAction_s_NVML_GPU_RECOVERY_ACTION_NONE as NONE,
};

use super::{accounting, ask::Asker, ecc, fans, links::LinkReader, raw};
use crate::model::{
    Absence, ApplicationClocks, Bar1, ComputeMode, ConfidentialCompute, Fabric, FabricState, GpuDetails, Mode, Modes,
    Reading, RecoveryAction, ThrottledTimes,
};

/// Reads all of it; `mig` was read before.
pub(super) fn read(
    nvml: &Nvml,
    device: &Device<'_>,
    links: &mut LinkReader,
    mig: Reading<Mode>,
    asker: &mut Asker,
    details: &mut GpuDetails,
) {
    details.modes = modes(nvml, device, mig, asker);
    details.application_clocks = ApplicationClocks {
        graphics_mhz: asker.ask("graphics application clock", || device.applications_clock(Clock::Graphics)),
        memory_mhz: asker.ask("memory application clock", || device.applications_clock(Clock::Memory)),
    };
    details.requested_power_limit_watts =
        asker.ask("requested power limit", || device.power_management_limit()).map(|limit| f64::from(limit) / 1000.0);
    details.throttled = throttled(device, asker);
    details.ecc = ecc::errors(device, asker);
    details.retired_pages = ecc::retired_pages(device, asker);
    details.remapped_rows = ecc::remapped_rows(device, asker);
    details.bar1 = asker
        .ask("BAR1", || device.bar1_memory_info())
        .map(|bar1| Bar1 { total_bytes: bar1.total, used_bytes: bar1.used });
    details.pcie_replays_total = asker.ask("PCIe replays", || device.pcie_replay_counter()).map(u64::from);
    details.nvlinks = links.read(device, asker);
    details.fabric = fabric(device, asker);
    details.c2c_enabled = asker.ask("C2C", || raw::c2c_enabled(device));
    details.recovery_action = recovery_action(device, asker);
    details.fans = fans::read(device, asker);
    details.accounting = accounting::read(device, &details.modes.accounting, asker);
}

fn modes(nvml: &Nvml, device: &Device<'_>, mig: Reading<Mode>, asker: &mut Asker) -> Modes {
    Modes {
        persistence: asker.ask("persistence mode", || device.is_in_persistent_mode()),
        compute: asker.ask("compute mode", || device.compute_mode()).map(|mode| match mode {
            NvmlComputeMode::Default => ComputeMode::Default,
            NvmlComputeMode::ExclusiveThread | NvmlComputeMode::ExclusiveProcess => ComputeMode::ExclusiveProcess,
            NvmlComputeMode::Prohibited => ComputeMode::Prohibited,
        }),
        ecc: asker
            .ask("ECC mode", || device.is_ecc_enabled())
            .map(|mode| Mode { current: mode.currently_enabled, pending: mode.pending_enabled }),
        mig,
        accounting: asker.ask("accounting mode", || device.is_accounting_enabled()),
        display_active: asker.ask("display active", || device.is_display_active()),
        confidential_compute: asker
            .ask("confidential compute", || raw::confidential_compute(nvml))
            .map(|(enabled, devtools)| ConfidentialCompute { enabled, devtools }),
    }
}

fn throttled(device: &Device<'_>, asker: &mut Asker) -> ThrottledTimes {
    let mut seconds = |what, policy: PerformancePolicy| -> Reading<f64> {
        asker
            .ask(what, || device.violation_status(policy))
            .map(|times| (times.violation_time as f64 / 1e6).round() / 1e3)
    };
    ThrottledTimes {
        power_seconds_total: seconds("time throttled by power", PerformancePolicy::Power),
        thermal_seconds_total: seconds("time throttled by heat", PerformancePolicy::Thermal),
        sync_boost_seconds_total: seconds("time throttled by sync boost", PerformancePolicy::SyncBoost),
        board_limit_seconds_total: seconds("time throttled by the board", PerformancePolicy::BoardLimit),
        low_utilization_seconds_total: seconds("time at low utilization", PerformancePolicy::LowUtilization),
        reliability_seconds_total: seconds("time throttled for reliability", PerformancePolicy::Reliability),
    }
}

fn fabric(device: &Device<'_>, asker: &mut Asker) -> Reading<Fabric> {
    let info = match asker.ask("fabric", || raw::fabric(device)) {
        Reading::Now(info) | Reading::Earlier { value: info, .. } => info,
        Reading::Absent(reason) => return Reading::Absent(reason),
    };
    let state = match info.state {
        0 => FabricState::NotSupported,
        1 => FabricState::NotStarted,
        2 => FabricState::InProgress,
        3 => FabricState::Completed,
        _ => return Reading::Absent(Absence::Unknown),
    };
    let digits = format!("{:032x}", u128::from_be_bytes(info.clusterUuid));
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    let cluster_uuid = parts.join("-");
    Reading::Now(Fabric { state, status: info.status, cluster_uuid, clique_id: info.cliqueId })
}

fn recovery_action(device: &Device<'_>, asker: &mut Asker) -> Reading<RecoveryAction> {
    const FIELD: raw::Field = raw::Field { id: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, scope: 0 };
    let action = asker.ask("recovery action", || raw::field_values(device, &[FIELD])?.remove(0));
    match action {
        Reading::Absent(reason) => Reading::Absent(reason),
        Reading::Now(number) | Reading::Earlier { value: number, .. } => match number as u32 {
            NONE => Reading::Now(RecoveryAction::None),
            GPU_RESET => Reading::Now(RecoveryAction::GpuReset),
            NODE_REBOOT => Reading::Now(RecoveryAction::NodeReboot),
            DRAIN_P2P => Reading::Now(RecoveryAction::DrainP2p),
            DRAIN_AND_RESET => Reading::Now(RecoveryAction::DrainAndReset),
            _ => Reading::Absent(Absence::Unknown),
        },
    }
}
