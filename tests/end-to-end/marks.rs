//! `gpumon mark` and `POST /api/v1/marks`: marks that people set at a point in time, and that all
//! clients receive.

use gpumon_probe::model::now_ms;
use serde_json::{Value, json};

use crate::support::{
    FakeNvml, HttpResponse, Server, send_request, stderr_text, stdout_text, wait_for_condition,
};

const RUN_HEADERS: &[&str] = &["X-Gpumon: run"];

fn post_mark(server: &Server, mark: &Value) -> HttpResponse {
    send_request(
        server.port,
        "POST /api/v1/marks",
        RUN_HEADERS,
        &mark.to_string(),
    )
}

fn list_marks(events: &Value) -> Vec<&Value> {
    events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["what"] == "mark")
        .collect()
}

#[tokio::test]
async fn mark_reaches_all_clients_and_is_stored() {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let mut stream = server.open_stream().await;
    stream.next_frame_of_type("sample").await;
    let before_ms = now_ms();
    let output = fake
        .gpumon_command(&["mark", "epoch 3\u{1b}[31m"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(
        (stdout_text(&output), stderr_text(&output)),
        (String::new(), String::new())
    );
    let reported = stream.read_until(|frame| frame["what"] == "mark").await;
    assert_eq!(
        (&reported["type"], &reported["text"], &reported["gpu"]),
        (&json!("event"), &json!("epoch 3\u{fffd}[31m"), &json!(null))
    );
    let at_ms = reported["at_ms"].as_u64().unwrap();
    assert!((before_ms..=now_ms()).contains(&at_ms), "{reported}");
    let user = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    assert_eq!(reported["user"], stdout_text(&user).trim());

    // A mark may have a time in the past. A new client receives all marks, sorted by time.
    let earlier = post_mark(
        &server,
        &json!({ "text": "epoch 2", "at_ms": at_ms - 1000 }),
    );
    assert_eq!(earlier.status, 201, "{}", earlier.body);
    assert_eq!(
        (
            earlier.json()["what"].clone(),
            earlier.json()["at_ms"].clone()
        ),
        (json!("mark"), json!(at_ms - 1000))
    );
    let hello = server.open_stream().await.next_frame().await.unwrap();
    let texts: Vec<_> = list_marks(&hello["events"])
        .iter()
        .map(|mark| mark["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["epoch 2", "epoch 3\u{fffd}[31m"]);

    // A mark is not a condition of a GPU.
    assert_eq!(hello["sample"]["gpus"][0]["conditions"], json!([]));
    assert!(!server.get("/metrics").body.contains("mark"));
}

#[test]
fn invalid_marks_are_refused_with_remedy() {
    let fake = FakeNvml::new("gpus = 1");
    let none = fake.gpumon_command(&["mark", "epoch 3"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr_text(&none).contains("gpumon serve") && stderr_text(&none).contains("--control"),
        "{}",
        stderr_text(&none)
    );

    let server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let empty = fake.gpumon_command(&["mark", " "]).output().unwrap();
    assert_eq!(empty.status.code(), Some(1));
    assert!(
        stderr_text(&empty).contains("1 to 100 characters"),
        "{}",
        stderr_text(&empty)
    );
    for (mark, word) in [
        (json!({ "text": "a".repeat(101) }), "1 to 100"),
        (
            json!({ "text": "a", "at_ms": now_ms() - 601_000 }),
            "last 600 s",
        ),
        (json!({ "text": "a", "at_ms": now_ms() + 60_000 }), "at_ms"),
        (json!({ "label": "a" }), r#"{"text":"epoch 3"}"#),
    ] {
        let refused = post_mark(&server, &mark);
        assert_eq!(refused.status, 400, "{mark}");
        assert!(refused.body.contains(word), "{}", refused.body);
    }
    let mark = json!({ "text": "a" }).to_string();
    for (headers, word) in [
        (&[][..], "X-Gpumon"),
        (
            &["X-Gpumon: run", "Origin: http://evil.example"][..],
            "another origin",
        ),
        (
            &["X-Gpumon: run", "Sec-Fetch-Site: cross-site"][..],
            "another site",
        ),
    ] {
        let refused = send_request(server.port, "POST /api/v1/marks", headers, &mark);
        assert_eq!(refused.status, 403, "{headers:?}");
        assert!(refused.body.contains(word), "{}", refused.body);
    }
    let proxied = Server::start_with_fake(
        &fake,
        &[
            "--public-origin",
            "https://gpus.example.org",
            "--no-control",
        ],
    );
    let refused = send_request(proxied.port, "POST /api/v1/marks", RUN_HEADERS, &mark);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("--allow-runs"), "{}", refused.body);

    let answers: Vec<_> = (0..25)
        .map(|_| post_mark(&server, &json!({ "text": "a" })))
        .collect();
    let last = answers.last().unwrap();
    assert_eq!((answers[0].status, last.status), (201, 429));
    assert!(last.body.contains("one per second"), "{}", last.body);
}
