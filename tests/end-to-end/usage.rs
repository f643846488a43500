//! `gpumon usage` and `GET /api/v1/usage`: the GPU use of each owner, both since the server's start
//! and in a range of time.

use std::process;

use gpumon_probe::usage::PERIOD_MS;
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, assert_refused, stderr_text, stdout_text, wait_for_condition,
};

#[test]
fn exclusive_owner_gets_all_energy() {
    let mut sleepers = [(); 2].map(|()| process::Command::new("sleep").arg("600").spawn().unwrap());
    let [one, other] = [&sleepers[0], &sleepers[1]].map(std::process::Child::id);
    let fake = FakeNvml::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[gpu]]\nindex = 1\npower_watts = 80\nprofile = \
         \"idle\"\n[[process]]\ngpu = 0\npid = {one}\nmemory = \"2 GiB\"\nsm_percent = \
         50\n[[process]]\ngpu = 0\npid = {other}\nmemory = \"1 GiB\"\n"
    ));
    let none = fake.gpumon_command(&["usage"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr_text(&none).contains("gpumon serve") && stderr_text(&none).contains("--control"),
        "{}",
        stderr_text(&none)
    );

    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    let known = || server.get("/api/v1/usage").json();
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(0.0);
    let watts = |of: &Value, joules: f64| joules / number(of, "gpu_seconds");
    // The energy counter is read every five seconds, so the energy of the owners is known later
    // than their GPU time.
    let mut usage = Value::Null;
    wait_for_condition("the energy of both GPUs is known", || {
        usage = known();
        let (owner, unheld) = (&usage["owners"][0], &usage["unheld"]);
        number(owner, "gpu_seconds") > 5.0
            && (291.0..=309.0).contains(&watts(owner, number(&owner["joules"], "estimate")))
            && (77.0..=83.0).contains(&watts(unheld, number(unheld, "joules")))
    });
    let owner = &usage["owners"][0];
    let user = process::Command::new("id").arg("-un").output().unwrap();
    assert_eq!(owner["user"], stdout_text(&user).trim());
    // Both programs have the same owner, because they are in the same service or container.
    assert_eq!(usage["owners"].as_array().unwrap().len(), 1, "{usage}");
    let joules = &owner["joules"];
    assert_eq!(
        (&joules["least"], &joules["most"]),
        (&joules["estimate"], &joules["estimate"])
    );
    let active = number(owner, "active_seconds") / number(owner, "gpu_seconds");
    assert!((0.45..0.55).contains(&active), "{usage}");

    let table = fake.gpumon_command(&["usage"]).output().unwrap();
    let table = stdout_text(&table);
    assert!(
        table.contains("User") && table.contains(" exact") && table.contains("no process"),
        "{table}"
    );
    let json = fake.gpumon_command(&["usage", "--json"]).output().unwrap();
    let json: Value = serde_json::from_str(&stdout_text(&json)).unwrap();
    assert_eq!(json["owners"][0]["user"], owner["user"]);
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}

#[test]
fn usage_survives_restart_of_server() {
    let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
    let fake = FakeNvml::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[process]]\ngpu = 0\npid = {}\nmemory = \"2 \
         GiB\"\nsm_percent = 50\n",
        sleeper.id()
    ));
    let folder = fake.path("history").to_str().unwrap().to_owned();
    let start = || Server::start_with_fake(&fake, &["--interval-ms", "200", "--data-dir", &folder]);
    let ask = |arguments: &[&str]| {
        let output = fake
            .gpumon_command(&[&["usage", "--json"], arguments].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr_text(&output)
        );
        serde_json::from_str::<Value>(&stdout_text(&output)).unwrap()
    };
    let seconds = |usage: &Value| usage["owners"][0]["gpu_seconds"].as_f64().unwrap_or(0.0);

    let mut server = start();
    wait_for_condition("the server has some usage", || {
        seconds(&ask(&["--since", "-1h"])) > 8.0
    });
    let (spanned, whole) = (ask(&["--since", "-1h"]), ask(&[]));
    // The sums were computed in a different order, so their last digits can differ.
    assert!(
        seconds(&whole) + 1e-6 >= seconds(&spanned) && whole["oldest_ms"].is_null(),
        "{whole} {spanned}"
    );
    let quarter = |usage: &Value| usage["since_ms"].as_u64().unwrap() / PERIOD_MS;
    assert_eq!(
        (quarter(&spanned), &spanned["oldest_ms"]),
        (quarter(&whole), &spanned["since_ms"]),
        "{spanned}"
    );
    assert_eq!(spanned["owners"][0]["user"], whole["owners"][0]["user"]);
    server.terminate();

    // This command only reads the data directory. Use is only stored once its energy is known, so
    // the server stored the last part when it ended.
    let stored = ask(&["--data-dir", &folder]);
    assert!(
        seconds(&stored) + 0.5 >= seconds(&whole),
        "{stored} {whole}"
    );
    let joules = &stored["owners"][0]["joules"];
    let watts = joules["estimate"].as_f64().unwrap() / seconds(&stored);
    assert!(
        (285.0..=315.0).contains(&watts) && joules["least"].as_f64() > Some(0.0),
        "{stored}"
    );
    let table = fake
        .gpumon_command(&["usage", "--data-dir", &folder, "--since", "-8d"])
        .output()
        .unwrap();
    let table = stdout_text(&table);
    assert!(
        table.contains("; no earlier usage is recorded:") && table.contains("GPU hours"),
        "{table}"
    );

    // The next server continues where this one ended.
    let _server = start();
    wait_for_condition("the usage of both servers is summed", || {
        seconds(&ask(&["--since", "-1h"])) > seconds(&stored) + 4.0
    });
    assert!(seconds(&ask(&[])) < seconds(&ask(&["--since", "-1h"])) - seconds(&stored) + 5.0);

    let usage = |arguments: &[&'static str]| fake.gpumon_command(&[&["usage"], arguments].concat());
    assert_refused(
        usage(&["--since", "2020-01-01", "--until", "2020-02-01"]),
        1,
        "the recording starts at",
    );
    assert_refused(
        usage(&["--since", "-1h", "--until", "-2h"]),
        2,
        "give a start before the end",
    );
    assert_refused(usage(&["--since", "noon"]), 2, "'noon' is not a time");
    assert_refused(usage(&["--data-dir", "/nowhere"]), 1, "/nowhere/history.db");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn invalid_time_ranges_are_refused_with_remedy() {
    let fake = FakeNvml::new("gpus = 1");
    let server = Server::start_with_fake(&fake, &[]);
    for (query, word) in [
        ("from_ms=2&to_ms=1", "from_ms=2 must be before to_ms=1"),
        ("from=1", "use from_ms and to_ms, or no parameters"),
    ] {
        let answer = server.get(&format!("/api/v1/usage?{query}"));
        assert!(
            answer.status == 400 && answer.body.contains(word),
            "{query}: {}",
            answer.body
        );
    }
    // There is no use in this range.
    let past = server.get("/api/v1/usage?from_ms=1000&to_ms=2000").json();
    assert_eq!(past["owners"], serde_json::json!([]), "{past}");
}
