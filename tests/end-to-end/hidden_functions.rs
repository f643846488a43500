//! Libraries that lack functions of NVML. If a function is missing, only those readings are absent
//! that no other function provides. The last test removes all functions that do not exist in a
//! newer driver.

use std::collections::BTreeSet;

use gpumon_probe::{model::now_ms, vendor::sim::FUNCTIONS};
use serde_json::Value;

use crate::support::{
    FakeNvml, Records, assert_no_persistent_complaints, assert_refused_with,
    is_at_or_below_reading, readings_of_function, run_in_parallel, run_until_complete, stdout_text,
};

/// Functions without which the program cannot run.
const REQUIRED_FUNCTIONS: [&str; 2] = ["nvmlInit_v2", "nvmlDeviceGetCount_v2"];

/// The functions that `libnvidia-ml.so.1` of driver 610.57.04 exports.
const EXPORTS_OF_DRIVER_610: &str = include_str!("nvml-610.57.04.txt");

/// Functions that gpumon's code calls and that CUDA 14 removes. A removed function returns
/// `NVML_ERROR_DEPRECATED`.
const REMOVED_FUNCTIONS: [&str; 8] = [
    "nvmlDeviceGetApplicationsClock",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetDefaultApplicationsClock",
    "nvmlDeviceGetHandleBySerial",
    "nvmlDeviceGetPowerManagementMode",
    "nvmlDeviceGetSupportedClocksThrottleReasons",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetViolationStatus",
];
const DEPRECATED_CODE: u32 = 26;

/// Returns a scenario with one GPU that supports everything, one with a MIG device, and one without
/// GPM. The driver's buffers are full.
fn full_scenario() -> String {
    let (pid, start_ms) = (std::process::id(), now_ms() - 60_000);
    format!(
        r#"start_ms = {start_ms}
        [[gpu]]
        index = 0
        fans = 1
        nvlinks = 2
        accounting = true
        utilization_percent = 50
        remapped_rows = {{ correctable = 1 }}
        retired_pages = {{ single_bit = 1 }}
        [[process]]
        gpu = 0
        pid = {pid}
        memory = "1 GiB"
        sm_percent = 50
        [[gpu]]
        index = 1
        mig = [{{ profile = "3g.71gb", gpu_instance = 2 }}]
        [[gpu]]
        index = 2
        architecture = "ampere"
        "#
    )
}

fn collect_records(fake: &FakeNvml, samples: u32) -> Records {
    fake.collect(&["--count", &samples.to_string(), "--interval-ms", "150"])
}

