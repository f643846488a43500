//! Counts the calls to the driver: expensive calls are rare, and a call that is not supported is
//! hardly ever repeated.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use crate::support::{FakeNvml, Server, wait_for_condition};

/// The number of calls for each function, by GPU index or `system`.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

/// Returns the calls that a run makes in this number of samples. The fake library writes its counts
/// once a second.
fn run_and_count_calls(beats: u32, interval: Duration) -> Calls {
    let pid = std::process::id();
    let fake = FakeNvml::new(&format!(
        "gpus = 3\n[[process]]\ngpu = 0\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n\
         [[fault]]\nkind = \"lost\"\ngpu = 1\nfrom_s = 2.5\n"
    ));
    let counts = fake.path("counts.json");
    let (beats, interval_ms) = (beats.to_string(), interval.as_millis().to_string());
    let arguments = ["collect", "--count", &beats, "--interval-ms", &interval_ms];
    let output = fake
        .gpumon_command(&arguments)
        .env("GPUMON_FAKE_NVML_COUNTS", &counts)
        .output()
        .unwrap();
    assert!(output.status.success());
    read_counts(&counts)
}

fn read_counts(file: &Path) -> Calls {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[track_caller]
fn assert_call_count(
    calls: &Calls,
    function: &str,
    gpu: u32,
    expected: std::ops::RangeInclusive<u64>,
) {
    let count = calls
        .get(function)
        .and_then(|by_gpu| by_gpu.get(&gpu.to_string()))
        .copied()
        .unwrap_or(0);
    assert!(
        expected.contains(&count),
        "{function} was called {count} times for {gpu}, instead of {expected:?}"
    );
}

pub(crate) fn expensive_calls_are_rare() {
    let calls = run_and_count_calls(20, Duration::from_secs(1));
    // These functions are called for every sample.
    assert_call_count(&calls, "nvmlDeviceGetPowerUsage", 0, 15..=20);
    assert_call_count(&calls, "nvmlDeviceGetClockInfo", 0, 4 * 15..=4 * 20);
    assert_call_count(&calls, "nvmlGpmSampleGet", 0, 15..=20);
    assert_call_count(&calls, "nvmlDeviceGetProcessesUtilizationInfo", 0, 10..=20);
    assert_call_count(&calls, "nvmlDeviceGetTotalEnergyConsumption", 0, 3..=5);
    assert_call_count(&calls, "nvmlDeviceGetMarginTemperature", 0, 3..=5);
    // One buffer is read every two seconds, and two others every ten seconds.
    assert_call_count(&calls, "nvmlDeviceGetSamples", 0, 10..=17);
    // The power limit and six fields with throttling times are read every ten seconds. Other fields
    // are read for every sample.
    assert_call_count(&calls, "nvmlDeviceGetPowerManagementLimit", 0, 2..=3);
    assert_call_count(
        &calls,
        "nvmlDeviceGetFieldValues",
        0,
        15 + 2 * 7..=20 + 3 * 8,
    );
    // Functions that newer functions have replaced are never called.
    for function in [
        "Temperature",
        "CurrentClocksThrottleReasons",
        "SupportedClocksThrottleReasons",
        "ViolationStatus",
    ] {
        assert_call_count(&calls, &format!("nvmlDeviceGet{function}"), 0, 0..=0);
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
        assert_call_count(&calls, &format!("nvmlDeviceGet{function}"), 0, 1..=1);
    }
    // GPM provides the PCIe throughput at no cost. `nvmlShutdown` is only needed to let idle GPUs
    // sleep.
    assert_call_count(&calls, "nvmlDeviceGetPcieThroughput", 0, 0..=0);
    assert!(!calls.contains_key("nvmlShutdown"));

    // For a lost GPU, the only call is the one that tries to open it, every two seconds.
    assert_call_count(&calls, "nvmlDeviceGetHandleByIndex_v2", 1, 7..=12);
    assert_call_count(&calls, "nvmlDeviceGetPowerUsage", 1, 2..=5);
    assert_call_count(&calls, "nvmlDeviceGetUUID", 1, 1..=1);
    // Each GPU is opened several times: by its own thread, to read its links, and to wait for
    // events. When a GPU is lost, gpumon opens all GPUs again to wait for their events.
    assert_call_count(&calls, "nvmlDeviceGetHandleByIndex_v2", 0, 1..=4);
}

pub(crate) fn faster_sampling_adds_few_expensive_calls() {
    let calls = run_and_count_calls(60, Duration::from_millis(100));
    assert_call_count(&calls, "nvmlDeviceGetPowerUsage", 0, 30..=60);
    assert_call_count(&calls, "nvmlDeviceGetProcessesUtilizationInfo", 0, 3..=15);
    assert_call_count(&calls, "nvmlDeviceGetTotalEnergyConsumption", 0, 1..=4);
    assert_call_count(&calls, "nvmlDeviceGetSamples", 0, 3..=12);
    assert_call_count(&calls, "nvmlDeviceGetPowerManagementLimit", 0, 1..=3);
}

pub(crate) async fn unwatched_server_makes_expensive_calls_only_for_history() {
    let pid = std::process::id();
    let process = |gpu, pid| {
        format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"1 GiB\"\nsm_percent = 40\n")
    };
    let fake = FakeNvml::new(&format!(
        "gpus = 2\n{}{}{}",
        process(0, pid),
        process(1, pid),
        process(1, 1)
    ));
    let file = fake.path("counts.json");
    let mut command = fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("GPUMON_FAKE_NVML_COUNTS", &file);
    let server = Server::start(command);
    let within = async |seconds| {
        let before = read_counts(&file);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let mut calls = read_counts(&file);
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
    assert_call_count(&unwatched, "nvmlDeviceGetPowerUsage", 0, 25..=31);
    assert_call_count(
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
        assert_call_count(&unwatched, dear, 0, 2..=4);
    }
    assert_call_count(&unwatched, "nvmlDeviceGetSamples", 0, 0..=0);
    assert_call_count(&unwatched, "nvmlDeviceGetPowerManagementLimit", 0, 0..=1);
    // Conditions depend on these readings, so they are also read without clients.
    assert_call_count(&unwatched, "nvmlDeviceGetRemappedRows", 0, 2..=4);
    assert_call_count(
        &unwatched,
        "nvmlDeviceGetProcessesUtilizationInfo",
        0,
        2..=4,
    );
    // With several processes, this call is the only source of their activity, and it is cheap on
    // this GPU.
    assert_call_count(
        &unwatched,
        "nvmlDeviceGetProcessesUtilizationInfo",
        1,
        20..=31,
    );

    let mut stream = server.open_stream().await;
    let mut counters = 0;
    for _ in 0..5 {
        let sample = stream.next_frame_of_type("sample").await;
        counters += u32::from(sample["gpus"][0]["activity"]["sm_percent"].is_number());
    }
    assert!(
        counters >= 4,
        "only {counters} of 5 samples have hardware counters"
    );
    drop(stream);
    let watching = server.open_stream().await;
    let watched = within(12).await;
    assert_call_count(&watched, "nvmlGpmSampleGet", 0, 9..=13);
    assert_call_count(&watched, "nvmlDeviceGetProcessesUtilizationInfo", 0, 8..=13);
    assert_call_count(&watched, "nvmlDeviceGetSamples", 0, 5..=11);
    assert_call_count(&watched, "nvmlDeviceGetTotalEnergyConsumption", 0, 2..=3);
    assert_call_count(&watched, "nvmlDeviceGetPowerManagementLimit", 0, 1..=2);
    drop(watching);
    // After a single request, the server behaves for ten seconds as if a client were watching.
    tokio::time::sleep(Duration::from_secs(2)).await;
    server.get("/api/v1/snapshot");
    let looked = within(20).await;
    assert_call_count(&looked, "nvmlGpmSampleGet", 0, 9..=15);
    // A scrape does not count as a client that is watching. So the server may answer it with
    // counters that are up to ten seconds old.
    server.get("/metrics");
    let read = || {
        let calls = read_counts(&file);
        calls
            .get("nvmlGpmSampleGet")
            .and_then(|by_gpu| by_gpu.get("0"))
            .copied()
    };
    let before = read();
    let scraped = within(20).await;
    assert_call_count(&scraped, "nvmlGpmSampleGet", 0, 0..=3);
    wait_for_condition("hardware counters are also read without clients", || {
        read() > before
    });
}
