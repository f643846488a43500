//! Each fault of a scenario only has its intended effect.

use std::{
    env, fs,
    process::Command,
    time::{Duration, Instant},
};

use crate::common::{
    fails_with, initialize_nvml, load_world, open_library, run_with_library, wait_until,
};
use nvml_wrapper::{
    Nvml,
    enum_wrappers::device::{Clock, TemperatureSensor},
    error::NvmlError,
};

#[test]
fn lost_gpu_fails_every_call() {
    let scenario = "gpus = 3\n[[fault]]\ngpu = 1\nkind = \"lost\"\nfrom_s = 1\nto_s = 3";
    run_with_library(
        "faults::lost_gpu_fails_every_call",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let (one, two) = (
                nvml.device_by_index(1).unwrap(),
                nvml.device_by_index(2).unwrap(),
            );
            assert!(one.name().is_ok());
            wait_until("the loss of the GPU", || one.name().is_err());
            fails_with!(one.name(), NvmlError::GpuLost);
            fails_with!(one.power_usage(), NvmlError::GpuLost);
            fails_with!(nvml.device_by_index(1), NvmlError::GpuLost);
            assert_eq!(nvml.device_count().unwrap(), 3);
            assert_eq!(two.index().unwrap(), 2);
            assert!(two.power_usage().is_ok() && nvml.device_by_index(0).is_ok());
            wait_until("the return of the GPU", || one.name().is_ok());
        },
    );
}

#[test]
fn hung_call_returns_after_fault_ends() {
    let scenario = "gpus = 2\n[[fault]]\ngpu = 1\nkind = \"hang\"\ncall = \
                    \"nvmlDeviceGetUtilizationRates\"\nto_s = 5";
    run_with_library(
        "faults::hung_call_returns_after_fault_ends",
        scenario,
        &[],
        |library| {
            let begun = Instant::now();
            let nvml = initialize_nvml(library);
            let (zero, one) = (
                nvml.device_by_index(0).unwrap(),
                nvml.device_by_index(1).unwrap(),
            );
            assert!(zero.utilization_rates().is_ok() && one.power_usage().is_ok());
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "other calls were delayed, too: {:?}",
                begun.elapsed()
            );
            assert!(one.utilization_rates().is_ok());
            assert!(
                begun.elapsed() >= Duration::from_secs(5),
                "the call returned after {:?}",
                begun.elapsed()
            );
        },
    );
}

#[test]
fn hidden_function_is_missing_from_library() {
    let hidden = ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetFanSpeed_v2"];
    run_with_library(
        "faults::hidden_function_is_missing_from_library",
        "",
        &hidden,
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            let error = device.power_usage().unwrap_err();
            assert!(
                matches!(&error, NvmlError::FailedToLoadSymbol(text) if text.contains("nvmlDeviceGetPowerUsage")),
                "{error}"
            );
            assert!(device.clock_info(Clock::SM).is_ok());
            assert!(
                nvml.lib().nvmlDeviceGetFanSpeed.is_ok()
                    && nvml.lib().nvmlDeviceGetFanSpeed_v2.is_err()
            );
        },
    );
}

#[test]
fn hidden_and_failing_functions_return_their_codes() {
    let scenario = "hidden = [\"nvmlDeviceGetName\"]\n[returns]\nnvmlDeviceGetUUID = \
                    4\nnvmlDeviceGetCount_v2 = 999";
    run_with_library(
        "faults::hidden_and_failing_functions_return_their_codes",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            fails_with!(device.name(), NvmlError::FunctionNotFound);
            fails_with!(device.uuid(), NvmlError::NoPermission);
            fails_with!(nvml.device_count(), NvmlError::Unknown);
        },
    );
}

#[test]
fn initialization_fails_until_it_recovers() {
    let scenario = "init_error = { code = 18, to_s = 1 }";
    run_with_library(
        "faults::initialization_fails_until_it_recovers",
        scenario,
        &[],
        |library| {
            // The library stays open, so that the timeline continues.
            let held = open_library(library);
            let init = || Nvml::builder().lib_path(library.as_os_str()).init();
            fails_with!(init(), NvmlError::LibRmVersionMismatch);
            wait_until("the end of the error", || init().is_ok());
            assert_eq!(init().unwrap().device_count().unwrap(), 1);
            drop(held);
        },
    );
}

