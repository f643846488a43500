//! The sample interval. Each client gets the interval that it requests. The collector uses the
//! shortest interval of all clients.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{FakeNvml, Server, Stream, send_signal};

const TEN_HZ_REQUEST: &str = r#"{"type":"interval","ms":100}"#;

/// Returns the frames that arrive within `time`.
async fn collect_frames(stream: &mut Stream, time: Duration) -> Vec<Value> {
    let begun = Instant::now();
    let mut frames = Vec::new();
    while begun.elapsed() < time {
        frames.push(stream.next_frame().await.unwrap());
    }
    frames
}

fn frames_of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}

fn time_between_ms(first: &Value, second: &Value) -> u64 {
    second["at_ms"].as_u64().unwrap() - first["at_ms"].as_u64().unwrap()
}

#[tokio::test]
async fn each_client_gets_its_requested_interval() {
    let fake = FakeNvml::new("gpus = 2");
    let server = Server::start_with_fake(&fake, &[]);
    let (mut slow, mut fast) = (server.open_stream().await, server.open_stream().await);
    slow.next_frame_of_type("sample").await;
    fast.send(TEN_HZ_REQUEST).await;
    fast.read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    slow.read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;

    let (of_fast, of_slow) = tokio::join!(
        collect_frames(&mut fast, Duration::from_secs(5)),
        collect_frames(&mut slow, Duration::from_secs(5))
    );
    let samples = frames_of_type(&of_fast, "sample");
    let (count, ms) = (
        samples.len() as u64,
        time_between_ms(samples[0], samples[samples.len() - 1]),
    );
    assert!(
        (7 * ms / 1000..=10 * ms / 1000 + 2).contains(&count),
        "there were {count} samples in {ms} ms, requested at 10 Hz"
    );
    let samples = frames_of_type(&of_slow, "sample");
    assert!(
        (4..=6).contains(&samples.len()),
        "there were {} samples in 5 s, requested at 1 Hz",
        samples.len()
    );
    assert!(
        frames_of_type(&of_slow, "lagged").is_empty(),
        "samples that were not requested must not count as missed"
    );
    for pair in samples.windows(2) {
        let apart_ms = time_between_ms(pair[0], pair[1]);
        assert!(
            (700..1600).contains(&apart_ms),
            "samples are {apart_ms} ms apart"
        );
    }
    let history =
        server.open_stream().await.next_frame().await.unwrap()["history"]["times_ms"].clone();
    let times: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_u64().unwrap())
        .collect();
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= 900),
        "the interval of one client must not change the history: {times:?}"
    );

    // A paused or closed connection no longer counts.
    fast.send(r#"{"type":"pause"}"#).await;
    slow.read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 1000)
        .await;
    fast.send(r#"{"type":"resume"}"#).await;
    slow.read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    drop(fast);
    slow.read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 1000)
        .await;
}

#[tokio::test]
async fn replaced_collector_gets_requested_interval() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let mut stream = server.open_stream().await;
    stream.send(TEN_HZ_REQUEST).await;
    stream
        .read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    send_signal("-KILL", server.collector_pid().expect("a collector runs"));
    stream
        .read_until(|frame| frame["state"] == "restarting")
        .await;
    stream
        .read_until(|frame| frame["type"] == "sample" && frame["seq"] == 0)
        .await;
    stream
        .read_until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
}

#[tokio::test]
async fn unsupported_interval_is_refused_without_effect() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    let mut stream = server.open_stream().await;
    for ms in ["99", "60001", "0"] {
        stream
            .send(&format!(r#"{{"type":"interval","ms":{ms}}}"#))
            .await;
        let message = stream.next_frame_of_type("error").await["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            message.contains(ms) && message.contains("100 to 60000"),
            "{message}"
        );
    }
    for bad in ["-1", "1e9", "\"100\""] {
        stream
            .send(&format!(r#"{{"type":"interval","ms":{bad}}}"#))
            .await;
        stream.next_frame_of_type("error").await;
    }
    assert_eq!(
        stream.next_frame_of_type("sample").await["interval_ms"],
        1000
    );
    stream.send(r#"{"type":"interval","ms":60000}"#).await;
    let rest = collect_frames(&mut stream, Duration::from_secs(4)).await;
    assert!(
        frames_of_type(&rest, "sample").len() <= 1,
        "a client may request fewer samples than there are"
    );
}

#[test]
fn supervised_collector_obeys_commands_and_reports_invalid_ones() {
    let fake = FakeNvml::new("gpus = 1");
    let mut child = fake
        .gpumon_command(&["collect", "--supervised", "--interval-ms", "60000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    lines
        .find(|line| line.starts_with(r#"{"type":"sample""#))
        .unwrap();
    stdin
        .write_all(b"faster!\n{\"interval_ms\":1}\n{\"interval_ms\":100}\n")
        .unwrap();
    let next = lines
        .find(|line| line.starts_with(r#"{"type":"sample""#))
        .unwrap();
    assert!(next.contains(r#""interval_ms":100,"#), "{next}");
    drop(stdin);
    assert!(
        child.wait().unwrap().success(),
        "the collector ends when its input is closed"
    );
    let complaints: Vec<_> = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(
        complaints[0].contains("interval_ms") && complaints[1].contains("1 ms"),
        "{complaints:?}"
    );
}
