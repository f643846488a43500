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

use crate::support::{
    FakeNvml, Server, TEST_TIMEOUT, assert_refused, send_signal, stderr_text, stdout_text,
    wait_for_condition,
};

/// A GPU that is cool at first, then hot, and then cool again.
const TEMPORARILY_HOT_GPU: &str =
    "[[gpu]]\nindex = 0\ntemperature_celsius = [[0, 40], [3, 40], [3, 95], [10, 95], [10, 40]]\n";
const HOT_GPU: &str = "[[gpu]]\nindex = 0\ntemperature_celsius = 95\n";
const HOT_RULE: &str = "[[rule]]\nname = \"hot\"\nfield = \"temperature.gpu_celsius\"\nabove = \
                        85\nclear_for = \"1s\"\n";

fn write_alert_file(fake: &FakeNvml, text: &str) -> PathBuf {
    let file = fake.path("alerts.toml");
    fs::write(&file, text).unwrap();
    file
}

fn serve_alerts(fake: &FakeNvml, text: &str) -> Server {
    let file = write_alert_file(fake, text);
    Server::start_with_fake(
        fake,
        &["--interval-ms", "200", "--alerts", file.to_str().unwrap()],
    )
}

/// Returns a receiver that appends each notification to a file, and the file.
fn make_log_receiver(fake: &FakeNvml) -> (String, PathBuf) {
    let file = fake.path("received");
    let script = format!("cat >> {0}; echo >> {0}", file.display());
    (
        format!("[[command]]\nname = \"log\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n"),
        file,
    )
}

