//! `/api/v1/history`, and the history in a data directory after the server has ended.

use std::{thread, time::Duration};

use gpumon_history::database::Database;
use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{Fake, PATIENCE, Server, eventually, send, signal, stderr, stdout};

const FOLDER: &str = "history";

/// The interval at which a chart requests data.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

fn over(fake: &Fake, folder: &str) -> Server {
    Server::over(fake, &["--interval-ms", "200", "--data-dir", folder])
}

fn folder(fake: &Fake) -> String {
    fake.path(FOLDER).to_str().unwrap().to_owned()
}

fn watts(span: &Value) -> Vec<&Value> {
    span["gpus"][0]["metrics"]["power.draw_watts"]["values"]
        .as_array()
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn a_span_is_as_fine_as_it_may_be_and_bad_questions_are_answered_with_what_there_is() {
    let fake = Fake::new("gpus = 2");
    let server = Server::over(&fake, &["--interval-ms", "200", "--data-dir", "none"]);
    eventually("there are samples", || {
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
    let (times, values) = (span["times_ms"].as_array().unwrap(), watts(&span));
    assert_eq!(times.len(), values.len());
    assert!(
        values.iter().all(|watts| watts.as_f64().unwrap() > 0.0),
        "{span}"
    );
    assert!(
        span["gpus"][0]["metrics"]["power.draw_watts"]["min"].is_null(),
        "as sampled there is no range"
    );
    assert_eq!(
        (&span["resolution_ms"], &span["storage"]["on_disk"]),
        (&1000.into(), &false.into())
    );
    assert_eq!(span["storage"]["reach_ms"], 6 * 3_600_000);
    let one = server.get("/api/v1/history?points=1").json();
    assert!(
        watts(&one).len() <= 2 && one["resolution_ms"].as_u64().unwrap() > 1000,
        "{one}"
    );
    for (query, word) in [
        ("metrics=power.drwa", "power.draw_watts"),
        ("points=0", "1 to 5000"),
        ("from_ms=2&to_ms=1", "from_ms=2 is not before to_ms=1"),
        ("from=1", "ask for from_ms, to_ms, metrics and points"),
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
fn what_was_before_a_server_that_was_killed_is_there_for_the_next() {
    let fake = Fake::new("gpus = 1");
    let folder = folder(&fake);
    // The first ten seconds of the history may have started before the server.
    let begun_ms = now_ms() - 10_000;
    let mut server = over(&fake, &folder);
    eventually("it is ready", || server.get("/readyz").status == 200);
    let ready_ms = now_ms();
    let mark = send(
        server.port,
        "POST /api/v1/marks",
        &["X-Gpumon: run"],
        r#"{"text":"epoch 3"}"#,
    );
    assert_eq!(mark.status, 201, "{}", mark.body);
    eventually("the first ten seconds are on disk", || {
        Database::open_to_read(&fake.path(FOLDER))
            .is_ok_and(|database| database.tiers().is_ok_and(|tiers| !tiers.is_empty()))
    });
    signal("-KILL", server.child.id());
    server.child.wait().unwrap();
    let killed_ms = now_ms();

    let mut server = over(&fake, &folder);
    let asked = format!("/api/v1/history?from_ms={begun_ms}&metrics=power.draw_watts&points=5000");
    eventually("there are new samples", || {
        thread::sleep(BETWEEN_LOOKS);
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
        "ten seconds are lost at most, and those in progress"
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
        "charts go on from there"
    );
    assert!(
        history["means"].as_u64().is_some_and(|means| means > 0),
        "{history}"
    );
    // A range that starts before the restart has a resolution of ten seconds, the finest one on
    // disk.
    assert_eq!(span["resolution_ms"], 10_000, "{span}");
    assert!(
        snapshot["events"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["text"] == "epoch 3"),
        "and events"
    );

    // On SIGTERM, the server also writes the unfinished ten seconds.
    let asked_ms = now_ms();
    let (status, took) = server.terminate();
    assert!(status.success() && took < PATIENCE, "{status}, {took:?}");
    let server = over(&fake, &folder);
    eventually("it answers from disk", || {
        thread::sleep(BETWEEN_LOOKS);
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
fn ten_seconds_are_on_disk_when_they_are_over_however_rare_samples_are() {
    let fake = Fake::new("gpus = 1");
    let folder = folder(&fake);
    let server = Server::over(&fake, &["--interval-ms", "60000", "--data-dir", &folder]);
    eventually("it is ready", || server.get("/readyz").status == 200);
    let sample = server.get("/api/v1/snapshot").json()["sample"]["seq"].clone();
    eventually("it is on disk", || {
        Database::open_to_read(&fake.path(FOLDER))
            .is_ok_and(|database| database.tiers().is_ok_and(|tiers| !tiers.is_empty()))
    });
    assert_eq!(
        server.get("/api/v1/snapshot").json()["sample"]["seq"],
        sample,
        "before there is another"
    );
}

#[test]
fn a_folder_that_cannot_be_used_costs_history_on_disk_and_nothing_else() {
    let fake = Fake::new("gpus = 1");
    std::fs::write(fake.path("file"), "").unwrap();
    let folder = fake.path("file/history").to_str().unwrap().to_owned();
    let mut server = over(&fake, &folder);
    // Alerts use the same folder, so the first message may come from either.
    let told = loop {
        let message = server.next_message();
        if message.contains("the directory cannot be created") {
            break message;
        }
    };
    assert!(told.contains("--data-dir"), "{told}");
    eventually("readings go on", || server.get("/readyz").status == 200);
    let storage = server.get("/api/v1/history").json()["storage"].clone();
    assert!(
        storage["on_disk"] == false
            && storage["problem"]
                .as_str()
                .is_some_and(|why| why.contains("file")),
        "{storage}"
    );
    let doctor = fake.gpumon(&["doctor"]).output().unwrap();
    assert!(
        stdout(&doctor).contains("the directory cannot be created"),
        "{}{}",
        stdout(&doctor),
        stderr(&doctor)
    );
}

#[test]
fn a_size_that_is_none_is_refused_with_its_cure() {
    let fake = Fake::new("gpus = 1");
    for size in ["1", "1G", "9MB", "-1GB", "much", "1e99TB"] {
        let output = fake
            .gpumon(&["serve", "--listen", "127.0.0.1:0", "--data-size", size])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{size}");
        assert!(
            stderr(&output).contains("500MB, 1GB or 2GiB")
                || stderr(&output).contains("unexpected argument"),
            "{}",
            stderr(&output)
        );
    }
}
