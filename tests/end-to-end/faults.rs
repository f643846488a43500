//! GPUs that are lost or hang, and collectors that end: all other readings stay correct.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use gpumon_probe::{model::now_ms, surroundings::Surroundings, vendor::nvml::error::explain};
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, health_states, send_signal, wait_for_condition,
};

const ALL_OK: [&str; 8] = ["ok"; 8];

/// Returns whether the frame is a sample in which the GPUs have these states. Tests wait for such a
/// sample, because a GPU may answer late for a moment on a busy machine.
fn has_health_states(frame: &Value, expected: &[&str]) -> bool {
    frame["type"] == "sample" && health_states(frame) == expected
}

fn gpu_identities(sample: &Value) -> Vec<(u64, String)> {
    let gpus = sample["gpus"].as_array().unwrap().iter();
    gpus.map(|gpu| {
        (
            gpu["index"].as_u64().unwrap(),
            gpu["uuid"].as_str().unwrap().to_owned(),
        )
    })
    .collect()
}

#[tokio::test]
async fn lost_gpu_leaves_other_gpus_unchanged() {
    let fake =
        FakeNvml::new("gpus = 8\n[[fault]]\ngpu = 3\nkind = \"lost\"\nfrom_s = 5\nto_s = 9\n");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let whole = stream
        .read_until(|frame| has_health_states(frame, &ALL_OK))
        .await;
    let event = stream
        .read_until(|frame| frame["type"] == "event" && frame["what"] == "gpu_lost")
        .await;
    assert_eq!(event["gpu"]["index"], 3);
    let lost = stream
        .read_until(|frame| {
            has_health_states(frame, &["ok", "ok", "ok", "lost", "ok", "ok", "ok", "ok"])
        })
        .await;
    assert_eq!(
        gpu_identities(&whole),
        gpu_identities(&lost),
        "indexes and UUIDs must not change"
    );
    assert_eq!(
        lost["gpus"][3]["power"]["draw_watts"]["absent"], "gpu_lost",
        "the reading is absent instead of 0"
    );
    let later = stream
        .read_until(|frame| {
            let goes_on = |index: usize| {
                frame["gpus"][index]["at_ms"].as_u64() > lost["gpus"][index]["at_ms"].as_u64()
            };
            frame["type"] == "sample" && [0, 1, 2, 4, 5, 6, 7].into_iter().all(goes_on)
        })
        .await;
    for index in [0, 1, 2, 4, 5, 6, 7] {
        assert!(later["gpus"][index]["power"]["draw_watts"].is_number());
    }
    assert_eq!(
        later["gpus"][3]["health"]["since_ms"],
        lost["gpus"][3]["health"]["since_ms"]
    );
    stream
        .read_until(|frame| frame["type"] == "event" && frame["what"] == "gpu_back")
        .await;
    let back = stream
        .read_until(|frame| has_health_states(frame, &ALL_OK))
        .await;
    assert_eq!(gpu_identities(&whole), gpu_identities(&back));
}