fn read_notifications(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Starts an HTTP server. It answers each request with the next status in the list, and with 200
/// after the last one. Returns its URL, and the heads and bodies of received requests.
fn start_webhook(statuses: &'static [u16]) -> (String, Receiver<(String, Value)>) {
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
                assert!(count > 0, "the request ended early: {text}");
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

fn alert_status(server: &Server) -> Value {
    server.get("/api/v1/alerts").json()
}

#[tokio::test]
async fn alert_and_its_resolution_reach_clients_and_receivers() {
    let fake = FakeNvml::new(TEMPORARILY_HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    // The first attempt fails and is repeated.
    let (url, requests) = start_webhook(&[503]);
    let server = serve_alerts(
        &fake,
        &format!("{HOT_RULE}{command}[[webhook]]\nname = \"hook\"\nurl = \"{url}\"\n"),
    );
    let mut stream = server.open_stream().await;
    let hello = stream.next_frame().await.unwrap();
    assert_eq!(hello.get("alerts"), None, "no alert fires yet");
    let firing = stream
        .read_until(|frame| frame["what"] == "alert_firing")
        .await;
    assert_eq!(
        (
            &firing["rule"],
            &firing["gpu"]["index"],
            &firing["severity"]
        ),
        (&json!("hot"), &json!(0), &json!("warning"))
    );
    assert_eq!(firing["text"], "Temperature 95 °C, above 85 °C");
    let list = stream.next_frame_of_type("alerts").await;
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
    let hello = server.open_stream().await.next_frame().await.unwrap();
    assert_eq!(hello["alerts"][0]["rule"], "hot");
    let listed = fake.gpumon_command(&["alerts", "list"]).output().unwrap();
    assert!(
        stdout_text(&listed).starts_with("firing    hot: Temperature above 85 °C (warning)\n"),
        "{}",
        stdout_text(&listed)
    );

    stream
        .read_until(|frame| frame["what"] == "alert_resolved")
        .await;
    stream
        .read_until(|frame| frame["type"] == "alerts" && frame["firing"] == json!([]))
        .await;
    wait_for_condition(
        "the command was notified of the alert and of its end",
        || read_notifications(&file).len() == 2,
    );
    let mut reported = read_notifications(&file);
    assert_eq!(
        [&reported[0]["what"], &reported[1]["what"]],
        ["alert_firing", "alert_resolved"]
    );
    let host = reported[0].as_object_mut().unwrap().remove("host");
    assert!(host.is_some_and(|host| host.as_str().is_some_and(|host| !host.is_empty())));
    let mut event = firing.clone();
    event.as_object_mut().unwrap().remove("type");
    assert_eq!(reported[0], event, "receivers get the event itself");
    let posted: Vec<_> = (0..3)
        .map(|_| requests.recv_timeout(TEST_TIMEOUT).unwrap())
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
    wait_for_condition("the notifications are counted", || {
        alert_status(&server)["receivers"][0]["sent"] == 2
    });
    // No output may contain the receiver's URL, because it is a secret.
    let hello = server.open_stream().await.next_frame().await.unwrap();
    for text in [
        alert_status(&server).to_string(),
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
async fn alert_fires_while_gpu_is_host_bound() {
    let fake = FakeNvml::new(
        "gpus = 2\n[[process]]\ngpu = 1\npid = 5000001\nsm_percent = 20\nworkers = 2\nto_s = 6\n",
    );
    let rule = "[[rule]]\nname = \"waits\"\nlimited_by = \"host\"\nclear_for = \"0s\"\nmessage = \
                \"Ask Ana\"\n";
    let file = write_alert_file(&fake, rule);
    let arguments = ["--interval-ms", "250", "--alerts", file.to_str().unwrap()];
    let server = Server::start_simulated(&fake, &arguments);
    let mut stream = server.open_stream().await;
    let firing = stream
        .read_until(|frame| frame["what"] == "alert_firing")
        .await;
    assert_eq!(
        (&firing["rule"], &firing["gpu"]["index"]),
        (&json!("waits"), &json!(1))
    );
    let text = firing["text"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Host-bound 80 %: 2 worker processes use 200 % of a core while the GPU waits. "
        ) && text.ends_with(". Ask Ana"),
        "{text}"
    );
    let listed = fake.gpumon_command(&["alerts", "list"]).output().unwrap();
    assert!(
        stdout_text(&listed).contains("waits: Host-bound (warning)\n"),
        "{}",
        stdout_text(&listed)
    );
    let resolved = stream
        .read_until(|frame| frame["what"] == "alert_resolved")
        .await;
    assert_eq!(resolved["rule"], "waits");

    let exported = fake
        .gpumon_command(&["alerts", "export", "--prometheus", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        stdout_text(&exported).contains(r#"gpumon_gpu_limited_seconds_total{cause=\"host\"}"#)
            && stderr_text(&exported).is_empty(),
        "{}{}",
        stdout_text(&exported),
        stderr_text(&exported)
    );
}

#[tokio::test]
async fn hanging_receivers_do_not_delay_samples() {
    // This receiver accepts connections but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let fake = FakeNvml::new(HOT_GPU);
    let receivers = format!(
        "[[webhook]]\nname = \"hook\"\nurl = \"http://{}/\"\ntimeout = \"60s\"\n\
         [[command]]\nname = \"stuck\"\ncommand = [\"sleep\", \"600\"]\ntimeout = \"60s\"\n",
        silent.local_addr().unwrap()
    );
    let server = serve_alerts(&fake, &format!("{HOT_RULE}{receivers}"));
    let mut stream = server.open_stream().await;
    if stream.next_frame().await.unwrap().get("alerts").is_none() {
        stream.next_frame_of_type("alerts").await;
    }
    for _ in 0..20 {
        stream.next_frame_of_type("sample").await;
    }
    let status = alert_status(&server);
    for receiver in status["receivers"].as_array().unwrap() {
        assert_eq!(
            (&receiver["sent"], &receiver["error"]),
            (&json!(0), &json!(null)),
            "the receiver still hangs: {receiver}"
        );
    }
}

#[tokio::test]
async fn changed_rules_are_reloaded_unless_invalid() {
    let fake = FakeNvml::new(HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    let server = serve_alerts(&fake, &format!("{HOT_RULE}{command}"));
    let mut stream = server.open_stream().await;
    wait_for_condition("the alert was sent", || {
        read_notifications(&file).len() == 1
    });

    write_alert_file(&fake, &HOT_RULE.replace("above", "abvoe"));
    send_signal("-HUP", server.child.id());
    let problem = stream
        .read_until(|frame| frame["what"] == "alert_problem")
        .await;
    let message = problem["message"].as_str().unwrap();
    assert!(
        message.contains("the previous rules stay in effect")
            && message.contains("did you mean `above`?"),
        "{message}"
    );
    let known = alert_status(&server);
    assert_eq!(
        (&known["rules"][0]["name"], &known["error"]),
        (&json!("hot"), &json!(message))
    );

    let other = HOT_RULE.replace("\"hot\"", "\"warm\"").replace("85", "60");
    write_alert_file(&fake, &format!("{other}{command}"));
    send_signal("-HUP", server.child.id());
    stream
        .read_until(|frame| frame["what"] == "alert_resolved" && frame["rule"] == "hot")
        .await;
    wait_for_condition("all receivers were notified", || {
        read_notifications(&file).len() == 3
    });
    let reported: Vec<_> = read_notifications(&file)
        .iter()
        .map(|event| format!("{} {}", event["what"], event["rule"]))
        .collect();
    assert!(
        reported.contains(&"\"alert_firing\" \"warm\"".to_owned()),
        "{reported:?}"
    );
    assert_eq!(alert_status(&server)["error"], json!(null));
}

#[tokio::test]
async fn repaired_receiver_is_notified_of_firing_alerts() {
    let fake = FakeNvml::new(HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    let hook =
        |url: &str| format!("{HOT_RULE}{command}[[webhook]]\nname = \"hook\"\nurl = \"{url}\"\n");
    let (wrong, refused) = start_webhook(&[404, 404]);
    let server = serve_alerts(&fake, &hook(&wrong));
    refused.recv_timeout(TEST_TIMEOUT).unwrap();
    wait_for_condition("the webhook refused the notification", || {
        alert_status(&server)["receivers"][0]["failed"] == 1
    });
    let (right, requests) = start_webhook(&[]);
    write_alert_file(&fake, &hook(&right));
    send_signal("-HUP", server.child.id());
    let (_, body) = requests.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(
        (&body["what"], &body["rule"]),
        (&json!("alert_firing"), &json!("hot"))
    );
    wait_for_condition("the notification is counted", || {
        alert_status(&server)["receivers"][0]["sent"] == 1
    });
    assert_eq!(
        read_notifications(&file).len(),
        1,
        "the other receiver was already notified"
    );
}

#[test]
fn restart_resolves_ended_alerts_without_repeating_notifications() {
    let fake = FakeNvml::new(HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    let rules = write_alert_file(&fake, &format!("{HOT_RULE}{command}"));
    let data = fake.path("data");
    let arguments = [
        "--interval-ms",
        "200",
        "--alerts",
        rules.to_str().unwrap(),
        "--data-dir",
        data.to_str().unwrap(),
    ];
    let start = || Server::start_with_fake(&fake, &arguments);
    let is_kept =
        || fs::read_to_string(data.join("alerts.json")).is_ok_and(|text| text.contains("\"log\""));
    let server = start();
    wait_for_condition("the alert was sent", || {
        read_notifications(&file).len() == 1
    });
    wait_for_condition("the notification is stored", is_kept);
    // The server is killed without a chance to write its state.
    drop(server);
    let mut server = start();
    wait_for_condition("the alert fires again", || {
        alert_status(&server)["rules"][0]["active"][0]["state"] == "firing"
    });
    let seq = |server: &Server| {
        server.get("/api/v1/snapshot").json()["sample"]["seq"]
            .as_u64()
            .unwrap_or(0)
    };
    wait_for_condition("more than ten samples have arrived", || seq(&server) > 10);
    assert_eq!(
        read_notifications(&file).len(),
        1,
        "{:?}",
        read_notifications(&file)
    );
    server.terminate();

    fs::write(fake.path("scenario.toml"), HOT_GPU.replace("95", "40")).unwrap();
    let server = start();
    wait_for_condition("the end of the alert was sent", || {
        read_notifications(&file).len() == 2
    });
    assert_eq!(read_notifications(&file)[1]["what"], "alert_resolved");
    wait_for_condition("the end of the alert is stored", || !is_kept());
    drop(server);
    // A state file that is not valid JSON is replaced.
    fs::write(data.join("alerts.json"), "{").unwrap();
    fs::write(fake.path("scenario.toml"), HOT_GPU).unwrap();
    let _server = start();
    wait_for_condition("the alert was sent again", || {
        read_notifications(&file).len() == 3
    });
    wait_for_condition("the notification is stored", is_kept);
}

#[test]
fn absence_alert_names_node_if_driver_is_missing() {
    let fake = FakeNvml::new("gpus = 1");
    let (command, file) = make_log_receiver(&fake);
    let rules = write_alert_file(
        &fake,
        &format!("[[rule]]\nname = \"gone\"\nabsent = true\n{command}"),
    );
    let _server = Server::start(fake.gpumon_command(&[
        "--nvml-lib",
        "/no/such/library",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--alerts",
        rules.to_str().unwrap(),
    ]));
    wait_for_condition("the alert was sent", || {
        !read_notifications(&file).is_empty()
    });
    let host = read_notifications(&file)[0]["host"].clone();
    assert_eq!(
        host.as_str(),
        Some(&*rustix::system::uname().nodename().to_string_lossy())
    );
}

#[test]
fn named_pipe_replacing_url_file_is_refused() {
    let fake = FakeNvml::new(TEMPORARILY_HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    let mut server = serve_alerts(&fake, &format!("{HOT_RULE}{command}"));
    wait_for_condition("the alert was sent", || {
        read_notifications(&file).len() == 1
    });
    // Nothing is ever written into this pipe, so reading the URL from it would block.
    let pipe = fake.path("url");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    write_alert_file(
        &fake,
        &format!("{HOT_RULE}{command}[[webhook]]\nname = \"hook\"\nurl_file = {pipe:?}\n"),
    );
    send_signal("-HUP", server.child.id());
    wait_for_condition("the end of the alert was sent", || {
        read_notifications(&file).len() == 2
    });
    let error = alert_status(&server)["error"].clone();
    assert!(
        error.as_str().unwrap().contains("is not a regular file"),
        "{error}"
    );
    let (ended, _) = server.terminate();
    assert!(ended.success(), "{ended}");
}

#[test]
fn silenced_alert_does_not_notify_receivers() {
    let fake = FakeNvml::new(TEMPORARILY_HOT_GPU);
    let (command, file) = make_log_receiver(&fake);
    let server = serve_alerts(&fake, &format!("{HOT_RULE}{command}"));
    let silence = |arguments: &[&str]| {
        fake.gpumon_command(&[&["alerts", "silence"], arguments].concat())
            .output()
            .unwrap()
    };
    wait_for_condition("the server accepts requests on its control socket", || {
        silence(&["hot", "2h"]).status.success()
    });
    wait_for_condition("the alert fires", || {
        alert_status(&server)["rules"][0]["active"][0]["state"] == "firing"
    });
    assert_eq!(alert_status(&server)["rules"][0]["silenced"], true);
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(snapshot["alerts"][0]["silenced"], true, "{snapshot}");
    assert_eq!(read_notifications(&file), [json!(null); 0]);
    let ended = silence(&["hot", "off"]);
    assert!(ended.status.success(), "{}", stderr_text(&ended));
    wait_for_condition("the alert that still fires was sent", || {
        read_notifications(&file).len() == 1
    });

    let unknown = silence(&["hto", "2h"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(
        stderr_text(&unknown).contains("no alert rule is named 'hto'; use one of hot"),
        "{}",
        stderr_text(&unknown)
    );
    assert_time_is_refused(&fake);
    let over_port = crate::support::send_request(
        server.port,
        "POST /api/v1/alerts/silence",
        &["X-Gpumon: run"],
        "{}",
    );
    assert_eq!(over_port.status, 403);
}

fn assert_time_is_refused(fake: &FakeNvml) {
    let output = fake
        .gpumon_command(&["alerts", "silence", "hot", "2"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr_text(&output).contains("30m, 2h or 7d"),
        "{}",
        stderr_text(&output)
    );
}

#[test]
fn alert_file_is_checked_tested_and_exported() {
    let fake = FakeNvml::new("gpus = 1");
    let (command, received_file) = make_log_receiver(&fake);
    let (url, requests) = start_webhook(&[]);
    let slack = format!("[[webhook]]\nname = \"slack\"\nurl = \"{url}\"\nformat = \"slack\"\n");
    let disk = "[[rule]]\nname = \"disk\"\nfield = \"host.disk.read_bytes_per_second\"\nabove = \
                \"1 GB/s\"\nnotify = []\n";
    let file = write_alert_file(&fake, &format!("{HOT_RULE}{disk}{command}{slack}"));
    let file = file.to_str().unwrap();
    let checked = fake
        .gpumon_command(&["alerts", "check", file])
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", stderr_text(&checked));
    assert_eq!(
        stdout_text(&checked),
        "hot: Temperature above 85 °C (warning, notifies slack, log)\n\
         disk: Disk read above 954 MiB/s (warning)\nslack: webhook (slack)\nlog: command (sh)\n"
    );
    assert!(
        stderr_text(&checked).contains("disk: this rule notifies no receiver"),
        "{}",
        stderr_text(&checked)
    );
    assert!(
        stderr_text(&checked).contains("chmod o-r") && !stderr_text(&checked).contains("secret"),
        "{}",
        stderr_text(&checked)
    );

    let tested = fake
        .gpumon_command(&["alerts", "test", file])
        .output()
        .unwrap();
    assert!(tested.status.success(), "{}", stderr_text(&tested));
    let (_, message) = requests.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(
        message["text"]
            .as_str()
            .unwrap()
            .starts_with("Notice: test: Test alert for slack: nothing is wrong"),
        "{message}"
    );
    assert_eq!(read_notifications(&received_file)[0]["rule"], "test");
    assert_refused(
        fake.gpumon_command(&["alerts", "test", file, "--receiver", "salck"]),
        2,
        "did you mean 'slack'?",
    );

    let exported = fake
        .gpumon_command(&["alerts", "export", "--prometheus", file])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{}", stderr_text(&exported));
    assert!(
        stdout_text(&exported).contains("expr: \"gpumon_gpu_temperature_celsius > 85\""),
        "{}",
        stdout_text(&exported)
    );
    assert!(
        stderr_text(&exported).contains("rule disk is not exported"),
        "{}",
        stderr_text(&exported)
    );

    let bad = write_alert_file(&fake, &HOT_RULE.replace("gpu_celsius", "gpu_celcius"));
    let bad = bad.to_str().unwrap();
    let words = "alerts.toml:3:9: unknown field `temperature.gpu_celcius`; did you mean \
                 `temperature.gpu_celsius`?";
    assert_refused(fake.gpumon_command(&["alerts", "check", bad]), 2, words);
    assert_refused(
        fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0", "--alerts", bad]),
        2,
        words,
    );
    assert_refused(
        fake.gpumon_command(&["alerts", "check", "/no/such"]),
        2,
        "cannot read /no/such",
    );
}

#[tokio::test]
async fn alert_file_from_environment_is_optional() {
    let fake = FakeNvml::new(HOT_GPU);
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
            fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0", "--interval-ms", "200"]);
        command.env("GPUMON_ALERTS", &file);
        let server = Server::start(command);
        wait_for_condition("the server has readings", || {
            server.get("/readyz").status == 200
        });
        let error = alert_status(&server)["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            error.starts_with("There are no alerts") && error.contains(words),
            "{error}"
        );
        let hello = server.open_stream().await.next_frame().await.unwrap();
        let is_shown =
            |event: &Value| event["what"] == "alert_problem" && event["message"] == error;
        assert!(
            hello["events"].as_array().unwrap().iter().any(is_shown),
            "clients get the problem as an event: {hello}"
        );
        let listed = stdout_text(&fake.gpumon_command(&["alerts", "list"]).output().unwrap());
        assert_eq!(listed, format!("{error}\n"));

        // The alert file did not exist when the server started. A reload request must also read a
        // file that was created later.
        fs::write(&file, HOT_RULE).unwrap();
        send_signal("-HUP", server.child.id());
        wait_for_condition("the rule was loaded", || {
            alert_status(&server)["rules"][0]["name"] == "hot"
        });
        assert_eq!(alert_status(&server)["error"], json!(null));
        let log = server.end_and_read_log();
        assert!(log.contains(&format!("WARN {error}")), "{log}");
    }
    assert_refused(
        fake.gpumon_command(&["serve", "--listen", "127.0.0.1:0", "--alerts", "/no/such"]),
        2,
        "cannot read /no/such",
    );
}

#[test]
fn security_files_from_environment_are_required() {
    for variable in ["GPUMON_TOKEN_FILE", "GPUMON_WEB_CONFIG", "GPUMON_CONFIG"] {
        let mut command =
            FakeNvml::new("gpus = 1").gpumon_command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env(variable, "/no/such/file");
        assert_refused(command, 2, "/no/such/file");
    }
}

#[test]
fn alert_file_without_rules_is_reported() {
    let fake = FakeNvml::new("gpus = 1");
    let server = serve_alerts(
        &fake,
        "[[command]]\nname = \"log\"\ncommand = [\"/bin/true\"]\n",
    );
    let listed = stdout_text(&fake.gpumon_command(&["alerts", "list"]).output().unwrap());
    assert!(
        listed.contains("the server's alert file contains none") && !listed.contains("--alerts"),
        "{listed}"
    );
    drop(server);
    let checked = fake
        .gpumon_command(&[
            "alerts",
            "check",
            fake.path("alerts.toml").to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert_eq!(
        (checked.status.code(), &*stdout_text(&checked)),
        (Some(0), "log: command (true)\n")
    );
    assert!(
        stderr_text(&checked).contains("has no rules, so it causes no alerts"),
        "{}",
        stderr_text(&checked)
    );
}

#[test]
fn error_of_alert_file_is_printed_once() {
    let fake = FakeNvml::new("gpus = 1");
    let file = write_alert_file(&fake, &HOT_RULE.replace("85", "\"lots\""));
    for command in [
        &["alerts", "check"][..],
        &["serve", "--listen", "127.0.0.1:0", "--alerts"],
    ] {
        let output = fake
            .gpumon_command(&[command, &[file.to_str().unwrap()]].concat())
            .output()
            .unwrap();
        let said = stderr_text(&output);
        assert_eq!(
            (output.status.code(), said.matches("invalid value").count()),
            (Some(2), 1),
            "{said}"
        );
    }
}
