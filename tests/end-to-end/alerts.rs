//! Alerts of `gpumon serve --alerts` and `gpumon alerts`, with GPUs that cross thresholds and
//! receivers of all kinds.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};

use crate::support::{Fake, PATIENCE, Server, eventually, refused, signal, stderr, stdout};

/// A GPU that is cool at first, then hot, and then cool again.
const WARMING: &str =
    "[[gpu]]\nindex = 0\ntemperature_celsius = [[0, 40], [3, 40], [3, 95], [10, 95], [10, 40]]\n";
const HOT: &str = "[[gpu]]\nindex = 0\ntemperature_celsius = 95\n";
const RULE: &str = "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = 85\nclear_for = \"1s\"\n";

fn write(fake: &Fake, text: &str) -> PathBuf {
    let file = fake.path("alerts.toml");
    fs::write(&file, text).unwrap();
    file
}

fn serve(fake: &Fake, text: &str) -> Server {
    let file = write(fake, text);
    Server::over(
        fake,
        &["--interval-ms", "200", "--alerts", file.to_str().unwrap()],
    )
}

/// Returns a receiver that appends each notification to a file, and the file.
fn log(fake: &Fake) -> (String, PathBuf) {
    let file = fake.path("received");
    let script = format!("cat >> {0}; echo >> {0}", file.display());
    (
        format!("[[command]]\nname = \"log\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n"),
        file,
    )
}

fn received(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Starts an HTTP server that answers each request with the next status, and then with 200. Returns
/// its URL and the received heads and bodies.
fn webhook(statuses: &'static [u16]) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/services/secret", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let (head, body) = loop {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break (head.to_owned(), body);
                }
                assert!(count > 0, "cut off: {text}");
            };
            let status = statuses.next().copied().unwrap_or(200);
            write!(
                stream,
                "HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            if sender.send((head, body)).is_err() {
                return;
            }
        }
    });
    (url, requests)
}

fn status(server: &Server) -> Value {
    server.get("/api/v1/alerts").json()
}

#[tokio::test]
async fn an_alert_reaches_clients_and_receivers_and_so_does_its_end() {
    let fake = Fake::new(WARMING);
    let (command, file) = log(&fake);
    // The first attempt fails and is repeated.
    let (url, requests) = webhook(&[503]);
    let server = serve(
        &fake,
        &format!("{RULE}{command}[[webhook]]\nname = \"hook\"\nurl = \"{url}\"\n"),
    );
    let mut stream = server.stream().await;
    let hello = stream.next().await.unwrap();
    assert_eq!(hello.get("alerts"), None, "nothing fires yet");
    let firing = stream.until(|frame| frame["what"] == "alert_firing").await;
    assert_eq!(
        (
            &firing["rule"],
            &firing["gpu"]["index"],
            &firing["severity"]
        ),
        (&json!("hot"), &json!(0), &json!("warning"))
    );
    assert_eq!(firing["text"], "Temperature 95 °C, above 85 °C");
    let list = stream.next_of("alerts").await;
    assert_eq!(
        (
            &list["firing"][0]["rule"],
            &list["firing"][0]["gpu"]["index"]
        ),
        (&json!("hot"), &json!(0))
    );
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(
        snapshot["alerts"][0]["rule"], "hot",
        "{}",
        snapshot["alerts"]
    );
    let hello = server.stream().await.next().await.unwrap();
    assert_eq!(hello["alerts"][0]["rule"], "hot");
    let listed = fake.gpumon(&["alerts", "list"]).output().unwrap();
    assert!(
        stdout(&listed).starts_with("firing    hot: Temperature above 85 °C (warning)\n"),
        "{}",
        stdout(&listed)
    );

    stream
        .until(|frame| frame["what"] == "alert_resolved")
        .await;
    stream
        .until(|frame| frame["type"] == "alerts" && frame["firing"] == json!([]))
        .await;
    eventually("the command got both", || received(&file).len() == 2);
    let mut told = received(&file);
    assert_eq!(
        [&told[0]["what"], &told[1]["what"]],
        ["alert_firing", "alert_resolved"]
    );
    let host = told[0].as_object_mut().unwrap().remove("host");
    assert!(host.is_some_and(|host| host.as_str().is_some_and(|host| !host.is_empty())));
    let mut event = firing.clone();
    event.as_object_mut().unwrap().remove("type");
    assert_eq!(told[0], event, "what receivers get is the event");
    let posted: Vec<_> = (0..3)
        .map(|_| requests.recv_timeout(PATIENCE).unwrap())
        .collect();
    assert!(
        posted[0]
            .0
            .starts_with("POST /services/secret HTTP/1.1\r\n"),
        "{}",
        posted[0].0
    );
    let kinds: Vec<_> = posted
        .iter()
        .map(|(_, body)| body["what"].clone())
        .collect();
    assert_eq!(kinds, ["alert_firing", "alert_firing", "alert_resolved"]);
    eventually("it is counted", || {
        status(&server)["receivers"][0]["sent"] == 2
    });
    // No output may contain the address, because it is a secret.
    let hello = server.stream().await.next().await.unwrap();
    for text in [
        status(&server).to_string(),
        hello.to_string(),
        server.get("/metrics").body,
    ] {
        assert!(!text.contains("secret"), "{text}");
    }
    let events = hello["events"].as_array().unwrap();
    let problem = events
        .iter()
        .find(|event| event["what"] == "alert_problem")
        .unwrap();
    assert!(
        problem["message"]
            .as_str()
            .unwrap()
            .starts_with("Alerts do not reach hook: "),
        "{problem}"
    );
}