#[tokio::test]
async fn hanging_gpu_is_reported_after_one_interval() {
    /// The time between two samples.
    const INTERVAL_MS: u64 = 1000;
    /// A busy machine may delay a sample.
    const MAX_APART_MS: u64 = 5000;
    let fake =
        FakeNvml::new("gpus = 8\n[[fault]]\ngpu = 5\nkind = \"hang\"\nfrom_s = 4.5\nto_s = 600\n");
    let mut server = Server::start_with_fake(&fake, &[]);
    let mut stream = server.open_stream().await;
    let expected = ["ok", "ok", "ok", "ok", "ok", "hung", "ok", "ok"];
    let mut sample_times = Vec::new();
    let flagged = stream
        .read_until(|frame| {
            sample_times.extend(
                frame["at_ms"]
                    .as_u64()
                    .filter(|_| frame["type"] == "sample"),
            );
            has_health_states(frame, &expected)
        })
        .await;
    let asked_ms = flagged["gpus"][5]["health"]["since_ms"].as_u64().unwrap();
    // A busy machine delays samples, so the test does not count them. Every sample that is taken at
    // least one interval after the call must report the GPU.
    let flagged_ms = flagged["at_ms"].as_u64().unwrap();
    let too_late = asked_ms + INTERVAL_MS..flagged_ms;
    let unreported = sample_times.iter().find(|at| too_late.contains(at));
    assert_eq!(unreported, None, "the call began at {asked_ms}");
    assert!(
        flagged["gpus"][5]["power"]["draw_watts"].is_number(),
        "the last readings are kept with their time"
    );
    assert!(flagged["gpus"][5]["at_ms"].as_u64().unwrap() < asked_ms);

    // Only the fastest of 20 requests is checked. A busy machine may delay some of them, but a
    // server that waits for the GPU would delay all of them.
    let fastest = (0..20)
        .map(|_| {
            let begun = Instant::now();
            let snapshot = server.get("/api/v1/snapshot");
            assert_eq!(
                snapshot.json()["sample"]["gpus"][5]["health"]["state"],
                "hung"
            );
            begun.elapsed()
        })
        .min()
        .unwrap();
    assert!(
        fastest < Duration::from_millis(50),
        "the snapshot took {fastest:?}"
    );

    let next = stream.next_frame_of_type("sample").await;
    let apart_ms = next["at_ms"].as_u64().unwrap() - flagged["at_ms"].as_u64().unwrap();
    assert!(apart_ms < MAX_APART_MS, "samples are {apart_ms} ms apart");
    for index in [0, 1, 2, 3, 4, 6, 7] {
        assert!(next["gpus"][index]["at_ms"].as_u64() > flagged["gpus"][index]["at_ms"].as_u64());
    }
    let (status, took) = server.terminate();
    assert!(
        status.success() && took < TEST_TIMEOUT,
        "after SIGTERM, the server ended with {status} in {took:?}"
    );
}

#[tokio::test]
async fn gpu_lost_at_start_keeps_its_index() {
    let fake = FakeNvml::new("gpus = 3\n[[fault]]\ngpu = 0\nkind = \"lost\"\n");
    let sample = &fake.read_json()["sample"];
    assert_eq!(health_states(sample), ["lost", "ok", "ok"]);
    assert_eq!(sample["gpus"][1]["index"], 1);
    assert!(sample["gpus"][0]["uuid"].is_null());
}

/// `nvmlReturn_t` codes that do not report a lost GPU: unknown, reset required, timeout, no
/// permission, not found, not supported.
const FAILURE_CODES: [u32; 6] = [999, 16, 10, 4, 6, 3];

