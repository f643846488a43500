//! The costs of notebook cells: reported to `POST /api/v1/cells`, and measured by `GET
//! /api/v1/cost`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    thread::sleep,
    time::Duration,
};

use gpumon_probe::model::now_ms;
use serde_json::{Value, json};

use crate::support::{FakeNvml, Server, send_request, stdout_text, wait_for_condition};

const RUN_HEADERS: &[&str] = &["X-Gpumon: run"];

fn make_cell_report(ended_ms: u64) -> Value {
    json!({
        "notebook": "train.ipynb", "kernel_id": "0b1c", "cell_id": "c7", "execution_count": 3,
        "started_ms": ended_ms - 4000, "ended_ms": ended_ms, "gpus": [0, 1], "gpu_ms": 3500.5, "peak_bytes": 4e9,
        "change_bytes": 1e6, "joules": 2100.5, "shared": false,
    })
}

#[tokio::test]
async fn reported_cell_reaches_clients_and_survives_restart() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeNvml::new("gpus = 2");
    let arguments = ["--data-dir", folder.path().to_str().unwrap()];
    let server = Server::start_with_fake(&fake, &arguments);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    let reported = make_cell_report(now_ms() - 100);
    let answer = send_request(
        server.port,
        "POST /api/v1/cells",
        RUN_HEADERS,
        &reported.to_string(),
    );
    assert_eq!(answer.status, 201, "{}", answer.body);
    let event = stream.read_until(|frame| frame["what"] == "cell").await;
    for (key, value) in reported.as_object().unwrap() {
        assert_eq!(&event[key], value, "{key}");
    }
    let stranger = send_request(
        server.port,
        "POST /api/v1/cells",
        &[],
        &reported.to_string(),
    );
    assert_eq!(
        stranger.status, 403,
        "pages of other origins cannot send the header: {}",
        stranger.body
    );
    let old = send_request(
        server.port,
        "POST /api/v1/cells",
        RUN_HEADERS,
        &make_cell_report(now_ms() - 3_600_000).to_string(),
    );
    assert_eq!(old.status, 400, "{}", old.body);

    let query = "SELECT notebook, execution_count, gpus, joules, shared FROM cell";
    let database = folder.path().join("history.db");
    let code = format!(
        "import sqlite3; print(sqlite3.connect({database:?}).execute({query:?}).fetchall())"
    );
    wait_for_condition("the cell is on disk", || {
        let output = Command::new("python3")
            .args(["-c", &code])
            .output()
            .unwrap();
        stdout_text(&output).trim() == "[('train.ipynb', 3, '0,1', 2100.5, 0)]"
    });
    drop((stream, server));

    let server = Server::start_with_fake(&fake, &arguments);
    let span = format!(
        "/api/v1/history?from_ms={}&metrics=power.draw_watts",
        now_ms() - 60_000
    );
    wait_for_condition("the history contains the cell", || {
        let answer = server.get(&span);
        answer.status == 200 && answer.body.contains(r#""cell_id":"c7""#)
    });
}

#[test]
fn jupyter_kernel_cost_is_returned_for_time_range() {
    let folder = tempfile::tempdir().unwrap();
    let connection = folder.path().join("kernel-1b2c-3d4e.json");
    std::fs::write(&connection, r#"{"kernel_name": "python3"}"#).unwrap();
    // The shell represents a kernel, and its arguments contain the name of the connection file. Its
    // child represents a worker process.
    let mut kernel = Command::new("sh")
        .args(["-c", "sleep 600 & echo $!; wait", "-f"])
        .arg(&connection)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut worker = String::new();
    BufReader::new(kernel.stdout.take().unwrap())
        .read_line(&mut worker)
        .unwrap();
    let fake = FakeNvml::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 500\n[[process]]\ngpu = 0\npid = {}\n\
         memory = \"8 GiB\"\nsm_percent = 50\n",
        worker.trim()
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let ask = |kernel_id: &str, span: &str| {
        server.get(&format!("/api/v1/cost?kernel_id={kernel_id}&{span}"))
    };
    let begun_ms = now_ms();
    wait_for_condition("the cost contains the GPU of the kernel", || {
        let answer = ask("1b2c-3d4e", &format!("from_ms={begun_ms}")).json();
        answer["cost"]["gpus"][0]["index"] == 0
    });
    let from_ms = now_ms();
    sleep(Duration::from_millis(1500));
    let span = format!("from_ms={from_ms}&to_ms={}", from_ms + 1500);
    let answer = ask("1b2c-3d4e", &span).json();
    let cost = &answer["cost"];
    let is_near = |value: &Value, wanted: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / wanted - 1.0).abs() < 0.05, "{answer}");
    };
    is_near(&cost["duration_s"], 1.5);
    is_near(&cost["gpu_s"], 0.75);
    is_near(&cost["energy_joules"]["most"], 750.0);
    is_near(&answer["stored"]["energy_joules"], 750.0);
    assert_eq!(cost["peak_memory_bytes"], 8_u64 << 30, "{answer}");
    assert_eq!(cost["memory_change_bytes"], 0, "{answer}");
    assert_eq!(
        (&cost["shared"], &cost["lost"]),
        (&json!(false), &json!([]))
    );

    let other = ask("0000", &span).json();
    assert_eq!(
        (&other["cost"]["gpus"], &other["stored"]),
        (&json!([]), &Value::Null)
    );
    let wrong = ask("0000", "from_ms=5&to_ms=4");
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.body.contains("from_ms=5 must be before to_ms=4"),
        "{}",
        wrong.body
    );
    Command::new("kill").arg(worker.trim()).status().unwrap();
    kernel.wait().unwrap();
}
