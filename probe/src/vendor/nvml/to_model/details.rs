//! Conversion of the driver's answers about data that changes slowly or never: a GPU's details,
//! identity, board, and MIG devices.

use std::path::Path;

use nvml_wrapper::enums::device::DeviceArchitecture;

use super::{
    TimedAnswers, and_then, convert_integer, convert_numbers, ecc, links, make_memory, read_u32,
    read_watts,
};
use crate::{
    model::{
        Absence, AccountedProcess, Activity, ApplicationClocks, Bar1, Board, ComputeMode,
        ConfidentialCompute, Fabric, FabricState, Fan, Gpu, GpuDetails, MaxClocks, MigDevice,
        MigInstance, MigSample, Mode, Modes, PowerLimits, Reading, RecoveryAction, Thresholds,
        ThrottledTimes, sysfs_device_path,
    },
    vendor::{
        drm::Attributes,
        format_uuid,
        nvml::{
            query::{Answer, Query as Q},
            schedule,
        },
    },
};

/// Fills in the details. `confidential` is the driver's answer about the machine's confidential
/// computing state.
pub(crate) fn fill_details(
    answers: TimedAnswers<'_>,
    confidential: &Answer,
    details: &mut GpuDetails,
) {
    details.modes = make_modes(answers, confidential);
    details.application_clocks = ApplicationClocks {
        graphics_mhz: read_u32(answers, Q::ApplicationsClock(0)),
        memory_mhz: read_u32(answers, Q::ApplicationsClock(2)),
    };
    details.requested_power_limit_watts = read_watts(answers, Q::PowerLimit);
    details.throttled = throttled_times(answers);
    details.ecc = ecc::read_ecc_counts(answers);
    details.retired_pages = ecc::retired_pages(answers);
    details.remapped_rows = ecc::remapped_rows(answers);
    details.bar1 = and_then(
        answers.read_numbers(Q::Bar1MemoryInfo),
        |[total, _free, used]| {
            and_then(convert_integer(total), |total_bytes| {
                convert_integer(used).map(|used_bytes| Bar1 {
                    total_bytes,
                    used_bytes,
                })
            })
        },
    );
    details.pcie_replays_total = answers.read_integer(Q::PcieReplays);
    details.nvlinks = links::list_nvlinks(answers);
    details.fabric = make_fabric(answers);
    details.c2c_enabled = answers.read_flag(Q::C2cMode);
    details.recovery_action = recovery_action(answers);
    details.fans = list_fans(answers);
    details.accounting = list_accounted(answers);
}

fn make_modes(answers: TimedAnswers<'_>, confidential: &Answer) -> Modes {
    Modes {
        persistence: answers.read_flag(Q::PersistenceMode),
        compute: read_item(
            answers,
            Q::ComputeMode,
            &[
                ComputeMode::Default,
                // `NVML_COMPUTEMODE_EXCLUSIVE_THREAD`, which NVML documents as not supported.
                ComputeMode::ExclusiveProcess,
                ComputeMode::Prohibited,
                ComputeMode::ExclusiveProcess,
            ],
        ),
        ecc: read_mode(answers, Q::EccMode),
        mig: read_mode(answers, Q::MigMode),
        accounting: answers.read_flag(Q::AccountingMode),
        display_active: answers.read_flag(Q::DisplayActive),
        confidential_compute: match confidential {
            // The three numbers are the environment, the feature state, and the developer tools
            // mode.
            Ok(state) => Reading::Now(ConfidentialCompute {
                enabled: state.number_at(1) == Some(1),
                devtools: state.number_at(2) == Some(1),
            }),
            Err(code) => Reading::Absent(super::super::error::to_absence(*code)),
        },
    }
}

/// Returns the item whose position in `items` is the answer's first number. The reading is absent
/// with `Unknown` if there is no such item.
fn read_item<T: Copy>(answers: TimedAnswers<'_>, query: Q, items: &[T]) -> Reading<T> {
    and_then(answers.read_integer(query), |position: usize| {
        items.get(position).copied().ok_or(Absence::Unknown).into()
    })
}

/// Returns whether a mode is on, and whether it will be on after the next reset.
pub(crate) fn read_mode(answers: TimedAnswers<'_>, query: Q) -> Reading<Mode> {
    answers.read_numbers(query).map(|[current, pending]| Mode {
        current: current != 0,
        pending: pending != 0,
    })
}