#[test]
fn invalid_scenario_ends_process_with_error_location() {
    const TEST: &str = "faults::invalid_scenario_ends_process_with_error_location";
    const INSIDE: &str = "FAKE_NVML_TEST_BAD_SCENARIO";
    if let Some(library) = env::var_os(INSIDE) {
        let outcome = Nvml::builder().lib_path(&library).init();
        unreachable!("the process must have ended: {outcome:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.toml");
    fs::write(
        &file,
        "gpus = 1\n[[gpu]]\nindex = 0\nutilisation_percent = 5\n",
    )
    .unwrap();
    for (scenario, says) in [
        (
            file.clone(),
            ":4:1: unknown key `utilisation_percent`; did you mean `utilization_percent`?",
        ),
        (
            directory.path().join("none.toml"),
            "GPUMON_FAKE_NVML_SCENARIO",
        ),
    ] {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(INSIDE, fake_nvml::install(directory.path(), &[]))
            .env("GPUMON_FAKE_NVML_SCENARIO", &scenario)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        let line = error
            .lines()
            .find(|line| line.starts_with("fake NVML: "))
            .unwrap_or_else(|| panic!("{error}"));
        assert!(
            line.contains(scenario.to_str().unwrap()) && line.contains(says),
            "{line}"
        );
    }
}

#[test]
fn replaced_driver_fails_calls_until_recovery() {
    let scenario = "[[fault]]\nkind = \"mismatch\"\nfrom_s = 0.5\nto_s = 1.5";
    run_with_library(
        "faults::replaced_driver_fails_calls_until_recovery",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            wait_until("the replacement of the driver", || device.name().is_err());
            fails_with!(device.name(), NvmlError::LibRmVersionMismatch);
            fails_with!(nvml.device_count(), NvmlError::LibRmVersionMismatch);
            fails_with!(
                Nvml::builder().lib_path(library.as_os_str()).init(),
                NvmlError::LibRmVersionMismatch
            );
            wait_until("the end of the error", || device.name().is_ok());
        },
    );
}

#[test]
fn error_code_fault_affects_only_given_gpu() {
    let scenario = "gpus = 2\n[[fault]]\nkind = \"returns\"\ncall = \"nvmlDeviceGetName\"\ncode = \
                    4\ngpu = 1\nto_s = 1\n[[fault]]\nkind = \"returns\"\ncall = \
                    \"nvmlDeviceGetCount_v2\"\ncode = 999\n";
    run_with_library(
        "faults::error_code_fault_affects_only_given_gpu",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let (zero, one) = (
                nvml.device_by_index(0).unwrap(),
                nvml.device_by_index(1).unwrap(),
            );
            fails_with!(one.name(), NvmlError::NoPermission);
            fails_with!(nvml.device_count(), NvmlError::Unknown);
            assert!(zero.name().is_ok() && one.uuid().is_ok());
            wait_until("the end of the error", || one.name().is_ok());
        },
    );
}

#[test]
fn failing_gpu_returns_its_code_from_every_call() {
    let scenario =
        "gpus = 2\n[[fault]]\nkind = \"returns\"\ngpu = 1\ncode = 999\nfrom_s = 1\nto_s = 3\n";
    run_with_library(
        "faults::failing_gpu_returns_its_code_from_every_call",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let (zero, one) = (
                nvml.device_by_index(0).unwrap(),
                nvml.device_by_index(1).unwrap(),
            );
            let same_as_one = nvml.device_by_index(1).unwrap();
            assert!(one.name().is_ok());
            wait_until("the failure of the GPU", || one.name().is_err());
            fails_with!(one.name(), NvmlError::Unknown);
            fails_with!(one.memory_info(), NvmlError::Unknown);
            fails_with!(nvml.device_by_index(1), NvmlError::Unknown);
            fails_with!(
                zero.topology_common_ancestor(same_as_one),
                NvmlError::Unknown
            );
            assert!(zero.name().is_ok() && nvml.device_count().unwrap() == 2);
            wait_until("the end of the failure", || one.name().is_ok());
        },
    );
}

/// If a GPU is added, only processes that initialize the driver afterwards can find it by an index.
#[test]
fn added_gpu_is_found_by_the_next_process() {
    const SCENARIO: &str = "gpus = 3\nstart_ms = 1_700_000_000_000\n[[gpu]]\nindex = 0\nfrom_s = \
                            1_000_000_000\n[[gpu]]\nindex = 1\nto_s = 5\n";
    run_with_library(
        "faults::added_gpu_is_found_by_the_next_process",
        SCENARIO,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            assert_eq!(
                nvml.device_count().unwrap(),
                1,
                "one GPU is not yet added, and one is already removed"
            );
            let device = nvml.device_by_index(0).unwrap();
            assert_eq!(
                (device.index().unwrap(), device.minor_number().unwrap()),
                (0, 2)
            );
            fails_with!(nvml.device_by_index(1), NvmlError::InvalidArg);
            let first = load_world(SCENARIO).gpu_identity(0).uuid.clone();
            fails_with!(nvml.device_by_uuid(first), NvmlError::NotFound);
        },
    );
}