#[tokio::test]
async fn receivers_that_hang_delay_no_sample() {
    // This receiver accepts connections but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let fake = Fake::new(HOT);
    let receivers = format!(
        "[[webhook]]\nname = \"hook\"\nurl = \"http://{}/\"\ntimeout = \"60s\"\n\
         [[command]]\nname = \"stuck\"\ncommand = [\"sleep\", \"600\"]\ntimeout = \"60s\"\n",
        silent.local_addr().unwrap()
    );
    let server = serve(&fake, &format!("{RULE}{receivers}"));
    let mut stream = server.stream().await;
    if stream.next().await.unwrap().get("alerts").is_none() {
        stream.next_of("alerts").await;
    }
    for _ in 0..20 {
        stream.next_of("sample").await;
    }
    let status = status(&server);
    for receiver in status["receivers"].as_array().unwrap() {
        assert_eq!(
            (&receiver["sent"], &receiver["error"]),
            (&json!(0), &json!(null)),
            "it still hangs: {receiver}"
        );
    }
}

#[tokio::test]
async fn rules_are_read_anew_and_a_bad_file_changes_nothing() {
    let fake = Fake::new(HOT);
    let (command, file) = log(&fake);
    let server = serve(&fake, &format!("{RULE}{command}"));
    let mut stream = server.stream().await;
    eventually("it fires", || received(&file).len() == 1);

    write(&fake, &RULE.replace("above", "abvoe"));
    signal("-HUP", server.child.id());
    let problem = stream.until(|frame| frame["what"] == "alert_problem").await;
    let message = problem["message"].as_str().unwrap();
    assert!(
        message.contains("the rules before hold") && message.contains("did you mean `above`?"),
        "{message}"
    );
    let known = status(&server);
    assert_eq!(
        (&known["rules"][0]["name"], &known["error"]),
        (&json!("hot"), &json!(message))
    );

    let other = RULE.replace("\"hot\"", "\"warm\"").replace("85", "60");
    write(&fake, &format!("{other}{command}"));
    signal("-HUP", server.child.id());
    stream
        .until(|frame| frame["what"] == "alert_resolved" && frame["rule"] == "hot")
        .await;
    eventually("receivers know", || received(&file).len() == 3);
    let told: Vec<_> = received(&file)
        .iter()
        .map(|event| format!("{} {}", event["what"], event["rule"]))
        .collect();
    assert!(
        told.contains(&"\"alert_firing\" \"warm\"".to_owned()),
        "{told:?}"
    );
    assert_eq!(status(&server)["error"], json!(null));
}