/// Returns the readings that `whole` has and `run` lacks. All other readings must be the same.
fn find_lost_readings(function: &str, whole: &Records, run: &Records) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    for gpu in 0..3 {
        let ((before, _), (after, _)) = (whole.classify_readings(gpu), run.classify_readings(gpu));
        lost.extend(
            before
                .keys()
                .filter(|path| !after.contains_key(*path))
                .cloned(),
        );
        for (path, value) in after.iter().filter(|(path, _)| path.starts_with("gpu.")) {
            assert_eq!(
                before.get(path),
                Some(value),
                "{path} of GPU {gpu} differs without {function}"
            );
        }
    }
    if function != "nvmlDeviceGetUUID" && function != "nvmlDeviceGetHandleByIndex_v2" {
        assert_eq!(
            run.gpu_identities(),
            whole.gpu_identities(),
            "without {function}"
        );
    }
    assert_eq!(
        run.gpu_identities()
            .iter()
            .map(|(index, _)| *index)
            .collect::<Vec<_>>(),
        [0, 1, 2],
        "{function}"
    );
    let metrics = |run: &Records| {
        run.records_of_type("trace")
            .map(|trace| trace["metric"].as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    lost.extend(
        metrics(whole)
            .difference(&metrics(run))
            .map(|metric| format!("trace.{metric}")),
    );
    let links = |run: &Records| run.last_record_of_type("inventory")["topology"].to_string();
    if links(run) != links(whole) {
        lost.insert("topology".to_owned());
    }
    lost
}

/// Returns readings that are lost although the function does not provide them, and readings that
/// are still there although only this function provides them.
fn find_unexpected_losses(
    function: &str,
    scenario: &str,
    whole: &Records,
    samples: u32,
) -> Vec<String> {
    let lost = find_lost_readings(
        function,
        whole,
        &collect_records(&FakeNvml::without_functions(scenario, &[function]), samples),
    );
    let given = readings_of_function(function);
    // If the items of a list cannot be read, the list itself is absent.
    let is_list = |path: &str, given: &str| given.strip_suffix("[]") == Some(path);
    let is_given = |path: &str| {
        given
            .iter()
            .any(|given| is_at_or_below_reading(path, given) || is_list(path, given))
    };
    let more = lost.iter().filter(|path| !is_given(path)).cloned();
    let less = given
        .iter()
        .filter(|given| !lost.iter().any(|path| is_at_or_below_reading(path, given)));
    let less = less.map(|given| format!("still there: {given}"));
    more.chain(less)
        .map(|what| format!("without {function}: {what}"))
        .collect()
}

#[test]
fn missing_function_removes_only_its_readings() {
    let scenario = full_scenario();
    let whole = run_until_complete(|samples| collect_records(&FakeNvml::new(&scenario), samples));
    let functions: Vec<_> = FUNCTIONS
        .iter()
        .filter(|function| !REQUIRED_FUNCTIONS.contains(*function))
        .collect();
    run_in_parallel(4, &functions, |function| {
        assert_no_persistent_complaints(|samples| {
            find_unexpected_losses(function, &scenario, &whole, samples)
        });
    });
}

#[test]
fn unusable_and_missing_libraries_have_different_errors() {
    for function in REQUIRED_FUNCTIONS {
        assert_refused_with(
            FakeNvml::without_functions("gpus = 2", &[function]).gpumon_command(&["--json"]),
            12,
            &["cannot load", "too old"],
        );
    }
}

/// Returns the paths of all absent readings in `gpumon --json`.
fn find_absent_readings(value: &Value, path: &str) -> BTreeSet<String> {
    let below =
        |(name, value): (String, &Value)| find_absent_readings(value, &format!("{path}.{name}"));
    match value {
        Value::Object(fields) if fields.contains_key("absent") => [path.to_owned()].into(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .flat_map(below)
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .flat_map(below)
            .collect(),
        _ => BTreeSet::new(),
    }
}

/// Returns the lines of `nvidia-smi -q` without a value, each with its section.
fn lines_without_value(fake: &FakeNvml) -> BTreeSet<String> {
    let log = stdout_text(&fake.gpumon_command(&["smi", "-q"]).output().unwrap());
    assert!(log.lines().count() > 300, "{log}");
    let mut section = "";
    let mut without = BTreeSet::new();
    for line in log.lines() {
        match line.split_once(" : ") {
            None => section = line.trim(),
            Some((
                _,
                "N/A"
                | "Function Not Found"
                | "Unknown Error"
                | "Requested functionality has been deprecated",
            )) => {
                without.insert(format!("{section}: {line}"));
            }
            Some(_) => {}
        }
    }
    without
}

#[test]
fn readings_use_successors_of_functions_newer_driver_removed() {
    let scenario = full_scenario();
    let not_in_610: Vec<&str> = FUNCTIONS
        .iter()
        .copied()
        .filter(|name| !EXPORTS_OF_DRIVER_610.lines().any(|line| line == *name))
        .collect();
    let whole = FakeNvml::new(&scenario);
    let returns = REMOVED_FUNCTIONS
        .map(|function| format!("{function} = {DEPRECATED_CODE}\n"))
        .concat();
    let drivers = [
        (
            "driver 610",
            FakeNvml::without_functions(&scenario, &not_in_610),
            false,
        ),
        (
            "no removed function",
            FakeNvml::without_functions(&scenario, &[&not_in_610[..], &REMOVED_FUNCTIONS].concat()),
            true,
        ),
        (
            "removed functions return an error",
            FakeNvml::new(&format!("{scenario}[returns]\n{returns}")),
            true,
        ),
    ];
    let collected = run_until_complete(|samples| collect_records(&whole, samples));
    let (once, log) = (
        find_absent_readings(&whole.read_json(), ""),
        lines_without_value(&whole),
    );
    for (driver, fake, is_without_application_clocks) in drivers {
        // Application clocks are expected to be missing. No newer function replaces the functions
        // that report them.
        let is_known = |what: &String| {
            let is_application_clock =
                what.contains(".application_clocks.") || what.contains("Applications Clocks: ");
            is_without_application_clocks && is_application_clock
        };
        assert_no_persistent_complaints(|samples| {
            let mut lost = find_lost_readings(driver, &collected, &collect_records(&fake, samples));
            lost.extend(
                find_absent_readings(&fake.read_json(), "")
                    .difference(&once)
                    .cloned(),
            );
            lost.extend(lines_without_value(&fake).difference(&log).cloned());
            lost.retain(|what| !is_known(what));
            lost.into_iter()
                .map(|what| format!("{driver}: {what}"))
                .collect()
        });
    }
}
