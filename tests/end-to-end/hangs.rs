//! Calls that hang: the GPU is marked, and other GPUs are not delayed.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{FakeNvml, Server, TEST_TIMEOUT, health_states, stdout_text};

fn gpu_uuids(sample: &Value) -> Vec<&Value> {
    sample["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| &gpu["uuid"])
        .collect()
}

/// Returns a fault in which this call for this GPU hangs for eight seconds.
fn make_hang_fault(gpu: u32, call: &str) -> String {
    format!("[[fault]]\nkind = \"hang\"\ngpu = {gpu}\ncall = \"{call}\"\nfrom_s = 2\nto_s = 10\n")
}

#[tokio::test]
async fn hanging_call_affects_only_its_gpu() {
    let calls = [
        make_hang_fault(1, "nvmlDeviceGetPowerUsage"),
        // The power limit is read every ten seconds. The second reading is within the first ten
        // seconds.
        make_hang_fault(2, "nvmlDeviceGetPowerManagementLimit"),
        make_hang_fault(3, "nvmlGpmSampleGet"),
        // The samples are read every two seconds.
        make_hang_fault(4, "nvmlDeviceGetSamples"),
    ];
    let waits = "[[fault]]\nkind = \"hang\"\ncall = \"nvmlEventSetWait_v2\"\n";
    let fake = FakeNvml::new(&format!("gpus = 6\n{}{waits}", calls.concat()));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let is_sample_with = |frame: &Value, expected: &[&str]| {
        frame["type"] == "sample" && health_states(frame) == expected
    };
    let well = stream
        .read_until(|frame| is_sample_with(frame, &["ok"; 6]))
        .await;
    let hung = stream
        .read_until(|frame| is_sample_with(frame, &["ok", "hung", "hung", "hung", "hung", "ok"]))
        .await;
    assert_eq!(
        gpu_uuids(&well),
        gpu_uuids(&hung),
        "indexes and UUIDs must not change"
    );
    assert!(
        hung["gpus"][1]["power"]["draw_watts"].is_number(),
        "the last known reading is kept"
    );
    let begun = Instant::now();
    assert_eq!(server.get("/api/v1/snapshot").status, 200);
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "requests must not wait for the driver"
    );
    let is_fresh = |frame: &Value, gpu: usize| {
        frame["gpus"][gpu]["at_ms"].as_u64() > hung["gpus"][gpu]["at_ms"].as_u64()
    };
    let next = stream
        .read_until(|frame| {
            frame["type"] == "sample" && [0, 5].iter().all(|gpu| is_fresh(frame, *gpu))
        })
        .await;
    for gpu in [0, 5] {
        assert!(next["gpus"][gpu]["power"]["draw_watts"].is_number());
        // Only one GPU at a time can use GPM, so the hanging GPU blocks GPM for the others. Their
        // readings without GPM are not blocked.
        assert_eq!(next["gpus"][gpu]["activity"]["absent"], "no_answer");
    }
    let back = stream
        .read_until(|frame| {
            is_sample_with(frame, &["ok"; 6])
                && frame["gpus"][0]["activity"]["sm_percent"].is_number()
        })
        .await;
    assert_eq!(gpu_uuids(&well), gpu_uuids(&back));
}

#[tokio::test]
async fn server_responds_while_driver_hangs_at_start() {
    let fake =
        FakeNvml::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ncall = \"nvmlInit_v2\"\nto_s = 3\n");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    assert_eq!(
        stream.next_frame_of_type("hello").await["collector"]["state"],
        "starting"
    );
    assert_eq!(
        (server.get("/healthz").status, server.get("/readyz").status),
        (200, 503)
    );
    let snapshot = server.get("/api/v1/snapshot").json();
    assert!(
        snapshot["sample"].is_null() && snapshot["collector"]["state"] == "starting",
        "{snapshot}"
    );
    assert!(
        !server.get("/metrics").body.contains("gpumon_gpu_power"),
        "there must be no values without readings"
    );
    // When the driver responds again, the same connection receives samples.
    let sample = stream.next_frame_of_type("sample").await;
    assert_eq!(health_states(&sample), ["ok", "ok"]);
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn server_exits_while_driver_hangs_at_start() {
    let fake = FakeNvml::new("gpus = 2\n[[fault]]\nkind = \"hang\"\ncall = \"nvmlInit_v2\"\n");
    let mut server = Server::start_with_fake(&fake, &[]);
    let (status, took) = server.terminate();
    assert!(
        status.success() && took < TEST_TIMEOUT,
        "after SIGTERM, the server ended with {status} in {took:?}"
    );
}