/// For a while, all calls for each GPU but the first return errors. Each of these GPUs has its own
/// error code.
#[tokio::test]
async fn gpu_is_reported_if_all_its_calls_fail() {
    let begins_ms = now_ms();
    let full = "memory_used = \"139 GiB\"\n";
    let mut scenario = format!("gpus = 7\nstart_ms = {begins_ms}\n");
    for (gpu, code) in (1..).zip(FAILURE_CODES) {
        write!(
            scenario,
            "[[gpu]]\nindex = {gpu}\n{full}\
             [[fault]]\nkind = \"returns\"\ngpu = {gpu}\ncode = {code}\nfrom_s = 12\nto_s = 20\n"
        )
        .unwrap();
    }
    let fake = FakeNvml::new(&scenario);
    let rules = fake.path("alerts.toml");
    fs::write(
        &rules,
        "[[rule]]\nname = \"gone\"\nabsent = true\nfor = \"0s\"\nclear_for = \"0s\"\n",
    )
    .unwrap();
    let server = Server::start_with_fake(
        &fake,
        &["--interval-ms", "250", "--alerts", rules.to_str().unwrap()],
    );
    let mut stream = server.open_stream().await;
    let is_full = |frame: &Value, gpu: usize| {
        frame["gpus"][gpu]["conditions"]
            .to_string()
            .contains("memory_nearly_full")
    };
    let whole = stream
        .read_until(|frame| {
            frame["type"] == "sample"
                && (1..7).all(|gpu| is_full(frame, gpu))
                && health_states(frame) == ["ok"; 7]
        })
        .await;
    let mut failed = vec!["failed"; 7];
    failed[0] = "ok";
    let sample = stream
        .read_until(|frame| has_health_states(frame, &failed))
        .await;
    assert!(
        sample["at_ms"].as_u64().unwrap() < begins_ms + 20_000,
        "the GPU is only reported as failed while its calls fail"
    );
    assert_eq!(
        gpu_identities(&whole),
        gpu_identities(&sample),
        "indexes and UUIDs must not change"
    );
    for (gpu, code) in (1..).zip(FAILURE_CODES) {
        let health = &sample["gpus"][gpu]["health"];
        assert!(
            health["meaning"]
                .as_str()
                .unwrap()
                .contains(&format!("NVML error {code}")),
            "{health}"
        );
        assert!(!health["advice"].as_str().unwrap().is_empty(), "{health}");
        assert!(
            !is_full(&sample, gpu),
            "the condition ends if its reading is absent"
        );
        assert!(
            sample["gpus"][gpu]["memory"]["used_bytes"]["absent"].is_string(),
            "the reading is absent instead of old or 0"
        );
    }
    wait_for_condition("metrics report which GPUs respond", || {
        let metrics = server.get("/metrics").body;
        let is_up = |gpu: u32| {
            let name = format!("gpumon_gpu_up{{gpu=\"{gpu}\"");
            metrics
                .lines()
                .find(|line| line.starts_with(&name))?
                .rsplit(' ')
                .next()
        };
        is_up(0) == Some("1") && (1..7).all(|gpu| is_up(gpu) == Some("0"))
    });
    let firing = || {
        server.get("/api/v1/snapshot").json()["alerts"]
            .as_array()
            .map_or(0, Vec::len)
    };
    wait_for_condition("all alerts fire", || firing() == 6);
    assert_eq!(
        server.get("/readyz").status,
        200,
        "the server is ready because one GPU responds"
    );
    let events = server.get("/api/v1/snapshot").json()["events"].clone();
    let events: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["what"] == "gpu_failed")
        .collect();
    assert_eq!(events.len(), 6, "each failed GPU has one event: {events:?}");
    let unknown = events
        .iter()
        .find(|event| {
            event["meaning"]
                .as_str()
                .unwrap()
                .contains("(NVML error 999)")
        })
        .unwrap();
    assert_eq!(
        unknown["advice"],
        explain(999, Surroundings::detect_current()).cure
    );
    let back = stream
        .read_until(|frame| has_health_states(frame, &["ok"; 7]))
        .await;
    assert_eq!(gpu_identities(&whole), gpu_identities(&back));
    assert!(back["gpus"][6]["memory"]["used_bytes"].is_number());
    wait_for_condition("no alert fires", || firing() == 0);
    let log = server.end_and_read_log();
    assert!(
        log.contains("GPU 1 cannot be read: an unknown error (NVML error 999); "),
        "{log}"
    );
    assert!(log.contains("GPU 1 responds again"), "{log}");
}

