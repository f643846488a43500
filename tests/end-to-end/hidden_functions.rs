//! Libraries that lack functions of NVML. Without one function, only the readings that it alone
//! provides are absent. The last test removes all functions that a newer driver lacks.

use std::collections::BTreeSet;

use gpumon_probe::{model::now_ms, vendor::sim::FUNCTIONS};
use serde_json::Value;

use crate::support::{
    Fake, Records, complains_of_nothing, complete, given_by, in_parallel, is_of, refused_with,
    stdout,
};

/// Functions without which the program cannot run.
const NEEDED: [&str; 2] = ["nvmlInit_v2", "nvmlDeviceGetCount_v2"];

/// The functions that `libnvidia-ml.so.1` of driver 610.57.04 exports.
const EXPORTED_BY_610: &str = include_str!("nvml-610.57.04.txt");

/// Functions used here that CUDA 14 removes. A removed function returns `NVML_ERROR_DEPRECATED`.
const REMOVED: [&str; 8] = [
    "nvmlDeviceGetApplicationsClock",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetDefaultApplicationsClock",
    "nvmlDeviceGetHandleBySerial",
    "nvmlDeviceGetPowerManagementMode",
    "nvmlDeviceGetSupportedClocksThrottleReasons",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetViolationStatus",
];
const DEPRECATED: u32 = 26;

/// Returns a scenario with one GPU that supports everything, one with a MIG device, and one without
/// GPM. The driver's buffers are full.
fn scenario() -> String {
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

fn collect(fake: &Fake, samples: u32) -> Records {
    fake.collect(&["--count", &samples.to_string(), "--interval-ms", "150"])
}

/// Returns the readings that `whole` has and `run` lacks. All other readings must be the same.
fn lost(function: &str, whole: &Records, run: &Records) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    for gpu in 0..3 {
        let ((before, _), (after, _)) = (whole.readings(gpu), run.readings(gpu));
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
                "{path} of GPU {gpu} without {function}"
            );
        }
    }
    if function != "nvmlDeviceGetUUID" && function != "nvmlDeviceGetHandleByIndex_v2" {
        assert_eq!(run.identities(), whole.identities(), "without {function}");
    }
    assert_eq!(
        run.identities()
            .iter()
            .map(|(index, _)| *index)
            .collect::<Vec<_>>(),
        [0, 1, 2],
        "{function}"
    );
    let metrics = |run: &Records| {
        run.of("trace")
            .map(|trace| trace["metric"].as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    lost.extend(
        metrics(whole)
            .difference(&metrics(run))
            .map(|metric| format!("trace.{metric}")),
    );
    let links = |run: &Records| run.last("inventory")["topology"].to_string();
    if links(run) != links(whole) {
        lost.insert("topology".to_owned());
    }
    lost
}

/// Returns the differences between the lost readings and those that only this function provides.
fn difference(function: &str, scenario: &str, whole: &Records, samples: u32) -> Vec<String> {
    let lost = lost(
        function,
        whole,
        &collect(&Fake::without(scenario, &[function]), samples),
    );
    let given = given_by(function);
    // If the items of a list cannot be read, the list itself is absent.
    let is_list = |path: &str, given: &str| given.strip_suffix("[]") == Some(path);
    let is_given = |path: &str| {
        given
            .iter()
            .any(|given| is_of(path, given) || is_list(path, given))
    };
    let more = lost.iter().filter(|path| !is_given(path)).cloned();
    let less = given
        .iter()
        .filter(|given| !lost.iter().any(|path| is_of(path, given)));
    let less = less.map(|given| format!("still there: {given}"));
    more.chain(less)
        .map(|what| format!("without {function}: {what}"))
        .collect()
}

#[test]
fn a_library_without_a_function_lacks_what_only_that_gives() {
    let scenario = scenario();
    let whole = complete(|samples| collect(&Fake::new(&scenario), samples));
    let functions: Vec<_> = FUNCTIONS
        .iter()
        .filter(|function| !NEEDED.contains(*function))
        .collect();
    in_parallel(4, &functions, |function| {
        complains_of_nothing(|samples| difference(function, &scenario, &whole, samples));
    });
}

#[test]
fn a_library_that_cannot_be_used_at_all_is_told_from_one_that_is_not_there() {
    for function in NEEDED {
        refused_with(
            Fake::without("gpus = 2", &[function]).gpumon(&["--json"]),
            12,
            &["cannot load", "too old"],
        );
    }
}

/// Returns the paths of all absent readings in `gpumon --json`.
fn absent(value: &Value, path: &str) -> BTreeSet<String> {
    let below = |(name, value): (String, &Value)| absent(value, &format!("{path}.{name}"));
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
fn lines_without_value(fake: &Fake) -> BTreeSet<String> {
    let log = stdout(&fake.gpumon(&["smi", "-q"]).output().unwrap());
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
fn a_newer_driver_loses_no_reading_that_has_a_successor() {
    let scenario = scenario();
    let not_in_610: Vec<&str> = FUNCTIONS
        .iter()
        .copied()
        .filter(|name| !EXPORTED_BY_610.lines().any(|line| line == *name))
        .collect();
    let whole = Fake::new(&scenario);
    let returns = REMOVED
        .map(|function| format!("{function} = {DEPRECATED}\n"))
        .concat();
    let drivers = [
        ("driver 610", Fake::without(&scenario, &not_in_610), false),
        (
            "no removed function",
            Fake::without(&scenario, &[&not_in_610[..], &REMOVED].concat()),
            true,
        ),
        (
            "removed functions return an error",
            Fake::new(&format!("{scenario}[returns]\n{returns}")),
            true,
        ),
    ];
    let collected = complete(|samples| collect(&whole, samples));
    let (once, log) = (absent(&whole.json(), ""), lines_without_value(&whole));
    for (driver, fake, is_without_application_clocks) in drivers {
        // Application clocks have no successor.
        let is_known = |what: &String| {
            let is_application_clock =
                what.contains(".application_clocks.") || what.contains("Applications Clocks: ");
            is_without_application_clocks && is_application_clock
        };
        complains_of_nothing(|samples| {
            let mut lost = lost(driver, &collected, &collect(&fake, samples));
            lost.extend(absent(&fake.json(), "").difference(&once).cloned());
            lost.extend(lines_without_value(&fake).difference(&log).cloned());
            lost.retain(|what| !is_known(what));
            lost.into_iter()
                .map(|what| format!("{driver}: {what}"))
                .collect()
        });
    }
}
