//! What goes wrong goes wrong as the scenario says, and nothing else does.

mod common;

use std::{
    env, fs,
    process::Command,
    time::{Duration, Instant},
};

use common::{init, open, until, with_library};
use nvml_wrapper::{Nvml, enum_wrappers::device::Clock, error::NvmlError};

#[test]
fn a_lost_gpu_fails_every_call_while_the_others_go_on() {
    let scenario = "gpus = 3\n[[fault]]\ngpu = 1\nkind = \"lost\"\nfrom_s = 1\nto_s = 3";
    with_library("a_lost_gpu_fails_every_call_while_the_others_go_on", scenario, &[], |library| {
        let nvml = init(library);
        let (one, two) = (nvml.device_by_index(1).unwrap(), nvml.device_by_index(2).unwrap());
        assert!(one.name().is_ok());
        until("the loss", || one.name().is_err());
        fails_with!(one.name(), NvmlError::GpuLost);
        fails_with!(one.power_usage(), NvmlError::GpuLost);
        fails_with!(nvml.device_by_index(1), NvmlError::GpuLost);
        assert_eq!(nvml.device_count().unwrap(), 3);
        assert_eq!(two.index().unwrap(), 2);
        assert!(two.power_usage().is_ok() && nvml.device_by_index(0).is_ok());
        until("the return", || one.name().is_ok());
    });
}

#[test]
fn a_hung_call_comes_back_when_its_fault_is_over() {
    let scenario =
        "gpus = 2\n[[fault]]\ngpu = 1\nkind = \"hang\"\ncall = \"nvmlDeviceGetUtilizationRates\"\nto_s = 1.5";
    with_library("a_hung_call_comes_back_when_its_fault_is_over", scenario, &[], |library| {
        let begun = Instant::now();
        let nvml = init(library);
        let (zero, one) = (nvml.device_by_index(0).unwrap(), nvml.device_by_index(1).unwrap());
        assert!(zero.utilization_rates().is_ok() && one.power_usage().is_ok());
        assert!(begun.elapsed() < Duration::from_millis(1_400), "others waited too: {:?}", begun.elapsed());
        assert!(one.utilization_rates().is_ok());
        assert!(begun.elapsed() >= Duration::from_millis(1_500), "it came back after {:?}", begun.elapsed());
    });
}

#[test]
fn a_hidden_function_is_really_missing() {
    let hidden = ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetFanSpeed_v2"];
    with_library("a_hidden_function_is_really_missing", "", &hidden, |library| {
        let nvml = init(library);
        let device = nvml.device_by_index(0).unwrap();
        let error = device.power_usage().unwrap_err();
        assert!(
            matches!(&error, NvmlError::FailedToLoadSymbol(text) if text.contains("nvmlDeviceGetPowerUsage")),
            "{error}"
        );
        assert!(device.clock_info(Clock::SM).is_ok());
        assert!(nvml.lib().nvmlDeviceGetFanSpeed.is_ok() && nvml.lib().nvmlDeviceGetFanSpeed_v2.is_err());
    });
}

#[test]
fn a_function_that_a_scenario_hides_or_fails_says_so() {
    let scenario = "hidden = [\"nvmlDeviceGetName\"]\n[returns]\nnvmlDeviceGetUUID = 4\nnvmlDeviceGetCount_v2 = 999";
    with_library("a_function_that_a_scenario_hides_or_fails_says_so", scenario, &[], |library| {
        let nvml = init(library);
        let device = nvml.device_by_index(0).unwrap();
        fails_with!(device.name(), NvmlError::FunctionNotFound);
        fails_with!(device.uuid(), NvmlError::NoPermission);
        fails_with!(nvml.device_count(), NvmlError::Unknown);
    });
}

#[test]
fn initialisation_fails_until_it_recovers() {
    let scenario = "init_error = { code = 18, to_s = 1 }";
    with_library("initialisation_fails_until_it_recovers", scenario, &[], |library| {
        // One library stays open, so that the timeline goes on.
        let held = open(library);
        let init = || Nvml::builder().lib_path(library.as_os_str()).init();
        fails_with!(init(), NvmlError::LibRmVersionMismatch);
        until("the recovery", || init().is_ok());
        assert_eq!(init().unwrap().device_count().unwrap(), 1);
        drop(held);
    });
}

#[test]
fn a_bad_scenario_ends_the_process_with_its_place() {
    const TEST: &str = "a_bad_scenario_ends_the_process_with_its_place";
    const INSIDE: &str = "FAKE_NVML_TEST_BAD_SCENARIO";
    if let Some(library) = env::var_os(INSIDE) {
        let outcome = Nvml::builder().lib_path(&library).init();
        unreachable!("the process went on: {outcome:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bad.toml");
    fs::write(&file, "gpus = 1\n[[gpu]]\nindex = 0\nutilisation_percent = 5\n").unwrap();
    for (scenario, says) in [
        (file.clone(), ":4:1: unknown key `utilisation_percent`; did you mean `utilization_percent`?"),
        (directory.path().join("none.toml"), "GPUMON_FAKE_NVML_SCENARIO"),
    ] {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(INSIDE, fake_nvml::install(directory.path(), &[]))
            .env("GPUMON_FAKE_NVML_SCENARIO", &scenario)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        let line = error.lines().find(|line| line.starts_with("fake NVML: ")).unwrap_or_else(|| panic!("{error}"));
        assert!(line.contains(scenario.to_str().unwrap()) && line.contains(says), "{line}");
    }
}
