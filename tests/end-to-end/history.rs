//! `/api/v1/history`, and the history in a data directory after the server has ended.

use std::{thread, time::Duration};

use gpumon_history::database::Database;
use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, send_request, send_signal, stderr_text, stdout_text,
    wait_for_condition,
};

const HISTORY_FOLDER: &str = "history";

/// The interval at which a chart requests data.
const REQUEST_INTERVAL: Duration = Duration::from_secs(1);

fn serve_with_history(fake: &FakeNvml, folder: &str) -> Server {
    Server::start_with_fake(fake, &["--interval-ms", "200", "--data-dir", folder])
}

fn data_folder(fake: &FakeNvml) -> String {
    fake.path(HISTORY_FOLDER).to_str().unwrap().to_owned()
}

fn power_values(span: &Value) -> Vec<&Value> {
    span["gpus"][0]["metrics"]["power.draw_watts"]["values"]
        .as_array()
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn history_has_finest_resolution_and_refuses_invalid_requests() {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200", "--data-dir", "none"]);
    wait_for_condition("the server has a history", || {
        server.get("/api/v1/history").json()["times_ms"]
            .as_array()
            .unwrap()
            .len()
            > 2
    });
    let span = server
        .get("/api/v1/history?metrics=power.draw_watts,host.cpu.busy_percent")
        .json();
    assert_eq!(
        (
            span["gpus"].as_array().unwrap().len(),
            &span["gpus"][1]["index"]
        ),
        (2, &1.into())
    );
    assert!(
        span["gpus"][0]["name"].as_str().unwrap().contains("NVIDIA"),
        "{span}"
    );
    let (times, values) = (span["times_ms"].as_array().unwrap(), power_values(&span));
    assert_eq!(times.len(), values.len());
    assert!(
        values.iter().all(|watts| watts.as_f64().unwrap() > 0.0),
        "{span}"
    );
    assert!(
        span["gpus"][0]["metrics"]["power.draw_watts"]["min"].is_null(),
        "there is no minimum at the full resolution"
    );
    assert_eq!(
        (&span["resolution_ms"], &span["storage"]["on_disk"]),
        (&1000.into(), &false.into())
    );
    assert_eq!(span["storage"]["reach_ms"], 6 * 3_600_000);
    let one = server.get("/api/v1/history?points=1").json();
    assert!(
        power_values(&one).len() <= 2 && one["resolution_ms"].as_u64().unwrap() > 1000,
        "{one}"
    );
    for (query, word) in [
        ("metrics=power.drwa", "power.draw_watts"),
        ("points=0", "1 to 5000"),
        ("from_ms=2&to_ms=1", "from_ms=2 must be before to_ms=1"),
        (
            "from=1",
            "use from_ms, to_ms, metrics, and either points or resolution_ms",
        ),
        ("metrics=processes.memory_bytes", "history_s=600"),
    ] {
        let answer = server.get(&format!("/api/v1/history?{query}"));
        assert!(
            answer.status == 400 && answer.body.contains(word),
            "{query}: {}",
            answer.body
        );
    }
}

#[test]
fn history_survives_killed_server() {
    let fake = FakeNvml::new("gpus = 1");
    let folder = data_folder(&fake);
    // The first ten seconds of the history may begin before the start of the server.
    let begun_ms = now_ms() - 10_000;
    let mut server = serve_with_history(&fake, &folder);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let ready_ms = now_ms();
    let mark = send_request(
        server.port,
        "POST /api/v1/marks",
        &["X-Gpumon: run"],
        r#"{"text":"epoch 3"}"#,
    );
    assert_eq!(mark.status, 201, "{}", mark.body);
    wait_for_condition("the first ten seconds are on disk", || {
        Database::open_to_read(&fake.path(HISTORY_FOLDER))
            .is_ok_and(|database| database.list_tiers().is_ok_and(|tiers| !tiers.is_empty()))
    });
    send_signal("-KILL", server.child.id());
    server.child.wait().unwrap();
    let killed_ms = now_ms();

    let mut server = serve_with_history(&fake, &folder);
    let asked = format!("/api/v1/history?from_ms={begun_ms}&metrics=power.draw_watts&points=5000");
    wait_for_condition("the history contains new samples", || {
        thread::sleep(REQUEST_INTERVAL);
        let span = server.get(&asked).json();
        span["times_ms"]
            .as_array()
            .unwrap()
            .last()
            .is_some_and(|last| last.as_u64().unwrap() > killed_ms)
    });
    let span = server.get(&asked).json();
    assert_eq!(span["storage"]["on_disk"], true, "{span}");
    assert!(span["oldest_ms"].as_u64().unwrap() <= ready_ms, "{span}");
    let before: Vec<_> = span["times_ms"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|at| at.as_u64().unwrap() < killed_ms)
        .collect();
    let last_ms = before.last().unwrap().as_u64().unwrap();
    assert!(
        last_ms + 10_000 + 11_000 > killed_ms,
        "at most ten seconds and the current interval are lost"
    );
    assert!(
        span["events"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["text"] == "epoch 3"),
        "{span}"
    );
    let snapshot = server
        .get("/api/v1/snapshot?history_s=600&metrics=power.draw_watts")
        .json();
    let history = &snapshot["history"];
    assert!(
        history["times_ms"][0].as_u64().unwrap() < killed_ms,
        "charts start with the history from before the restart"
    );
    assert!(
        history["means"].as_u64().is_some_and(|means| means > 0),
        "{history}"
    );
    // The history from before the restart is only on disk, where the finest resolution is ten
    // seconds. A range that begins before the restart has this resolution as a whole.
    assert_eq!(span["resolution_ms"], 10_000, "{span}");
    assert!(
        snapshot["events"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["text"] == "epoch 3"),
        "events from before the restart are kept"
    );

    // On SIGTERM, the server also writes the current, incomplete ten-second bucket.
    let asked_ms = now_ms();
    let (status, took) = server.terminate();
    assert!(
        status.success() && took < TEST_TIMEOUT,
        "{status}, {took:?}"
    );
    let server = serve_with_history(&fake, &folder);
    wait_for_condition("the server answers from disk", || {
        thread::sleep(REQUEST_INTERVAL);
        let span = server.get(&asked).json();
        let times: Vec<_> = span["times_ms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at.as_u64().unwrap())
            .collect();
        times
            .iter()
            .any(|at| *at <= asked_ms && at + 10_000 > asked_ms)
    });
}

#[test]
fn history_is_written_every_ten_seconds() {
    let fake = FakeNvml::new("gpus = 1");
    let folder = data_folder(&fake);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "60000", "--data-dir", &folder]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let sample = server.get("/api/v1/snapshot").json()["sample"]["seq"].clone();
    wait_for_condition("the first ten seconds are on disk", || {
        Database::open_to_read(&fake.path(HISTORY_FOLDER))
            .is_ok_and(|database| database.list_tiers().is_ok_and(|tiers| !tiers.is_empty()))
    });
    assert_eq!(
        server.get("/api/v1/snapshot").json()["sample"]["seq"],
        sample,
        "the history is on disk before the second sample"
    );
}

#[test]
fn unusable_data_directory_only_disables_history_on_disk() {
    let fake = FakeNvml::new("gpus = 1");
    std::fs::write(fake.path("file"), "").unwrap();
    let folder = fake.path("file/history").to_str().unwrap().to_owned();
    let mut server = serve_with_history(&fake, &folder);
    // The alerts and the history use the same folder, so the first message may be about either of
    // them.
    let reported = loop {
        let message = server.next_message();
        if message.contains("the directory cannot be created") {
            break message;
        }
    };
    assert!(reported.contains("--data-dir"), "{reported}");
    wait_for_condition("the server still has readings", || {
        server.get("/readyz").status == 200
    });
    let storage = server.get("/api/v1/history").json()["storage"].clone();
    assert!(
        storage["on_disk"] == false
            && storage["problem"]
                .as_str()
                .is_some_and(|why| why.contains("file")),
        "{storage}"
    );
    let doctor = fake.gpumon_command(&["doctor"]).output().unwrap();
    assert!(
        stdout_text(&doctor).contains("the directory cannot be created"),
        "{}{}",
        stdout_text(&doctor),
        stderr_text(&doctor)
    );
}

#[test]
fn invalid_history_size_is_refused_with_remedy() {
    let fake = FakeNvml::new("gpus = 1");
    for size in ["1", "1G", "9MB", "-1GB", "much", "1e99TB"] {
        let output = fake
            .gpumon_command(&["serve", "--listen", "127.0.0.1:0", "--data-size", size])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{size}");
        assert!(
            stderr_text(&output).contains("500MB, 1GB or 2GiB")
                || stderr_text(&output).contains("unexpected argument"),
            "{}",
            stderr_text(&output)
        );
    }
}