#[test]
fn removed_gpu_is_lost_and_keeps_its_index() {
    let scenario = "gpus = 2\n[[gpu]]\nindex = 0\nto_s = 1\n";
    run_with_library(
        "faults::removed_gpu_is_lost_and_keeps_its_index",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let (zero, one) = (
                nvml.device_by_index(0).unwrap(),
                nvml.device_by_index(1).unwrap(),
            );
            wait_until("the removal of the GPU", || zero.name().is_err());
            fails_with!(zero.name(), NvmlError::GpuLost);
            assert_eq!((nvml.device_count().unwrap(), one.index().unwrap()), (2, 1));
        },
    );
}

#[test]
fn garbage_values_are_out_of_range() {
    let scenario = "gpus = 2\n[[process]]\ngpu = 0\npid = 7\nsm_percent = 5\n[[fault]]\nkind = \
                    \"garbage\"\ngpu = 0\n";
    run_with_library(
        "faults::garbage_values_are_out_of_range",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let (bad, good) = (
                nvml.device_by_index(0).unwrap(),
                nvml.device_by_index(1).unwrap(),
            );
            assert_eq!(bad.utilization_rates().unwrap().gpu, 4_000_000);
            assert_eq!(
                (
                    bad.power_usage().unwrap(),
                    bad.clock_info(Clock::SM).unwrap()
                ),
                (u32::MAX, u32::MAX)
            );
            assert_eq!(bad.temperature(TemperatureSensor::Gpu).unwrap(), 255);
            let memory = bad.memory_info().unwrap();
            assert!(memory.used > memory.total);
            assert!(bad.process_utilization_stats(None).unwrap()[0].sm_util > 100);
            assert!(
                good.utilization_rates().unwrap().gpu <= 100
                    && good.power_usage().unwrap() < 800_000
            );
        },
    );
}

#[test]
fn counters_decrease_while_backwards_fault_lasts() {
    let scenario = "gpus = 2\n[[fault]]\nkind = \"backwards\"\ngpu = 0\nfrom_s = 2\nto_s = 4\n";
    run_with_library(
        "faults::counters_decrease_while_backwards_fault_lasts",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let energy = |gpu| {
                nvml.device_by_index(gpu)
                    .unwrap()
                    .total_energy_consumption()
                    .unwrap()
            };
            let falls = |gpu| {
                let before = energy(gpu);
                std::thread::sleep(Duration::from_millis(150));
                energy(gpu) < before
            };
            assert!(!falls(0));
            wait_until("the decrease of the counter", || falls(0));
            assert!(falls(0) && !falls(1));
            wait_until("the end of the decrease", || !falls(0));
        },
    );
}

#[test]
fn skewed_clock_changes_timestamps() {
    let scenario = "[[process]]\ngpu = 0\npid = 7\nsm_percent = 5\n[[fault]]\nkind = \
                    \"clock_skew\"\nby_s = -3600.5\n";
    run_with_library(
        "faults::skewed_clock_changes_timestamps",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(0).unwrap();
            let stamp_us = device.process_utilization_stats(None).unwrap()[0].timestamp;
            let behind_us = gpumon_probe::model::now_ms() * 1000 - stamp_us;
            assert!(
                (3_600_400_000..3_605_000_000).contains(&behind_us),
                "the timestamp is {behind_us} us behind"
            );
        },
    );
}

#[test]
fn crash_ends_the_process() {
    const TEST: &str = "faults::crash_ends_the_process";
    const INSIDE: &str = "FAKE_NVML_TEST_CRASH";
    if let Some(library) = env::var_os(INSIDE) {
        let nvml = initialize_nvml(library.as_ref());
        assert!(nvml.device_by_index(0).unwrap().name().is_ok());
        let name = nvml.device_by_index(1).unwrap().name();
        unreachable!("the process must have ended: {name:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("crash.toml");
    fs::write(
        &file,
        "gpus = 2\n[[fault]]\nkind = \"crash\"\ngpu = 1\ncall = \"nvmlDeviceGetName\"\n",
    )
    .unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(INSIDE, fake_nvml::install(directory.path(), &[]))
        .env("GPUMON_FAKE_NVML_SCENARIO", &file)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("nvmlDeviceGetName crashes"), "{error}");
    assert!(
        output.status.code().is_none(),
        "the process must be ended by a signal: {:?}",
        output.status
    );
}
