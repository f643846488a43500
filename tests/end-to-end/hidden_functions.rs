//! Every function of NVML missing in turn, as in a library that has never had it: what only it gives is absent, and
//! all the rest is as it was.

use std::collections::BTreeSet;

use gpumon_probe::{model::now_ms, vendor::sim::FUNCTIONS};

use crate::support::{Fake, Records, complains_of_nothing, complete, given_by, in_parallel, is_of, stderr};

/// What the program cannot do without; it says so.
const NEEDED: [&str; 2] = ["nvmlInit_v2", "nvmlDeviceGetCount_v2"];

/// One GPU that has everything, one with a MIG device, one without GPM. The driver's buffers are full.
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

fn collect(fake: &Fake) -> Records {
    fake.collect(&["--count", "3", "--interval-ms", "150"])
}

/// What `run` lacks of what `whole` has; everything else must be the same.
fn lost(function: &str, whole: &Records, run: &Records) -> BTreeSet<String> {
    let mut lost = BTreeSet::new();
    for gpu in 0..3 {
        let ((before, _), (after, _)) = (whole.readings(gpu), run.readings(gpu));
        lost.extend(before.keys().filter(|path| !after.contains_key(*path)).cloned());
        for (path, value) in after.iter().filter(|(path, _)| path.starts_with("gpu.")) {
            assert_eq!(before.get(path), Some(value), "{path} of GPU {gpu} without {function}");
        }
    }
    if function != "nvmlDeviceGetUUID" && function != "nvmlDeviceGetHandleByIndex_v2" {
        assert_eq!(run.identities(), whole.identities(), "without {function}");
    }
    assert_eq!(run.identities().iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1, 2], "{function}");
    let metrics = |run: &Records| {
        run.of("trace").map(|trace| trace["metric"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    lost.extend(metrics(whole).difference(&metrics(run)).map(|metric| format!("trace.{metric}")));
    let links = |run: &Records| run.last("inventory")["topology"].to_string();
    if links(run) != links(whole) {
        lost.insert("topology".to_owned());
    }
    lost
}

/// How the loss differs from what only this function gives.
fn difference(function: &str, scenario: &str, whole: &Records) -> Vec<String> {
    let lost = lost(function, whole, &collect(&Fake::without(scenario, &[function])));
    let given = given_by(function);
    let more = lost.iter().filter(|path| !given.iter().any(|given| is_of(path, given))).cloned();
    let less = given.iter().filter(|given| !lost.iter().any(|path| is_of(path, given)));
    let less = less.map(|given| format!("still there: {given}"));
    more.chain(less).map(|what| format!("without {function}: {what}")).collect()
}

#[test]
fn a_library_without_a_function_lacks_what_only_that_gives() {
    let scenario = scenario();
    let whole = complete(|| collect(&Fake::new(&scenario)));
    let functions: Vec<_> = FUNCTIONS.iter().filter(|function| !NEEDED.contains(*function)).collect();
    in_parallel(4, &functions, |function| complains_of_nothing(|| difference(function, &scenario, &whole)));
}

#[test]
fn a_library_that_cannot_be_used_at_all_is_told_from_one_that_is_not_there() {
    for function in NEEDED {
        let output = Fake::without("gpus = 2", &[function]).gpumon(&["--json"]).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(12), "without {function}: {message}");
        assert!(message.contains("cannot load") && message.contains("too old"), "without {function}: {message}");
    }
}
