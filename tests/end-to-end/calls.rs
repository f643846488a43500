//! How much is asked of the driver: what is dear is asked rarely, what is not there next to never.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::Value;

use crate::support::Fake;

/// Calls per function, and per GPU as a number or `system`.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

/// What a run of so many beats asks. The fake library writes it down once a second.
fn calls(beats: u32, interval: Duration) -> Calls {
    let pid = std::process::id();
    let fake = Fake::new(&format!(
        "gpus = 3\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n\
         [[fault]]\nkind = \"lost\"\ngpu = 1\nfrom_s = 2.5\n"
    ));
    let counts = fake.path("counts.json");
    let (beats, interval_ms) = (beats.to_string(), interval.as_millis().to_string());
    let arguments = ["collect", "--count", &beats, "--interval-ms", &interval_ms];
    let output = fake.gpumon(&arguments).env("GPUMON_FAKE_NVML_COUNTS", &counts).output().unwrap();
    assert!(output.status.success());
    serde_json::from_value::<Value>(serde_json::from_str(&fs::read_to_string(counts).unwrap()).unwrap())
        .and_then(serde_json::from_value)
        .unwrap()
}

#[track_caller]
fn asked(calls: &Calls, function: &str, gpu: u32, expected: std::ops::RangeInclusive<u64>) {
    let count = calls.get(function).and_then(|by_gpu| by_gpu.get(&gpu.to_string())).copied().unwrap_or(0);
    assert!(expected.contains(&count), "{function} of {gpu}: {count} times, and not {expected:?}");
}

pub(crate) fn what_is_dear_is_asked_rarely() {
    let calls = calls(20, Duration::from_secs(1));
    // What stands in every sample.
    asked(&calls, "nvmlDeviceGetPowerUsage", 0, 15..=20);
    asked(&calls, "nvmlDeviceGetClockInfo", 0, 4 * 15..=4 * 20);
    asked(&calls, "nvmlGpmSampleGet", 0, 15..=20);
    asked(&calls, "nvmlDeviceGetProcessesUtilizationInfo", 0, 10..=20);
    asked(&calls, "nvmlDeviceGetTotalEnergyConsumption", 0, 3..=5);
    asked(&calls, "nvmlDeviceGetMarginTemperature", 0, 3..=5);
    // One buffer every two seconds, two every ten.
    asked(&calls, "nvmlDeviceGetSamples", 0, 10..=17);
    // Every ten seconds: the power limit that is asked for, and six times of throttling, a field each. Fields stand in
    // every sample, too.
    asked(&calls, "nvmlDeviceGetPowerManagementLimit", 0, 2..=3);
    asked(&calls, "nvmlDeviceGetFieldValues", 0, 15 + 2 * 7..=20 + 3 * 8);
    // Never, where there is a successor.
    for function in ["Temperature", "CurrentClocksThrottleReasons", "SupportedClocksThrottleReasons", "ViolationStatus"]
    {
        asked(&calls, &format!("nvmlDeviceGet{function}"), 0, 0..=0);
    }
    // Once, for what never changes and for what is not there.
    for function in ["UUID", "Name", "Serial", "FanSpeed", "NumFans", "RetiredPagesPendingStatus"] {
        asked(&calls, &format!("nvmlDeviceGet{function}"), 0, 1..=1);
    }
    // Never, for what GPM gives at no cost, and what is only there to wake GPUs up.
    asked(&calls, "nvmlDeviceGetPcieThroughput", 0, 0..=0);
    assert!(!calls.contains_key("nvmlShutdown"));

    // A lost GPU is opened every two seconds, and nothing else is asked of it.
    asked(&calls, "nvmlDeviceGetHandleByIndex_v2", 1, 7..=12);
    asked(&calls, "nvmlDeviceGetPowerUsage", 1, 2..=5);
    asked(&calls, "nvmlDeviceGetUUID", 1, 1..=1);
    // The others are opened by their thread, for events (again when one is lost), and for how they are linked.
    asked(&calls, "nvmlDeviceGetHandleByIndex_v2", 0, 1..=4);
}

pub(crate) fn ten_times_as_many_samples_are_not_ten_times_as_many_dear_calls() {
    let calls = calls(60, Duration::from_millis(100));
    asked(&calls, "nvmlDeviceGetPowerUsage", 0, 30..=60);
    asked(&calls, "nvmlDeviceGetProcessesUtilizationInfo", 0, 3..=15);
    asked(&calls, "nvmlDeviceGetTotalEnergyConsumption", 0, 1..=4);
    asked(&calls, "nvmlDeviceGetSamples", 0, 3..=12);
    asked(&calls, "nvmlDeviceGetPowerManagementLimit", 0, 1..=3);
}
