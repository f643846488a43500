//! What changes slowly about a simulated GPU.

use crate::{
    model::{
        Absence, Absent, ApplicationClocks, Bar1, ComputeMode, ConfidentialCompute, Ecc, EccCounts,
        EccLocation, Fan, GpuDetails, Mode, Modes, NvLink, NvLinkRemote, Reading, ThrottleReason,
        ThrottledTimes,
    },
    vendor::sim::{
        EccErrors, GpuIdentity, GpuState, LinkState, MAX_SM_MHZ, MEMORY_MHZ, Machine,
        NVLINK_MB_PER_SECOND, Totals, Wear,
    },
};

use super::{thousandths, where_supported};

/// The newest that are told.
const ACCOUNTED: usize = 64;

pub(super) fn read(machine: &Machine, index: u32, details: &mut GpuDetails) {
    let elapsed_ms = machine.timeline.elapsed_ms();
    let identity = machine.world.identity(index);
    let state = machine.state(index, elapsed_ms);
    let wear = machine.world.wear(index, elapsed_ms);
    let totals = machine.totals(index, elapsed_ms);
    details.modes = modes(identity, !state.mig.is_empty());
    details.requested_power_limit_watts = Reading::Now(state.power_limit_watts);
    details.application_clocks = ApplicationClocks {
        graphics_mhz: Reading::Now(MAX_SM_MHZ),
        memory_mhz: Reading::Now(MEMORY_MHZ),
    };
    details.throttled = throttled(&totals);
    details.ecc = ecc(identity, &wear);
    details.retired_pages = wear.retired_pages.ok_or(Absence::NotSupported).into();
    details.remapped_rows = wear.remapped_rows.ok_or(Absence::NotSupported).into();
    details.bar1 = Reading::Now(Bar1 {
        total_bytes: GpuState::BAR1_BYTES,
        used_bytes: state.bar1_used_bytes,
    });
    details.pcie_replays_total = Reading::Now(wear.pcie_replays);
    details.nvlinks = Reading::Now(
        identity
            .nvlinks
            .iter()
            .map(|link| nvlink(link, identity, &totals))
            .collect(),
    );
    details.fabric = machine
        .world
        .fabric(index)
        .ok_or(Absence::NotSupported)
        .into();
    details.c2c_enabled = Reading::Now(false);
    details.recovery_action = Reading::Now(wear.recovery_action);
    details.fans = fans(identity, &state);
    let mut accounted = machine
        .world
        .accounted(index, elapsed_ms, &machine.timeline);
    accounted.drain(..accounted.len().saturating_sub(ACCOUNTED));
    details.accounting = where_supported(identity.accounting, accounted);
}

fn modes(identity: &GpuIdentity, divided: bool) -> Modes {
    let mig = Mode {
        current: divided,
        pending: divided,
    };
    Modes {
        persistence: Reading::Now(identity.persistence),
        compute: Reading::Now(ComputeMode::Default),
        ecc: where_supported(
            identity.ecc,
            Mode {
                current: true,
                pending: true,
            },
        ),
        mig: where_supported(identity.has_mig(), mig),
        accounting: Reading::Now(identity.accounting),
        display_active: Reading::Now(false),
        confidential_compute: Reading::Now(ConfidentialCompute {
            enabled: false,
            devtools: false,
        }),
    }
}

fn throttled(totals: &Totals) -> ThrottledTimes {
    let seconds = |reasons: &[ThrottleReason]| {
        Reading::Now(thousandths(
            reasons
                .iter()
                .map(|reason| totals.throttled_s(*reason))
                .sum(),
        ))
    };
    ThrottledTimes {
        power_seconds_total: seconds(&Totals::POWER),
        thermal_seconds_total: seconds(&Totals::THERMAL),
        sync_boost_seconds_total: seconds(&[ThrottleReason::SyncBoost]),
        board_limit_seconds_total: seconds(&[]),
        low_utilization_seconds_total: seconds(&[ThrottleReason::GpuIdle]),
        reliability_seconds_total: seconds(&[]),
    }
}

fn ecc(identity: &GpuIdentity, wear: &Wear) -> Ecc {
    if !identity.ecc {
        return Ecc::absent(&Absence::NotSupported);
    }
    Ecc {
        volatile: counts(wear.ecc_volatile),
        aggregate: counts(wear.ecc_aggregate),
        volatile_by_location: Reading::Now(by_location(wear.ecc_volatile)),
        aggregate_by_location: Reading::Now(by_location(wear.ecc_aggregate)),
    }
}

fn counts(errors: EccErrors) -> EccCounts {
    EccCounts {
        corrected_total: Reading::Now(errors.corrected),
        uncorrected_total: Reading::Now(errors.uncorrected),
    }
}

fn by_location(errors: EccErrors) -> Vec<EccLocation> {
    let at = |location: &str, errors: EccErrors| EccLocation {
        location: location.to_owned(),
        corrected_total: errors.corrected,
        uncorrected_total: errors.uncorrected,
    };
    vec![
        at("device_memory", errors.device_memory()),
        at("sram", errors.sram()),
    ]
}

fn nvlink(link: &LinkState, identity: &GpuIdentity, totals: &Totals) -> NvLink {
    NvLink {
        link: link.link,
        active: Reading::Now(link.active),
        version: Reading::Now("4.0".to_owned()),
        bytes_per_second: Reading::Now(f64::from(NVLINK_MB_PER_SECOND) * 1e6),
        remote: Reading::Now(NvLinkRemote::Switch),
        remote_pci_bus_id: Reading::Now(link.remote_bus_id.clone()),
        tx_bytes_total: Reading::Now(identity.link_kib(totals.nvlink_tx_bytes, link.link) * 1024),
        rx_bytes_total: Reading::Now(identity.link_kib(totals.nvlink_rx_bytes, link.link) * 1024),
        errors_total: Reading::Now(
            link.replays + link.recoveries + link.crc_errors.iter().sum::<u64>(),
        ),
        replays_total: Reading::Now(link.replays),
        recoveries_total: Reading::Now(link.recoveries),
        crc_errors_total: Reading::Now(link.crc_errors.iter().sum()),
    }
}

fn fans(identity: &GpuIdentity, state: &GpuState) -> Reading<Vec<Fan>> {
    let fan = Fan {
        speed_percent: Reading::Now(state.fan_percent.into()),
        rpm: Reading::Now(state.fan_rpm()),
    };
    where_supported(identity.fans > 0, vec![fan; identity.fans as usize])
}
