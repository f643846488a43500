//! `gpumon usage` and `GET /api/v1/usage`: the use by each owner since the server's start and in
//! time ranges.

use std::process;

use gpumon_probe::usage::PERIOD_MS;
use serde_json::Value;

use crate::support::{Fake, Server, eventually, refused, stderr, stdout};

#[test]
fn who_has_a_gpu_alone_used_what_its_counter_grew_by() {
    let mut sleepers = [(); 2].map(|()| process::Command::new("sleep").arg("600").spawn().unwrap());
    let [one, other] = [&sleepers[0], &sleepers[1]].map(std::process::Child::id);
    let fake = Fake::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[gpu]]\nindex = 1\npower_watts = 80\nprofile = \"idle\"\n\
         [[process]]\ngpu = 0\npid = {one}\nmemory = \"2 GiB\"\nsm_percent = 50\n\
         [[process]]\ngpu = 0\npid = {other}\nmemory = \"1 GiB\"\n"
    ));
    let none = fake.gpumon(&["usage"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(
        stderr(&none).contains("gpumon serve") && stderr(&none).contains("--control"),
        "{}",
        stderr(&none)
    );

    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let known = || server.get("/api/v1/usage").json();
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(0.0);
    let watts = |of: &Value, joules: f64| joules / number(of, "gpu_seconds");
    // The counter is read every five seconds, so energy is known later than time.
    let mut usage = Value::Null;
    eventually("energy of both GPUs is known", || {
        usage = known();
        let (owner, unheld) = (&usage["owners"][0], &usage["unheld"]);
        number(owner, "gpu_seconds") > 5.0
            && (291.0..=309.0).contains(&watts(owner, number(&owner["joules"], "estimate")))
            && (77.0..=83.0).contains(&watts(unheld, number(unheld, "joules")))
    });
    let owner = &usage["owners"][0];
    let user = process::Command::new("id").arg("-un").output().unwrap();
    assert_eq!(owner["user"], stdout(&user).trim());
    // Both programs have the same owner, because they are in the same service or container.
    assert_eq!(usage["owners"].as_array().unwrap().len(), 1, "{usage}");
    let joules = &owner["joules"];
    assert_eq!(
        (&joules["least"], &joules["most"]),
        (&joules["estimate"], &joules["estimate"])
    );
    let active = number(owner, "active_seconds") / number(owner, "gpu_seconds");
    assert!((0.45..0.55).contains(&active), "{usage}");

    let table = fake.gpumon(&["usage"]).output().unwrap();
    let table = stdout(&table);
    assert!(
        table.contains("User") && table.contains(" exact") && table.contains("no process"),
        "{table}"
    );
    let json = fake.gpumon(&["usage", "--json"]).output().unwrap();
    let json: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(json["owners"][0]["user"], owner["user"]);
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}

#[test]
fn who_used_how_much_when_outlives_the_server() {
    let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
    let fake = Fake::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[process]]\ngpu = 0\npid = {}\nmemory = \"2 GiB\"\nsm_percent = 50\n",
        sleeper.id()
    ));
    let folder = fake.path("history").to_str().unwrap().to_owned();
    let start = || Server::over(&fake, &["--interval-ms", "200", "--data-dir", &folder]);
    let ask = |arguments: &[&str]| {
        let output = fake
            .gpumon(&[&["usage", "--json"], arguments].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        serde_json::from_str::<Value>(&stdout(&output)).unwrap()
    };
    let seconds = |usage: &Value| usage["owners"][0]["gpu_seconds"].as_f64().unwrap_or(0.0);

    let mut server = start();
    eventually("something is known", || {
        seconds(&ask(&["--since", "-1h"])) > 8.0
    });
    let (spanned, whole) = (ask(&["--since", "-1h"]), ask(&[]));
    // Sums in a different order differ in the last digits.
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

    // Only the file is read. When the server ended, it wrote the use that waited for the energy
    // counter.
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
        .gpumon(&["usage", "--data-dir", &folder, "--since", "-8d"])
        .output()
        .unwrap();
    let table = stdout(&table);
    assert!(
        table.contains("; nothing is known before:") && table.contains("GPU hours"),
        "{table}"
    );

    // The next server continues where this one ended.
    let _server = start();
    eventually("both are added up", || {
        seconds(&ask(&["--since", "-1h"])) > seconds(&stored) + 4.0
    });
    assert!(seconds(&ask(&[])) < seconds(&ask(&["--since", "-1h"])) - seconds(&stored) + 5.0);

    let usage = |arguments: &[&'static str]| fake.gpumon(&[&["usage"], arguments].concat());
    refused(
        usage(&["--since", "2020-01-01", "--until", "2020-02-01"]),
        1,
        "usage is recorded since",
    );
    refused(
        usage(&["--since", "-1h", "--until", "-2h"]),
        2,
        "give a beginning before the end",
    );
    refused(usage(&["--since", "noon"]), 2, "'noon' is not a moment");
    refused(usage(&["--data-dir", "/nowhere"]), 1, "/nowhere/history.db");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn spans_that_are_none_are_refused_with_the_cure() {
    let fake = Fake::new("gpus = 1");
    let server = Server::over(&fake, &[]);
    for (query, word) in [
        ("from_ms=2&to_ms=1", "from_ms=2 is not before to_ms=1"),
        ("from=1", "ask for from_ms and to_ms, or nothing"),
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