#[tokio::test]
async fn all_gpus_recover_after_simultaneous_loss() {
    let xids = "[[event]]\ngpu = 1\nat_s = 9\nkind = \"xid\"\ncode = 31\n";
    let lost = |gpu, span| format!("[[fault]]\nkind = \"lost\"\ngpu = {gpu}\n{span}\n");
    let all = [0, 1, 2]
        .map(|gpu| lost(gpu, "from_s = 2\nto_s = 4"))
        .concat();
    let fake = FakeNvml::new(&format!("gpus = 3\n{all}{}{xids}", lost(0, "from_s = 6")));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let is_sample_with = |frame: &Value, expected: &[&str]| {
        frame["type"] == "sample" && health_states(frame) == expected
    };
    let well = stream
        .read_until(|frame| is_sample_with(frame, &["ok"; 3]))
        .await;
    let gone = stream
        .read_until(|frame| is_sample_with(frame, &["lost"; 3]))
        .await;
    for gpu in gone["gpus"].as_array().unwrap() {
        assert_eq!(
            gpu["temperature"]["gpu_celsius"]["absent"], "gpu_lost",
            "the reading is absent instead of 0"
        );
        assert_eq!(gpu["processes"]["absent"], "gpu_lost");
    }
    let back = stream
        .read_until(|frame| is_sample_with(frame, &["ok"; 3]))
        .await;
    assert_eq!(
        (gpu_uuids(&well), gpu_uuids(&well)),
        (gpu_uuids(&gone), gpu_uuids(&back))
    );

    // The driver waits for events of all GPUs together, and a lost GPU makes this wait fail. Events
    // of the other GPUs must still arrive.
    stream
        .read_until(|frame| is_sample_with(frame, &["lost", "ok", "ok"]))
        .await;
    let xid = stream.read_until(|frame| frame["what"] == "xid").await;
    assert_eq!(
        (&xid["gpu"]["index"], &xid["gpu"]["uuid"], &xid["code"]),
        (&1.into(), gpu_uuids(&well)[1], &31.into())
    );
}

#[test]
fn gpu_hanging_at_start_does_not_delay_commands() {
    let fake = FakeNvml::new("gpus = 8\n[[fault]]\ngpu = 3\nkind = \"hang\"\n");
    let once = |form: &[&str]| {
        let begun = Instant::now();
        let shown = stdout_text(&fake.gpumon_command(form).output().unwrap());
        // The command takes 0.3 s on an idle machine. It would take ten seconds if it waited for
        // the hanging GPU.
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{form:?} took {:?}",
            begun.elapsed()
        );
        shown
    };
    for form in [&[][..], &["--short"]] {
        let shown = once(form);
        let is_whole = |line: &&str| {
            line.contains("H200") && line.contains(" %") && !line.contains("not responding")
        };
        assert_eq!(shown.lines().filter(is_whole).count(), 7, "{shown}");
        assert_eq!(shown.matches("not responding").count(), 1, "{shown}");
    }
    let rows = once(&["--csv", "--columns", "index,state,power_draw_watts"]);
    let is_whole = |row: &&str| row.split(',').nth(1) == Some("ok") && !row.ends_with(',');
    assert_eq!(rows.lines().skip(1).filter(is_whole).count(), 7, "{rows}");
    assert!(rows.lines().any(|row| row.starts_with("3,hung,")), "{rows}");
    let sample: Value = serde_json::from_str(&once(&["--json"])).unwrap();
    assert_eq!(
        health_states(&sample["sample"]),
        ["ok", "ok", "ok", "hung", "ok", "ok", "ok", "ok"]
    );
    assert_eq!(sample["details"].as_array().unwrap().len(), 7);
}

#[test]
fn command_waits_for_gpu_being_opened() {
    let opening =
        "[[fault]]\ngpu = 1\nkind = \"hang\"\ncall = \"nvmlDeviceGetHandleByIndex_v2\"\nto_s = 1\n";
    for scenario in [
        // The machine has a single GPU, and opening it takes a second.
        &format!("gpus = 1\n{}", opening.replace("gpu = 1", "gpu = 0")),
        // The driver answers immediately for this GPU, because another GPU is in use.
        &format!("gpus = 2\n[[gpu]]\nindex = 0\npersistence = false\n{opening}"),
    ] {
        let json = FakeNvml::new(scenario).read_json();
        assert!(
            health_states(&json["sample"])
                .iter()
                .all(|state| *state == "ok"),
            "{scenario}: {json}"
        );
        assert_eq!(
            json["details"].as_array().unwrap().len(),
            json["sample"]["gpus"].as_array().unwrap().len()
        );
    }
}