/// Returns how long clocks have been reduced. The driver reports nanoseconds for each
/// `nvmlPerfPolicyType_t`.
fn throttled_times(answers: TimedAnswers<'_>) -> ThrottledTimes {
    let seconds = |policy| {
        let times = answers.read_numbers(Q::ViolationStatus(policy));
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

fn make_fabric(answers: TimedAnswers<'_>) -> Reading<Fabric> {
    let info = answers.read_numbers(Q::FabricInfo);
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
            let cluster_uuid = format_uuid(high, low);
            and_then(convert_integer(status), |status| {
                convert_integer(clique_id).map(|clique_id| Fabric {
                    state,
                    status,
                    cluster_uuid,
                    clique_id,
                })
            })
        },
    )
}

/// Returns the recovery action, converted from a `nvmlDeviceGpuRecoveryAction_t`.
fn recovery_action(answers: TimedAnswers<'_>) -> Reading<RecoveryAction> {
    read_item(
        answers,
        schedule::RECOVERY_ACTION,
        &[
            RecoveryAction::None,
            RecoveryAction::GpuReset,
            RecoveryAction::NodeReboot,
            RecoveryAction::DrainP2p,
            RecoveryAction::DrainAndReset,
        ],
    )
}

fn list_fans(answers: TimedAnswers<'_>) -> Reading<Vec<Fan>> {
    let fan = |fan| Fan {
        // On boards without fans, some drivers return "invalid argument" for the fan's number.
        speed_percent: match answers.read_float(Q::FanSpeedOf(fan)) {
            Reading::Absent(Absence::DriverError { code: 2 }) => Reading::NOT_SUPPORTED,
            percent => percent,
        },
        rpm: read_u32(answers, Q::FanSpeedRpm(fan)),
    };
    and_then(answers.read_integer(Q::NumFans), |count: u32| match count {
        0..=schedule::MAX_FANS => Reading::Now((0..count).map(fan).collect()),
        _ => Reading::Absent(Absence::Unknown),
    })
}

fn list_accounted(answers: TimedAnswers<'_>) -> Reading<Vec<AccountedProcess>> {
    and_then(answers.read_flag(Q::AccountingMode), |on| {
        if !on {
            return Reading::Now(Vec::new());
        }
        // The driver may have deleted a process's account after it listed the process.
        let account = |pid: u32| {
            make_accounted_process(pid, *answers.read_numbers(Q::AccountingStats(pid)).value()?)
        };
        answers.get(Q::AccountingPids).map(|pids| {
            pids.numbers()
                .iter()
                .rev()
                .take(schedule::MAX_ACCOUNTED)
                .filter_map(|pid| account(u32::try_from(*pid).ok()?))
                .collect()
        })
    })
}

fn make_accounted_process(
    pid: u32,
    [gpu, memory, most, time, started, running]: [i128; 6],
) -> Option<AccountedProcess> {
    // Depending on the field, `NVML_VALUE_NOT_AVAILABLE` has 32 or 64 bits.
    let known = |number: i128, none: u64| (number != i128::from(none)).then_some(number);
    let percent = |share| known(share, u32::MAX.into()).map(|share| share as f64);
    Some(AccountedProcess {
        pid,
        running: running != 0,
        gpu_percent: percent(gpu).ok_or(Absence::Unknown).into(),
        memory_percent: percent(memory).ok_or(Absence::Unknown).into(),
        max_memory_bytes: known(most, u64::MAX)
            .map_or(Reading::Absent(Absence::Unknown), convert_integer),
        time_ms: u64::try_from(time).ok()?,
        started_us: u64::try_from(started).ok()?,
    })
}

/// Returns a GPU's identity. The board information is added later.
pub(crate) fn make_identity(answers: TimedAnswers<'_>, index: u32) -> Gpu {
    Gpu {
        vendor_index: Some(index),
        uuid: answers.read_text(Q::Uuid).value().cloned(),
        name: answers.read_text(Q::Name),
        pci_bus_id: answers.read_text(Q::BusId),
        ..Gpu::new_unidentified(index, &Absence::NoAnswer)
    }
}