#[tokio::test]
async fn a_receiver_that_is_mended_hears_what_fires() {
    let fake = Fake::new(HOT);
    let (command, file) = log(&fake);
    let hook =
        |url: &str| format!("{RULE}{command}[[webhook]]\nname = \"hook\"\nurl = \"{url}\"\n");
    let (wrong, refused) = webhook(&[404, 404]);
    let server = serve(&fake, &hook(&wrong));
    refused.recv_timeout(PATIENCE).unwrap();
    eventually("it is refused", || {
        status(&server)["receivers"][0]["failed"] == 1
    });
    let (right, requests) = webhook(&[]);
    write(&fake, &hook(&right));
    signal("-HUP", server.child.id());
    let (_, body) = requests.recv_timeout(PATIENCE).unwrap();
    assert_eq!(
        (&body["what"], &body["rule"]),
        (&json!("alert_firing"), &json!("hot"))
    );
    eventually("it is counted", || {
        status(&server)["receivers"][0]["sent"] == 1
    });
    assert_eq!(received(&file).len(), 1, "the other knows");
}

#[test]
fn a_restart_sends_nothing_again_and_takes_back_what_ended_meanwhile() {
    let fake = Fake::new(HOT);
    let (command, file) = log(&fake);
    let rules = write(&fake, &format!("{RULE}{command}"));
    let data = fake.path("data");
    let arguments = [
        "--interval-ms",
        "200",
        "--alerts",
        rules.to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
    ];
    let start = || Server::over(&fake, &arguments);
    let is_kept =
        || fs::read_to_string(data.join("alerts.json")).is_ok_and(|text| text.contains("\"log\""));
    let server = start();
    eventually("it fires", || received(&file).len() == 1);
    eventually("it is known who was told", is_kept);
    // The server is killed without a chance to write its state.
    drop(server);
    let mut server = start();
    eventually("it fires as before", || {
        status(&server)["rules"][0]["active"][0]["state"] == "firing"
    });
    let seq = |server: &Server| {
        server.get("/api/v1/snapshot").json()["sample"]["seq"]
            .as_u64()
            .unwrap_or(0)
    };
    eventually("samples have come", || seq(&server) > 10);
    assert_eq!(received(&file).len(), 1, "{:?}", received(&file));
    server.terminate();

    fs::write(fake.path("scenario.toml"), HOT.replace("95", "40")).unwrap();
    let server = start();
    eventually("its end is told", || received(&file).len() == 2);
    assert_eq!(received(&file)[1]["what"], "alert_resolved");
    eventually("that is known, too", || !is_kept());
    drop(server);
    // An invalid file is replaced.
    fs::write(data.join("alerts.json"), "{").unwrap();
    fs::write(fake.path("scenario.toml"), HOT).unwrap();
    let _server = start();
    eventually("it fires anew", || received(&file).len() == 3);
    eventually("it is known who was told", is_kept);
}

#[test]
fn the_node_is_named_where_the_driver_has_never_answered() {
    let fake = Fake::new("gpus = 1");
    let (command, file) = log(&fake);
    let rules = write(
        &fake,
        &format!("[[rule]]\nname = \"gone\"\nabsent = true\n{command}"),
    );
    let _server = Server::start(fake.gpumon(&[
        "--nvml-lib",
        "/no/such/library",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--alerts",
        rules.to_str().unwrap(),
    ]));
    eventually("it fires", || !received(&file).is_empty());
    let host = received(&file)[0]["host"].clone();
    assert_eq!(
        host.as_str(),
        Some(&*rustix::system::uname().nodename().to_string_lossy())
    );
}

#[test]
fn pipe_in_place_of_address_file_is_refused() {
    let fake = Fake::new(WARMING);
    let (command, file) = log(&fake);
    let mut server = serve(&fake, &format!("{RULE}{command}"));
    eventually("it fires", || received(&file).len() == 1);
    // Nothing is ever written into this pipe.
    let pipe = fake.path("url");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    write(
        &fake,
        &format!("{RULE}{command}[[webhook]]\nname = \"hook\"\nurl_file = {pipe:?}\n"),
    );
    signal("-HUP", server.child.id());
    eventually("its end is told", || received(&file).len() == 2);
    let error = status(&server)["error"].clone();
    assert!(
        error.as_str().unwrap().contains("is not a regular file"),
        "{error}"
    );
    let (ended, _) = server.terminate();
    assert!(ended.success(), "{ended}");
}

