//! `gpumon schema` describes what gpumon writes.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{Fake, Server, eventually, gpumon, stderr, stdout};

/// As much as a machine can have, and the matter with it.
const RICH: &str = r#"
gpus = 4
[[gpu]]
index = 0
throttle_reasons = ["sw_power_cap", "hw_thermal_slowdown"]
ecc_uncorrected = 2
fans = 2
[[gpu]]
index = 1
mig = [{ profile = "3g.71gb", gpu_instance = 2 }, { profile = "1g.18gb", gpu_instance = 7 }]
[[gpu]]
index = 2
architecture = "pascal"
[[event]]
gpu = 0
at_s = 1
kind = "xid"
code = 31
[[fault]]
kind = "lost"
gpu = 3
from_s = 1
"#;

fn validator(of: &str) -> Validator {
    let output = gpumon(&["schema", of]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn is_valid(validator: &Validator, value: &Value) {
    let complaints: Vec<_> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn what_gpumon_prints_is_what_the_schema_says() {
    let process = format!("[[process]]\ngpu = 0\npid = {}\nmemory = \"1 GiB\"\n", std::process::id());
    let fake = Fake::new(&(RICH.to_owned() + &process));
    let snapshot = validator("snapshot");
    is_valid(&snapshot, &fake.json());
    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let snapshot_now = || server.get("/api/v1/snapshot?history_s=60").json();
    eventually("something is the matter", || {
        let told = snapshot_now();
        let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
        !is_empty(&told["sample"]["gpus"][0]["conditions"]) && !is_empty(&told["events"])
    });
    is_valid(&snapshot, &snapshot_now());
    let record = validator("record");
    let lines = stdout(&fake.gpumon(&["collect", "--count", "3", "--interval-ms", "200"]).output().unwrap());
    assert!(lines.lines().count() > 5);
    for line in lines.lines() {
        is_valid(&record, &serde_json::from_str(line).unwrap());
    }
}

#[test]
fn what_gpumon_would_not_print_is_refused() {
    let snapshot = validator("snapshot");
    let good = Fake::new("gpus = 1").json();
    is_valid(&snapshot, &good);
    let wrong: [fn(&mut Value); 5] = [
        |json| json["sample"]["gpus"][0]["index"] = json!("0"),
        |json| json["sample"]["gpus"][0]["power"]["draw_watts"] = json!({"absent": "because"}),
        |json| json["sample"]["gpus"][0]["health"] = json!({"state": "fine"}),
        |json| json["sample"]["gpus"][0]["processes"] = json!([{"pid": 1}]),
        |json| drop(json.as_object_mut().unwrap().remove("inventory")),
    ];
    for (number, wrong) in wrong.iter().enumerate() {
        let mut json = good.clone();
        wrong(&mut json);
        assert!(!snapshot.is_valid(&json), "{number}");
    }
}

#[test]
fn a_key_says_what_it_means_and_its_unit() {
    let schema: Value = serde_json::from_slice(&gpumon(&["schema"]).output().unwrap().stdout).unwrap();
    let power = &schema["$defs"]["Power"]["properties"]["limit_watts"];
    assert_eq!(power["description"], "The power limit in force.");
    assert!(power["$comment"].as_str().unwrap().contains("nvmlDeviceGetEnforcedPowerLimit"), "{power}");
    assert_eq!(gpumon(&["schema", "everything"]).output().unwrap().status.code(), Some(2));
}
