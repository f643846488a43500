//! GPUs that are lost or hang, and collectors that end: all other readings stay correct.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use gpumon_probe::{model::now_ms, surroundings::Surroundings, vendor::nvml::return_code::explain};
use serde_json::Value;

use crate::support::{Fake, PATIENCE, Server, eventually, health, signal};

const ALL_WELL: [&str; 8] = ["ok"; 8];

/// Returns whether the frame is a sample with these states. Tests wait for such a sample, because
/// on a busy machine a GPU may be late for a moment.
fn is_sample_with(frame: &Value, expected: &[&str]) -> bool {
    frame["type"] == "sample" && health(frame) == expected
}

fn identities(sample: &Value) -> Vec<(u64, String)> {
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
async fn a_lost_gpu_shows_as_lost_and_the_others_keep_their_index_and_go_on() {
    let fake = Fake::new("gpus = 8\n[[fault]]\ngpu = 3\nkind = \"lost\"\nfrom_s = 5\nto_s = 9\n");
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    let mut stream = server.stream().await;
    let whole = stream.until(|frame| is_sample_with(frame, &ALL_WELL)).await;
    let event = stream
        .until(|frame| frame["type"] == "event" && frame["what"] == "gpu_lost")
        .await;
    assert_eq!(event["gpu"]["index"], 3);
    let lost = stream
        .until(|frame| is_sample_with(frame, &["ok", "ok", "ok", "lost", "ok", "ok", "ok", "ok"]))
        .await;
    assert_eq!(
        identities(&whole),
        identities(&lost),
        "no index and no UUID changes"
    );
    assert_eq!(
        lost["gpus"][3]["power"]["draw_watts"]["absent"], "gpu_lost",
        "never a 0"
    );
    let later = stream
        .until(|frame| {
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
        .until(|frame| frame["type"] == "event" && frame["what"] == "gpu_back")
        .await;
    let back = stream.until(|frame| is_sample_with(frame, &ALL_WELL)).await;
    assert_eq!(identities(&whole), identities(&back));
}

#[tokio::test]
async fn a_hung_gpu_is_flagged_within_two_intervals_and_holds_up_nobody() {
    const INTERVAL_MS: u64 = 1000;
    let fake =
        Fake::new("gpus = 8\n[[fault]]\ngpu = 5\nkind = \"hang\"\nfrom_s = 4.5\nto_s = 600\n");
    let mut server = Server::over(&fake, &[]);
    let mut stream = server.stream().await;
    let expected = ["ok", "ok", "ok", "ok", "ok", "hung", "ok", "ok"];
    let flagged = stream.until(|frame| is_sample_with(frame, &expected)).await;
    let asked_ms = flagged["gpus"][5]["health"]["since_ms"].as_u64().unwrap();
    let flagged_after_ms = flagged["at_ms"].as_u64().unwrap() - asked_ms;
    assert!(
        flagged_after_ms <= 2 * INTERVAL_MS,
        "flagged after {flagged_after_ms} ms"
    );
    assert!(
        flagged["gpus"][5]["power"]["draw_watts"].is_number(),
        "its last readings stay, with their time"
    );
    assert!(flagged["gpus"][5]["at_ms"].as_u64().unwrap() < asked_ms);

    // The fastest of 20 requests is checked: a busy machine may delay some of them, but a server
    // that waits for the GPU would delay all.
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

    let next = stream.next_of("sample").await;
    let apart_ms = next["at_ms"].as_u64().unwrap() - flagged["at_ms"].as_u64().unwrap();
    assert!(
        apart_ms < 2 * INTERVAL_MS,
        "samples are {apart_ms} ms apart"
    );
    for index in [0, 1, 2, 3, 4, 6, 7] {
        assert!(next["gpus"][index]["at_ms"].as_u64() > flagged["gpus"][index]["at_ms"].as_u64());
    }
    let (status, took) = server.terminate();
    assert!(
        status.success() && took < PATIENCE,
        "SIGTERM is obeyed: {status} in {took:?}"
    );
}

#[tokio::test]
async fn a_gpu_that_is_lost_from_the_start_has_its_place() {
    let fake = Fake::new("gpus = 3\n[[fault]]\ngpu = 0\nkind = \"lost\"\n");
    let sample = &fake.json()["sample"];
    assert_eq!(health(sample), ["lost", "ok", "ok"]);
    assert_eq!(sample["gpus"][1]["index"], 1);
    assert!(sample["gpus"][0]["uuid"].is_null());
}

/// `nvmlReturn_t` codes that do not report a lost GPU: unknown, reset required, timeout, no
/// permission, not found, not supported.
const CODES: [u32; 6] = [999, 16, 10, 4, 6, 3];

/// All calls for each GPU except the first return errors for a while, with a different code for
/// each GPU.
#[tokio::test]
async fn gpu_whose_calls_all_fail_is_reported() {
    let begins_ms = now_ms();
    let full = "memory_used = \"139 GiB\"\n";
    let mut scenario = format!("gpus = 7\nstart_ms = {begins_ms}\n");
    for (gpu, code) in (1..).zip(CODES) {
        write!(
            scenario,
            "[[gpu]]\nindex = {gpu}\n{full}\
             [[fault]]\nkind = \"returns\"\ngpu = {gpu}\ncode = {code}\nfrom_s = 12\nto_s = 20\n"
        )
        .unwrap();
    }
    let fake = Fake::new(&scenario);
    let rules = fake.path("alerts.toml");
    fs::write(
        &rules,
        "[[rule]]\nname = \"gone\"\nabsent = true\nfor = \"0s\"\nclear_for = \"0s\"\n",
    )
    .unwrap();
    let server = Server::over(
        &fake,
        &["--interval-ms", "250", "--alerts", rules.to_str().unwrap()],
    );
    let mut stream = server.stream().await;
    let is_full = |frame: &Value, gpu: usize| {
        frame["gpus"][gpu]["conditions"]
            .to_string()
            .contains("memory_nearly_full")
    };
    let whole = stream
        .until(|frame| {
            frame["type"] == "sample"
                && (1..7).all(|gpu| is_full(frame, gpu))
                && health(frame) == ["ok"; 7]
        })
        .await;
    let mut failed = vec!["failed"; 7];
    failed[0] = "ok";
    let sample = stream.until(|frame| is_sample_with(frame, &failed)).await;
    assert!(
        sample["at_ms"].as_u64().unwrap() < begins_ms + 20_000,
        "it is failed while its calls fail"
    );
    assert_eq!(
        identities(&whole),
        identities(&sample),
        "no index and no UUID changes"
    );
    for (gpu, code) in (1..).zip(CODES) {
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
            "a condition of an absent reading has ended"
        );
        assert!(
            sample["gpus"][gpu]["memory"]["used_bytes"]["absent"].is_string(),
            "never an old value or 0"
        );
    }
    eventually("metrics say which GPUs respond", || {
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
    eventually("all alerts fire", || firing() == 6);
    assert_eq!(server.get("/readyz").status, 200, "one GPU responds");
    let events = server.get("/api/v1/snapshot").json()["events"].clone();
    let events: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["what"] == "gpu_failed")
        .collect();
    assert_eq!(events.len(), 6, "one event for each: {events:?}");
    let unknown = events
        .iter()
        .find(|event| {
            event["meaning"]
                .as_str()
                .unwrap()
                .contains("(NVML error 999)")
        })
        .unwrap();
    assert_eq!(unknown["advice"], explain(999, Surroundings::detect()).cure);
    let back = stream
        .until(|frame| is_sample_with(frame, &["ok"; 7]))
        .await;
    assert_eq!(identities(&whole), identities(&back));
    assert!(back["gpus"][6]["memory"]["used_bytes"].is_number());
    eventually("no alert fires", || firing() == 0);
    let log = server.end_and_read_log();
    assert!(
        log.contains("GPU 1 cannot be read: an unknown error (NVML error 999); "),
        "{log}"
    );
    assert!(log.contains("GPU 1 responds again"), "{log}");
}

/// After `systemctl daemon-reload`, a container has no access to its GPUs.
#[tokio::test]
async fn server_whose_gpus_all_fail_is_not_ready() {
    let fault = |gpu| {
        format!("[[fault]]\nkind = \"returns\"\ngpu = {gpu}\ncode = 999\nfrom_s = 4\nto_s = 10\n")
    };
    let fake = Fake::new(&format!(
        "gpus = 2\nstart_ms = {}\n{}{}",
        now_ms(),
        fault(0),
        fault(1)
    ));
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    let mut stream = server.stream().await;
    stream
        .until(|frame| is_sample_with(frame, &["ok", "ok"]))
        .await;
    assert_eq!(server.get("/readyz").status, 200);
    stream
        .until(|frame| is_sample_with(frame, &["failed", "failed"]))
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
        .until(|frame| is_sample_with(frame, &["ok", "ok"]))
        .await;
    eventually("it is ready again", || server.get("/readyz").status == 200);
}

/// The library can still answer some calls from its memory.
#[tokio::test]
async fn gpu_that_opens_but_answers_nothing_is_failed() {
    let scenario = "gpus = 2\n[[fault]]\nkind = \"returns\"\ngpu = 1\ncode = 999\nfrom_s = 1\n\
                    [[fault]]\nkind = \"hang\"\ngpu = 1\ncall = \"nvmlDeviceGetUUID\"\nto_s = 1\n";
    let fake = Fake::new(scenario);
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    server
        .stream()
        .await
        .until(|frame| is_sample_with(frame, &["ok", "failed"]))
        .await;
}

/// Sends a signal to the collector. Checks that clients are notified of the reason and then receive
/// samples of another collector.
async fn replaced_after(signal_name: &str, why: &str) {
    let fake = Fake::new("gpus = 2");
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    let first = server.collector().expect("a collector runs");
    signal(signal_name, first);
    let told = stream.until(|frame| frame["state"] == "restarting").await;
    assert!(told["message"].as_str().unwrap().contains(why), "{told}");
    stream
        .until(|frame| frame["type"] == "collector" && frame["state"] == "running")
        .await;
    stream
        .until(|frame| is_sample_with(frame, &["ok", "ok"]))
        .await;
    assert_ne!(server.collector(), Some(first));
}

#[tokio::test]
async fn a_killed_collector_is_replaced_and_clients_stay_and_are_told() {
    replaced_after("-KILL", "signal: 9").await;
}

#[tokio::test]
async fn a_collector_that_falls_silent_is_replaced() {
    replaced_after("-STOP", "nothing came from it").await;
}

/// Kills the server, and waits until its collector has also ended.
fn ends_with_its_killed_server(mut server: Server) {
    eventually("a collector runs", || server.collector().is_some());
    let collector = server.collector().unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    eventually("the collector has ended", || {
        !std::path::Path::new(&format!("/proc/{collector}")).exists()
    });
}

#[test]
fn the_collector_ends_with_its_server_even_if_that_is_killed() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &["--interval-ms", "100"]);
    ends_with_its_killed_server(server);
}

#[tokio::test]
async fn a_server_whose_log_nobody_reads_goes_on() {
    let fake = Fake::new("gpus = 1");
    let mut server = Server::over(&fake, &["--interval-ms", "200"]);
    server.stop_reading_its_log();
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    signal("-KILL", server.collector().expect("a collector runs"));
    stream.until(|frame| frame["state"] == "restarting").await;
    stream.until(|frame| frame["state"] == "running").await;
    stream.next_of("sample").await;
    let (status, _) = server.terminate();
    assert!(status.success(), "{status}");
}

#[test]
fn a_collector_that_hangs_in_the_driver_ends_with_its_killed_server() {
    let fake = Fake::new("gpus = 1\n[[fault]]\nkind = \"hang\"\ncall = \"nvmlInit_v2\"\n");
    let server = Server::over(&fake, &[]);
    ends_with_its_killed_server(server);
}

#[tokio::test]
async fn a_hung_call_about_the_system_stops_no_gpu() {
    let scenario = "gpus = 3\n[[fault]]\ngpu = 1\nkind = \"lost\"\nto_s = 4\n\
                    [[fault]]\nkind = \"hang\"\ncall = \"nvmlSystemGetDriverVersion\"\nfrom_s = 3\n";
    let fake = Fake::new(scenario);
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    let mut stream = server.stream().await;
    stream
        .until(|frame| is_sample_with(frame, &["ok", "lost", "ok"]))
        .await;
    let inventory = stream
        .until(|frame| frame["type"] == "inventory" && frame["gpus"][1]["uuid"].is_string())
        .await;
    assert!(inventory["platform"]["driver_version"].is_string());
    stream
        .until(|frame| is_sample_with(frame, &["ok", "ok", "ok"]))
        .await;
}