#[test]
fn in_silence_nobody_is_notified() {
    let fake = Fake::new(WARMING);
    let (command, file) = log(&fake);
    let server = serve(&fake, &format!("{RULE}{command}"));
    let silence = |arguments: &[&str]| {
        fake.gpumon(&[&["alerts", "silence"], arguments].concat())
            .output()
            .unwrap()
    };
    eventually("the socket is there", || {
        silence(&["hot", "2h"]).status.success()
    });
    eventually("it fires", || {
        status(&server)["rules"][0]["active"][0]["state"] == "firing"
    });
    assert_eq!(status(&server)["rules"][0]["silenced"], true);
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(snapshot["alerts"][0]["silenced"], true, "{snapshot}");
    assert_eq!(received(&file), [json!(null); 0]);
    let ended = silence(&["hot", "off"]);
    assert!(ended.status.success(), "{}", stderr(&ended));
    eventually("what still fires is told", || received(&file).len() == 1);

    let unknown = silence(&["hto", "2h"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        stderr(&unknown).contains("no alert rule is named 'hto'; there are hot"),
        "{}",
        stderr(&unknown)
    );
    refused_time(&fake);
    let over_port = crate::support::send(
        server.port,
        "POST /api/v1/alerts/silence",
        &["X-Gpumon: run"],
        "{}",
    );
    assert_eq!(over_port.status, 403);
}

fn refused_time(fake: &Fake) {
    let output = fake
        .gpumon(&["alerts", "silence", "hot", "2"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("30m, 2h or 7d"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_file_is_checked_tried_out_and_exported() {
    let fake = Fake::new("gpus = 1");
    let (command, received_file) = log(&fake);
    let (url, requests) = webhook(&[]);
    let slack = format!("[[webhook]]\nname = \"slack\"\nurl = \"{url}\"\nformat = \"slack\"\n");
    let disk = "[[rule]]\nname = \"disk\"\nfield = \"host.disk.read_bytes_per_second\"\nabove = \"1 GB/s\"\nnotify = []\n";
    let file = write(&fake, &format!("{RULE}{disk}{command}{slack}"));
    let file = file.to_str().unwrap();
    let checked = fake.gpumon(&["alerts", "check", file]).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert_eq!(
        stdout(&checked),
        "hot: Temperature above 85 °C (warning, notifies slack, log)\n\
         disk: Disk read above 954 MiB/s (warning)\nslack: webhook (slack)\nlog: command (sh)\n"
    );
    assert!(
        stderr(&checked).contains("disk: no receiver is notified"),
        "{}",
        stderr(&checked)
    );
    assert!(
        stderr(&checked).contains("chmod o-r") && !stderr(&checked).contains("secret"),
        "{}",
        stderr(&checked)
    );

    let tested = fake.gpumon(&["alerts", "test", file]).output().unwrap();
    assert!(tested.status.success(), "{}", stderr(&tested));
    let (_, message) = requests.recv_timeout(PATIENCE).unwrap();
    assert!(
        message["text"]
            .as_str()
            .unwrap()
            .starts_with("Notice: test: Test alert for slack: nothing is wrong"),
        "{message}"
    );
    assert_eq!(received(&received_file)[0]["rule"], "test");
    refused(
        fake.gpumon(&["alerts", "test", file, "--receiver", "salck"]),
        2,
        "did you mean 'slack'?",
    );

    let exported = fake
        .gpumon(&["alerts", "export", "--prometheus", file])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{}", stderr(&exported));
    assert!(
        stdout(&exported).contains("expr: \"gpumon_gpu_temperature_celsius > 85\""),
        "{}",
        stdout(&exported)
    );
    assert!(
        stderr(&exported).contains("disk is left out"),
        "{}",
        stderr(&exported)
    );

    let bad = write(&fake, &RULE.replace("gpu_celsius", "gpu_celcius"));
    let bad = bad.to_str().unwrap();
    let words = "alerts.toml:3:9: unknown field `temperature.gpu_celcius`; did you mean `temperature.gpu_celsius`?";
    refused(fake.gpumon(&["alerts", "check", bad]), 2, words);
    refused(
        fake.gpumon(&["serve", "--listen", "127.0.0.1:0", "--alerts", bad]),
        2,
        words,
    );
    refused(
        fake.gpumon(&["alerts", "check", "/no/such"]),
        2,
        "cannot read /no/such",
    );
}

#[tokio::test]
async fn alert_file_of_environment_is_optional() {
    let fake = Fake::new(HOT);
    let file = fake.path("alerts.toml");
    for (text, words) in [
        (None, "cannot read"),
        (Some("[[rule]]\n"), "alerts.toml:1:1: `name` is missing"),
    ] {
        let _ = fs::remove_file(&file);
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let mut command =
            fake.gpumon(&["serve", "--listen", "127.0.0.1:0", "--interval-ms", "200"]);
        command.env("GPUMON_ALERTS", &file);
        let server = Server::start(command);
        eventually("readings are served", || {
            server.get("/readyz").status == 200
        });
        let error = status(&server)["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            error.starts_with("There are no alerts") && error.contains(words),
            "{error}"
        );
        let hello = server.stream().await.next().await.unwrap();
        let is_shown =
            |event: &Value| event["what"] == "alert_problem" && event["message"] == error;
        assert!(
            hello["events"].as_array().unwrap().iter().any(is_shown),
            "the page shows it: {hello}"
        );
        let listed = stdout(&fake.gpumon(&["alerts", "list"]).output().unwrap());
        assert_eq!(listed, format!("{error}\n"));

        // A reload request reads a file that was created later.
        fs::write(&file, RULE).unwrap();
        signal("-HUP", server.child.id());
        eventually("the rule is read", || {
            status(&server)["rules"][0]["name"] == "hot"
        });
        assert_eq!(status(&server)["error"], json!(null));
        let log = server.end_and_read_log();
        assert!(log.contains(&format!("WARN {error}")), "{log}");
    }
    refused(
        fake.gpumon(&["serve", "--listen", "127.0.0.1:0", "--alerts", "/no/such"]),
        2,
        "cannot read /no/such",
    );
}

#[test]
fn files_of_environment_that_protect_are_required() {
    for variable in ["GPUMON_TOKEN_FILE", "GPUMON_WEB_CONFIG", "GPUMON_CONFIG"] {
        let mut command = Fake::new("gpus = 1").gpumon(&["serve", "--listen", "127.0.0.1:0"]);
        command.env(variable, "/no/such/file");
        refused(command, 2, "/no/such/file");
    }
}

#[test]
fn alert_file_without_rules_is_named() {
    let fake = Fake::new("gpus = 1");
    let server = serve(
        &fake,
        "[[command]]\nname = \"log\"\ncommand = [\"/bin/true\"]\n",
    );
    let listed = stdout(&fake.gpumon(&["alerts", "list"]).output().unwrap());
    assert!(
        listed.contains("the server's alert file has none") && !listed.contains("--alerts"),
        "{listed}"
    );
    drop(server);
    let checked = fake
        .gpumon(&[
            "alerts",
            "check",
            fake.path("alerts.toml").to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert_eq!(
        (checked.status.code(), &*stdout(&checked)),
        (Some(0), "log: command (true)\n")
    );
    assert!(
        stderr(&checked).contains("has no rules, so nothing is alerted"),
        "{}",
        stderr(&checked)
    );
}

#[test]
fn error_of_alert_file_is_printed_once() {
    let fake = Fake::new("gpus = 1");
    let file = write(&fake, &RULE.replace("85", "\"lots\""));
    for command in [
        &["alerts", "check"][..],
        &["serve", "--listen", "127.0.0.1:0", "--alerts"],
    ] {
        let output = fake
            .gpumon(&[command, &[file.to_str().unwrap()]].concat())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(
            (output.status.code(), said.matches("invalid value").count()),
            (Some(2), 1),
            "{said}"
        );
    }
}
