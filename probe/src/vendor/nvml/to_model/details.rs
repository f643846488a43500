//! The details of a GPU, which change slowly.

use super::{
    super::{
        cached::{Answers, and_then, whole},
        lanes,
    },
    ecc, links, small, watts,
};
use crate::{
    model::{
        Absence, AccountedProcess, ApplicationClocks, Bar1, ComputeMode, ConfidentialCompute,
        Fabric, FabricState, Fan, GpuDetails, Mode, Modes, Reading, RecoveryAction, ThrottledTimes,
    },
    vendor::nvml::query::{Answer, Query as Q},
};

/// Fills in the details. `confidential` is the driver's answer about confidential computing on the
/// machine.
pub(in super::super) fn details(
    answers: Answers<'_>,
    confidential: &Answer,
    details: &mut GpuDetails,
) {
    details.modes = modes(answers, confidential);
    details.application_clocks = ApplicationClocks {
        graphics_mhz: small(answers, Q::ApplicationsClock(0)),
        memory_mhz: small(answers, Q::ApplicationsClock(2)),
    };
    details.requested_power_limit_watts = watts(answers, Q::PowerLimit);
    details.throttled = throttled(answers);
    details.ecc = ecc::errors(answers);
    details.retired_pages = ecc::retired_pages(answers);
    details.remapped_rows = ecc::remapped_rows(answers);
    details.bar1 = and_then(
        answers.numbers(Q::Bar1MemoryInfo),
        |[total, _free, used]| {
            and_then(whole(total), |total_bytes| {
                whole(used).map(|used_bytes| Bar1 {
                    total_bytes,
                    used_bytes,
                })
            })
        },
    );
    details.pcie_replays_total = answers.whole(Q::PcieReplays);
    details.nvlinks = links::nvlinks(answers);
    details.fabric = fabric(answers);
    details.c2c_enabled = answers.flag(Q::C2cMode);
    details.recovery_action = recovery_action(answers);
    details.fans = fans(answers);
    details.accounting = accounting(answers);
}

fn modes(answers: Answers<'_>, confidential: &Answer) -> Modes {
    Modes {
        persistence: answers.flag(Q::PersistenceMode),
        compute: and_then(answers.number(Q::ComputeMode), |mode| match mode {
            0 => Reading::Now(ComputeMode::Default),
            1 | 3 => Reading::Now(ComputeMode::ExclusiveProcess),
            2 => Reading::Now(ComputeMode::Prohibited),
            _ => Reading::Absent(Absence::Unknown),
        }),
        ecc: mode(answers, Q::EccMode),
        mig: mode(answers, Q::MigMode),
        accounting: answers.flag(Q::AccountingMode),
        display_active: answers.flag(Q::DisplayActive),
        confidential_compute: match confidential {
            // The numbers are environment, feature and development mode.
            Ok(state) => Reading::Now(ConfidentialCompute {
                enabled: state.at(1) == Some(1),
                devtools: state.at(2) == Some(1),
            }),
            Err(code) => Reading::Absent(super::super::error::absence(*code)),
        },
    }
}

pub(super) fn mode(answers: Answers<'_>, query: Q) -> Reading<Mode> {
    answers.numbers(query).map(|[current, pending]| Mode {
        current: current != 0,
        pending: pending != 0,
    })
}

/// Returns the throttled times. The driver reports nanoseconds for each `nvmlPerfPolicyType_t`.
fn throttled(answers: Answers<'_>) -> ThrottledTimes {
    let seconds = |policy| {
        let times = answers.numbers(Q::ViolationStatus(policy));
        times.map(|[_reference, nanoseconds]| (nanoseconds as f64 / 1e6).round() / 1e3)
    };
    ThrottledTimes {
        power_seconds_total: seconds(0),
        thermal_seconds_total: seconds(1),
        sync_boost_seconds_total: seconds(2),
        board_limit_seconds_total: seconds(3),
        low_utilization_seconds_total: seconds(4),
        reliability_seconds_total: seconds(5),
    }
}