/// Returns the GPU's board information. If the driver does not know the NUMA node, it is read from
/// `sys_root`, which is `/sys` except in tests.
pub(crate) fn make_board(answers: TimedAnswers<'_>, sys_root: &Path) -> Board {
    let between = answers.read_numbers::<2>(Q::PowerLimitConstraints);
    let limit = |milliwatts: i128| milliwatts as f64 / 1000.0;
    let celsius = |threshold| answers.read_float(Q::TemperatureThreshold(threshold));
    Board {
        serial: answers.read_text(Q::Serial),
        part_number: answers.read_text(Q::BoardPartNumber),
        vbios_version: answers.read_text(Q::VbiosVersion),
        architecture: and_then(answers.read_integer(Q::Architecture), |number: u32| {
            DeviceArchitecture::try_from(number)
                .map(|architecture| architecture.to_string())
                .map_err(|_| Absence::Unknown)
                .into()
        }),
        compute_capability: answers
            .read_numbers(Q::ComputeCapability)
            .map(|[major, minor]| format!("{major}.{minor}")),
        cores: read_u32(answers, Q::NumGpuCores),
        memory_bus_bits: read_u32(answers, Q::MemoryBusWidth),
        minor_number: read_u32(answers, Q::MinorNumber),
        numa_node: numa_node(answers, sys_root),
        pcie_max_generation: read_u32(answers, Q::MaxPcieGeneration),
        pcie_max_width: read_u32(answers, Q::MaxPcieWidth),
        max_clocks: MaxClocks {
            graphics_mhz: read_u32(answers, Q::MaxClock(0)),
            sm_mhz: read_u32(answers, Q::MaxClock(1)),
            memory_mhz: read_u32(answers, Q::MaxClock(2)),
            video_mhz: read_u32(answers, Q::MaxClock(3)),
        },
        power_limits: PowerLimits {
            default_watts: read_watts(answers, Q::DefaultPowerLimit),
            min_watts: between.clone().map(|[least, _]| limit(least)),
            max_watts: between.map(|[_, most]| limit(most)),
        },
        thresholds: Thresholds {
            shutdown_celsius: celsius(0),
            slowdown_celsius: celsius(1),
            memory_max_celsius: celsius(2),
            gpu_max_celsius: celsius(3),
        },
        energy_source: None,
    }
}

/// Returns the NUMA node near the GPU. The driver knows it only on machines where GPUs are NUMA
/// nodes themselves. On all other machines, the node is read from sysfs.
fn numa_node(answers: TimedAnswers<'_>, sys_root: &Path) -> Reading<u32> {
    match (
        read_u32(answers, Q::NumaNode),
        answers.read_text(Q::BusId).value(),
    ) {
        (Reading::Absent(Absence::NotSupported), Some(bus_id)) => {
            let device = Attributes::new(sysfs_device_path(sys_root, bus_id));
            let node = device.read_number::<i32>("numa_node").ok();
            // The value -1 means that the machine has only one node or does not report the node.
            node.and_then(|node| u32::try_from(node).ok())
                .ok_or(Absence::Unknown)
                .into()
        }
        (reported, _) => reported,
    }
}

/// Returns a MIG device's constant data, or `None` if the device no longer exists.
pub(crate) fn make_mig_device(answers: TimedAnswers<'_>, index: u32) -> Option<MigDevice> {
    let [gpu_instance, compute_instance] = *answers.read_numbers(Q::MigInstance).value()?;
    let attributes = answers.read_numbers::<9>(Q::MigAttributes);
    let [multiprocessors, copy_engines, decoders, encoders, ..] = convert_numbers(&attributes);
    Some(MigDevice {
        index,
        uuid: answers.read_text(Q::Uuid).value()?.clone(),
        instance: MigInstance {
            gpu_instance: gpu_instance.try_into().ok()?,
            compute_instance: compute_instance.try_into().ok()?,
        },
        profile: and_then(answers.read_text(Q::Name), |name| find_profile(&name)),
        multiprocessors,
        copy_engines,
        decoders,
        encoders,
    })
}

pub(crate) fn make_mig_sample(
    answers: TimedAnswers<'_>,
    device: &MigDevice,
    activity: Reading<Activity>,
) -> MigSample {
    MigSample {
        uuid: device.uuid.clone(),
        instance: device.instance,
        memory: make_memory(answers),
        activity,
        allocated_to: Vec::new(),
    }
}

/// Returns the profile in a MIG device's name, such as `1g.18gb` in `NVIDIA H200 MIG 1g.18gb`.
fn find_profile(name: &str) -> Reading<String> {
    match name.split_once(" MIG ") {
        Some((_, profile)) => Reading::Now(profile.to_owned()),
        None => Reading::Absent(Absence::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mig_profile_is_read_from_device_name() {
        assert_eq!(
            find_profile("NVIDIA H200 MIG 1g.18gb"),
            Reading::Now("1g.18gb".to_owned())
        );
        assert_eq!(
            find_profile("NVIDIA H200"),
            Reading::Absent(Absence::Unknown)
        );
    }
}
