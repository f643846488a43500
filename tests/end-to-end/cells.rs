//! `POST /api/v1/cells`: what cells of notebooks took, for everybody who looks and for the history.

use std::process::Command;

use gpumon_probe::model::now_ms;
use serde_json::{Value, json};

use crate::support::{Fake, Server, eventually, send, stdout};

const OWN: &[&str] = &["X-Gpumon: run"];

fn cell(ended_ms: u64) -> Value {
    json!({
        "notebook": "train.ipynb", "kernel_id": "0b1c", "cell_id": "c7", "execution_count": 3,
        "started_ms": ended_ms - 4000, "ended_ms": ended_ms, "gpus": [0, 1], "gpu_ms": 3500.5, "peak_bytes": 4e9,
        "change_bytes": 1e6, "joules": 2100.5, "shared": false,
    })
}

#[tokio::test]
async fn a_cell_reaches_everybody_and_is_a_row_of_the_history_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new("gpus = 2");
    let arguments = ["--data-dir", folder.path().to_str().unwrap()];
    let server = Server::over(&fake, &arguments);
    let mut stream = server.stream().await;
    stream.next_of("sample").await;
    let told = cell(now_ms() - 100);
    let answer = send(server.port, "POST /api/v1/cells", OWN, &told.to_string());
    assert_eq!(answer.status, 201, "{}", answer.body);
    let event = stream.until(|frame| frame["what"] == "cell").await;
    for (key, value) in told.as_object().unwrap() {
        assert_eq!(&event[key], value, "{key}");
    }
    let stranger = send(server.port, "POST /api/v1/cells", &[], &told.to_string());
    assert_eq!(
        stranger.status, 403,
        "a page of another origin cannot send the header: {}",
        stranger.body
    );
    let old = send(
        server.port,
        "POST /api/v1/cells",
        OWN,
        &cell(now_ms() - 3_600_000).to_string(),
    );
    assert_eq!(old.status, 400, "{}", old.body);

    let query = "SELECT notebook, execution_count, gpus, joules, shared FROM cell";
    let database = folder.path().join("history.db");
    let code = format!(
        "import sqlite3; print(sqlite3.connect({database:?}).execute({query:?}).fetchall())"
    );
    eventually("it is on disk", || {
        let output = Command::new("python3")
            .args(["-c", &code])
            .output()
            .unwrap();
        stdout(&output).trim() == "[('train.ipynb', 3, '0,1', 2100.5, 0)]"
    });
    drop((stream, server));

    let server = Server::over(&fake, &arguments);
    let span = format!(
        "/api/v1/history?from_ms={}&metrics=power.draw_watts",
        now_ms() - 60_000
    );
    eventually("the cell is told of the past", || {
        let answer = server.get(&span);
        answer.status == 200 && answer.body.contains(r#""cell_id":"c7""#)
    });
}