fn fabric(answers: Answers<'_>) -> Reading<Fabric> {
    let info = answers.numbers(Q::FabricInfo);
    and_then(
        info,
        |[state, status, clique_id, _mask, _summary, high, low]| {
            let (Ok(high), Ok(low)) = (u64::try_from(high), u64::try_from(low)) else {
                return Reading::Absent(Absence::Unknown);
            };
            let state = match state {
                0 => FabricState::NotSupported,
                1 => FabricState::NotStarted,
                2 => FabricState::InProgress,
                3 => FabricState::Completed,
                _ => return Reading::Absent(Absence::Unknown),
            };
            let digits = format!("{high:016x}{low:016x}");
            let parts = [
                &digits[..8],
                &digits[8..12],
                &digits[12..16],
                &digits[16..20],
                &digits[20..],
            ];
            let cluster_uuid = parts.join("-");
            and_then(whole(status), |status| {
                whole(clique_id).map(|clique_id| Fabric {
                    state,
                    status,
                    cluster_uuid,
                    clique_id,
                })
            })
        },
    )
}

/// Converts a `nvmlDeviceGpuRecoveryAction_t` to a recovery action.
fn recovery_action(answers: Answers<'_>) -> Reading<RecoveryAction> {
    and_then(
        answers.number(lanes::RECOVERY_ACTION),
        |action| match action {
            0 => Reading::Now(RecoveryAction::None),
            1 => Reading::Now(RecoveryAction::GpuReset),
            2 => Reading::Now(RecoveryAction::NodeReboot),
            3 => Reading::Now(RecoveryAction::DrainP2p),
            4 => Reading::Now(RecoveryAction::DrainAndReset),
            _ => Reading::Absent(Absence::Unknown),
        },
    )
}

fn fans(answers: Answers<'_>) -> Reading<Vec<Fan>> {
    let fan = |fan| Fan {
        // If the board has no fans, some drivers reject the number of the fan as an invalid
        // argument.
        speed_percent: match answers.number(Q::FanSpeedOf(fan)) {
            Reading::Absent(Absence::DriverError { code: 2 }) => {
                Reading::Absent(Absence::NotSupported)
            }
            percent => percent.map(|percent| percent as f64),
        },
        rpm: small(answers, Q::FanSpeedRpm(fan)),
    };
    and_then(answers.whole(Q::NumFans), |count: u32| match count {
        0..=lanes::MOST_FANS => Reading::Now((0..count).map(fan).collect()),
        _ => Reading::Absent(Absence::Unknown),
    })
}

fn accounting(answers: Answers<'_>) -> Reading<Vec<AccountedProcess>> {
    and_then(answers.flag(Q::AccountingMode), |on| {
        if !on {
            return Reading::Now(Vec::new());
        }
        // The driver may have dropped an account after listing its PID.
        let account =
            |pid: u32| accounted_process(pid, *answers.numbers(Q::AccountingStats(pid)).value()?);
        answers.value(Q::AccountingPids).map(|pids| {
            pids.numbers()
                .iter()
                .rev()
                .take(lanes::ACCOUNTED)
                .filter_map(|pid| account(u32::try_from(*pid).ok()?))
                .collect()
        })
    })
}

fn accounted_process(
    pid: u32,
    [gpu, memory, most, time, started, running]: [i128; 6],
) -> Option<AccountedProcess> {
    // `NVML_VALUE_NOT_AVAILABLE` has 32 or 64 bits.
    let known = |number: i128, none: u64| (number != i128::from(none)).then_some(number);
    let percent = |share| known(share, u32::MAX.into()).map(|share| share as f64);
    Some(AccountedProcess {
        pid,
        running: running != 0,
        gpu_percent: percent(gpu).map_or(Reading::Absent(Absence::Unknown), Reading::Now),
        memory_percent: percent(memory).map_or(Reading::Absent(Absence::Unknown), Reading::Now),
        max_memory_bytes: known(most, u64::MAX).map_or(Reading::Absent(Absence::Unknown), whole),
        time_ms: u64::try_from(time).ok()?,
        started_us: u64::try_from(started).ok()?,
    })
}
