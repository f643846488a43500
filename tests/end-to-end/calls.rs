//! The number of driver calls: expensive calls are rare, and unsupported calls are hardly ever
//! repeated.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use crate::support::{Fake, Server, eventually};

/// The number of calls for each function, by GPU index or `system`.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

/// Returns the calls of a run with this many samples. The fake library writes its counts once a
/// second.
fn calls(beats: u32, interval: Duration) -> Calls {
    let pid = std::process::id();
    let fake = Fake::new(&format!(
        "gpus = 3\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n\
         [[fault]]\nkind = \"lost\"\ngpu = 1\nfrom_s = 2.5\n"
    ));
    let counts = fake.path("counts.json");
    let (beats, interval_ms) = (beats.to_string(), interval.as_millis().to_string());
    let arguments = ["collect", "--count", &beats, "--interval-ms", &interval_ms];
    let output = fake
        .gpumon(&arguments)
        .env("GPUMON_FAKE_NVML_COUNTS", &counts)
        .output()
        .unwrap();
    assert!(output.status.success());
    counted(&counts)
}

fn counted(file: &Path) -> Calls {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[track_caller]
fn asked(calls: &Calls, function: &str, gpu: u32, expected: std::ops::RangeInclusive<u64>) {
    let count = calls
        .get(function)
        .and_then(|by_gpu| by_gpu.get(&gpu.to_string()))
        .copied()
        .unwrap_or(0);
    assert!(
        expected.contains(&count),
        "{function} of {gpu}: {count} times, and not {expected:?}"
    );
}

pub(crate) fn what_is_dear_is_asked_rarely() {
    let calls = calls(20, Duration::from_secs(1));
    // These are called for every sample.
    asked(&calls, "nvmlDeviceGetPowerUsage", 0, 15..=20);
    asked(&calls, "nvmlDeviceGetClockInfo", 0, 4 * 15..=4 * 20);
    asked(&calls, "nvmlGpmSampleGet", 0, 15..=20);
    asked(&calls, "nvmlDeviceGetProcessesUtilizationInfo", 0, 10..=20);
    asked(&calls, "nvmlDeviceGetTotalEnergyConsumption", 0, 3..=5);
    asked(&calls, "nvmlDeviceGetMarginTemperature", 0, 3..=5);
    // One buffer is read every two seconds, and two others every ten seconds.
    asked(&calls, "nvmlDeviceGetSamples", 0, 10..=17);
    // The power limit and six fields with throttling times are read every ten seconds. Other fields
    // are read for every sample.
    asked(&calls, "nvmlDeviceGetPowerManagementLimit", 0, 2..=3);
    asked(
        &calls,
        "nvmlDeviceGetFieldValues",
        0,
        15 + 2 * 7..=20 + 3 * 8,
    );
    // Functions that have a successor are never called.
    for function in [
        "Temperature",
        "CurrentClocksThrottleReasons",
        "SupportedClocksThrottleReasons",
        "ViolationStatus",
    ] {
        asked(&calls, &format!("nvmlDeviceGet{function}"), 0, 0..=0);
    }
    // Constant values and unsupported readings are read once.
    for function in [
        "UUID",
        "Name",
        "Serial",
        "FanSpeed",
        "NumFans",
        "RetiredPagesPendingStatus",
    ] {
        asked(&calls, &format!("nvmlDeviceGet{function}"), 0, 1..=1);
    }
    // GPM provides the PCIe throughput at no cost, and `nvmlShutdown` is only needed to let GPUs
    // sleep.
    asked(&calls, "nvmlDeviceGetPcieThroughput", 0, 0..=0);
    assert!(!calls.contains_key("nvmlShutdown"));

    // For a lost GPU, the only call is the attempt to open it every two seconds.
    asked(&calls, "nvmlDeviceGetHandleByIndex_v2", 1, 7..=12);
    asked(&calls, "nvmlDeviceGetPowerUsage", 1, 2..=5);
    asked(&calls, "nvmlDeviceGetUUID", 1, 1..=1);
    // Each GPU is opened by its own thread, for events (again if a GPU is lost), and for its links.
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

pub(crate) async fn while_nobody_watches_what_is_dear_is_asked_for_history_alone() {
    let pid = std::process::id();
    let process = |gpu, pid| {
        format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n")
    };
    let fake = Fake::new(&format!(
        "gpus = 2\n{}{}{}",
        process(0, pid),
        process(1, pid),
        process(1, 1)
    ));
    let file = fake.path("counts.json");
    let mut command = fake.gpumon(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("GPUMON_FAKE_NVML_COUNTS", &file);
    let server = Server::start(command);
    let within = async |seconds| {
        let before = counted(&file);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let mut calls = counted(&file);
        for (function, by_gpu) in &mut calls {
            for (gpu, count) in by_gpu {
                *count -= before
                    .get(function)
                    .and_then(|before| before.get(gpu))
                    .copied()
                    .unwrap_or(0);
            }
        }
        calls
    };
    // The first samples and one-time calls are over after this time.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let unwatched = within(30).await;
    asked(&unwatched, "nvmlDeviceGetPowerUsage", 0, 25..=31);
    asked(
        &unwatched,
        "nvmlDeviceGetCurrentClocksEventReasons",
        0,
        25..=31,
    );
    for dear in [
        "nvmlGpmSampleGet",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetMarginTemperature",
    ] {
        asked(&unwatched, dear, 0, 2..=4);
    }
    asked(&unwatched, "nvmlDeviceGetSamples", 0, 0..=0);
    asked(&unwatched, "nvmlDeviceGetPowerManagementLimit", 0, 0..=1);
    // Conditions need these readings.
    asked(&unwatched, "nvmlDeviceGetRemappedRows", 0, 2..=4);
    asked(
        &unwatched,
        "nvmlDeviceGetProcessesUtilizationInfo",
        0,
        2..=4,
    );
    // With several processes, this call is the only source of their activity, and it is cheap on
    // this GPU.
    asked(
        &unwatched,
        "nvmlDeviceGetProcessesUtilizationInfo",
        1,
        20..=31,
    );

    let mut stream = server.stream().await;
    let mut counters = 0;
    for _ in 0..5 {
        let sample = stream.next_of("sample").await;
        counters += u32::from(sample["gpus"][0]["activity"]["sm_percent"].is_number());
    }
    assert!(
        counters >= 4,
        "counters of now with each sample, and not {counters} of 5"
    );
    drop(stream);
    let watching = server.stream().await;
    let watched = within(12).await;
    asked(&watched, "nvmlGpmSampleGet", 0, 9..=13);
    asked(&watched, "nvmlDeviceGetProcessesUtilizationInfo", 0, 8..=13);
    asked(&watched, "nvmlDeviceGetSamples", 0, 5..=11);
    asked(&watched, "nvmlDeviceGetTotalEnergyConsumption", 0, 2..=3);
    asked(&watched, "nvmlDeviceGetPowerManagementLimit", 0, 1..=2);
    drop(watching);
    // A single request counts as watching for ten seconds.
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.get("/api/v1/snapshot");
    let looked = within(20).await;
    asked(&looked, "nvmlGpmSampleGet", 0, 9..=15);
    // A scrape does not count as watching, so its counters are up to ten seconds old.
    server.get("/metrics");
    let read = || {
        let calls = counted(&file);
        calls
            .get("nvmlGpmSampleGet")
            .and_then(|by_gpu| by_gpu.get("0"))
            .copied()
    };
    let before = read();
    let scraped = within(20).await;
    asked(&scraped, "nvmlGpmSampleGet", 0, 0..=3);
    eventually("counters are read without watchers", || read() > before);
}
