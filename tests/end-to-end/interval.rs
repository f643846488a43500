//! The sample interval: each client gets the interval that it requests, and the collector uses the
//! shortest of them.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::{Fake, Server, Stream, signal};

const TEN_HZ: &str = r#"{"type":"interval","ms":100}"#;

/// Returns the frames that arrive within `time`.
async fn frames(stream: &mut Stream, time: Duration) -> Vec<Value> {
    let begun = Instant::now();
    let mut frames = Vec::new();
    while begun.elapsed() < time {
        frames.push(stream.next().await.unwrap());
    }
    frames
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}

fn apart_ms(first: &Value, second: &Value) -> u64 {
    second["at_ms"].as_u64().unwrap() - first["at_ms"].as_u64().unwrap()
}

#[tokio::test]
async fn a_client_gets_what_it_asks_for_and_the_one_beside_it_no_more_than_before() {
    let fake = Fake::new("gpus = 2");
    let server = Server::over(&fake, &[]);
    let (mut slow, mut fast) = (server.stream().await, server.stream().await);
    slow.next_of("sample").await;
    fast.send(TEN_HZ).await;
    fast.until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    slow.until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;

    let (of_fast, of_slow) = tokio::join!(
        frames(&mut fast, Duration::from_secs(5)),
        frames(&mut slow, Duration::from_secs(5))
    );
    let samples = of_type(&of_fast, "sample");
    let (count, ms) = (
        samples.len() as u64,
        apart_ms(samples[0], samples[samples.len() - 1]),
    );
    assert!(
        (7 * ms / 1000..=10 * ms / 1000 + 2).contains(&count),
        "{count} samples in {ms} ms at 10 Hz"
    );
    let samples = of_type(&of_slow, "sample");
    assert!(
        (4..=6).contains(&samples.len()),
        "{} samples in 5 s at 1 Hz",
        samples.len()
    );
    assert!(
        of_type(&of_slow, "lagged").is_empty(),
        "what it did not ask for it has not missed"
    );
    for pair in samples.windows(2) {
        let apart_ms = apart_ms(pair[0], pair[1]);
        assert!(
            (700..1600).contains(&apart_ms),
            "samples are {apart_ms} ms apart"
        );
    }
    let history = server.stream().await.next().await.unwrap()["history"]["times_ms"].clone();
    let times: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_u64().unwrap())
        .collect();
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= 900),
        "history is no denser for it: {times:?}"
    );

    // A paused or closed connection no longer counts.
    fast.send(r#"{"type":"pause"}"#).await;
    slow.until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 1000)
        .await;
    fast.send(r#"{"type":"resume"}"#).await;
    slow.until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    drop(fast);
    slow.until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 1000)
        .await;
}

#[tokio::test]
async fn a_replaced_collector_is_told_the_interval_too() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
    let mut stream = server.stream().await;
    stream.send(TEN_HZ).await;
    stream
        .until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
    signal("-KILL", server.collector().expect("a collector runs"));
    stream.until(|frame| frame["state"] == "restarting").await;
    stream
        .until(|frame| frame["type"] == "sample" && frame["seq"] == 0)
        .await;
    stream
        .until(|frame| frame["type"] == "sample" && frame["interval_ms"] == 100)
        .await;
}

#[tokio::test]
async fn an_interval_that_is_not_served_is_refused_and_changes_nothing() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
    let mut stream = server.stream().await;
    for ms in ["99", "60001", "0"] {
        stream
            .send(&format!(r#"{{"type":"interval","ms":{ms}}}"#))
            .await;
        let message = stream.next_of("error").await["message"]
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
        stream.next_of("error").await;
    }
    assert_eq!(stream.next_of("sample").await["interval_ms"], 1000);
    stream.send(r#"{"type":"interval","ms":60000}"#).await;
    let rest = frames(&mut stream, Duration::from_secs(4)).await;
    assert!(
        of_type(&rest, "sample").len() <= 1,
        "a client may want less than there is"
    );
}

#[test]
fn a_supervised_collector_obeys_lines_and_says_what_it_cannot_understand() {
    let fake = Fake::new("gpus = 1");
    let mut child = fake
        .gpumon(&["collect", "--supervised", "--interval-ms", "60000"])
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
    assert!(child.wait().unwrap().success(), "it ends with its input");
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