/// After `systemctl daemon-reload`, a container has no access to its GPUs.
#[tokio::test]
async fn server_with_only_failing_gpus_is_not_ready() {
    let fault = |gpu| {
        format!("[[fault]]\nkind = \"returns\"\ngpu = {gpu}\ncode = 999\nfrom_s = 4\nto_s = 10\n")
    };
    let fake = FakeNvml::new(&format!(
        "gpus = 2\nstart_ms = {}\n{}{}",
        now_ms(),
        fault(0),
        fault(1)
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    stream
        .read_until(|frame| has_health_states(frame, &["ok", "ok"]))
        .await;
    assert_eq!(server.get("/readyz").status, 200);
    stream
        .read_until(|frame| has_health_states(frame, &["failed", "failed"]))
        .await;
    let answer = server.get("/readyz");
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(
        answer
            .body
            .contains("no GPU responds: an unknown error (NVML error 999); "),
        "{}",
        answer.body
    );
    stream
        .read_until(|frame| has_health_states(frame, &["ok", "ok"]))
        .await;
    wait_for_condition("the server is ready again", || {
        server.get("/readyz").status == 200
    });
}

/// The library can answer some calls from its own memory, even for a GPU that has failed.
#[tokio::test]
async fn gpu_without_readings_after_opening_counts_as_failed() {
    let scenario = "gpus = 2\n[[fault]]\nkind = \"returns\"\ngpu = 1\ncode = 999\nfrom_s = 1\n\
                    [[fault]]\nkind = \"hang\"\ngpu = 1\ncall = \"nvmlDeviceGetUUID\"\nto_s = 1\n";
    let fake = FakeNvml::new(scenario);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    server
        .open_stream()
        .await
        .read_until(|frame| has_health_states(frame, &["ok", "failed"]))
        .await;
}

/// Sends a signal to the collector. Checks that clients first receive the reason for the
/// collector's end and then receive samples of a new collector.
async fn assert_collector_is_replaced_after(signal_name: &str, why: &str) {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    let first = server.collector_pid().expect("a collector runs");
    send_signal(signal_name, first);
    let reported = stream
        .read_until(|frame| frame["state"] == "restarting")
        .await;
    assert!(
        reported["message"].as_str().unwrap().contains(why),
        "{reported}"
    );
    stream
        .read_until(|frame| frame["type"] == "collector" && frame["state"] == "running")
        .await;
    stream
        .read_until(|frame| has_health_states(frame, &["ok", "ok"]))
        .await;
    assert_ne!(server.collector_pid(), Some(first));
}

#[tokio::test]
async fn killed_collector_is_replaced_and_clients_are_notified() {
    assert_collector_is_replaced_after("-KILL", "signal: 9").await;
}

#[tokio::test]
async fn silent_collector_is_replaced() {
    assert_collector_is_replaced_after("-STOP", "it has sent nothing for").await;
}

/// Kills the server, and waits until its collector has also ended.
fn assert_collector_ends_with_killed_server(mut server: Server) {
    wait_for_condition("the collector is running", || {
        server.collector_pid().is_some()
    });
    let collector = server.collector_pid().unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    wait_for_condition("the collector has ended", || {
        !std::path::Path::new(&format!("/proc/{collector}")).exists()
    });
}

#[test]
fn collector_ends_with_killed_server() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "100"]);
    assert_collector_ends_with_killed_server(server);
}

#[tokio::test]
async fn server_continues_after_its_log_pipe_closes() {
    let fake = FakeNvml::new("gpus = 1");
    let mut server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    server.close_log();
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    send_signal("-KILL", server.collector_pid().expect("a collector runs"));
    stream
        .read_until(|frame| frame["state"] == "restarting")
        .await;
    stream.read_until(|frame| frame["state"] == "running").await;
    stream.next_frame_of_type("sample").await;
    let (status, _) = server.terminate();
    assert!(status.success(), "{status}");
}

#[test]
fn hanging_collector_ends_with_killed_server() {
    let fake = FakeNvml::new("gpus = 1\n[[fault]]\nkind = \"hang\"\ncall = \"nvmlInit_v2\"\n");
    let server = Server::start_with_fake(&fake, &[]);
    assert_collector_ends_with_killed_server(server);
}

#[tokio::test]
async fn hanging_driver_version_query_does_not_stop_readings() {
    let scenario = "gpus = 3\n[[fault]]\ngpu = 1\nkind = \"lost\"\nto_s = 4\n[[fault]]\nkind = \
                    \"hang\"\ncall = \"nvmlSystemGetDriverVersion\"\nfrom_s = 3\n";
    let fake = FakeNvml::new(scenario);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    stream
        .read_until(|frame| has_health_states(frame, &["ok", "lost", "ok"]))
        .await;
    let inventory = stream
        .read_until(|frame| frame["type"] == "inventory" && frame["gpus"][1]["uuid"].is_string())
        .await;
    assert!(inventory["platform"]["driver_version"].is_string());
    stream
        .read_until(|frame| has_health_states(frame, &["ok", "ok", "ok"]))
        .await;
}
