//! MIG mode is switched on and off while the server runs.

use serde_json::Value;

use crate::support::{FakeNvml, Server};

#[tokio::test]
async fn mig_mode_changes_without_restart() {
    let pid = std::process::id();
    let scenario = format!(
        r#"
        [[gpu]]
        index = 0
        mig = [[0, []], [3, [{{ profile = "3g.71gb", gpu_instance = 2 }}, {{ profile = "1g.18gb", gpu_instance = 7 }}]], [6, []]]
        [[gpu]]
        index = 1
        [[process]]
        gpu = 0
        pid = {pid}
        memory = "9 GiB"
        sm_percent = 80
        gpu_instance = 2
        from_s = 3
        to_s = 6
        [[event]]
        gpu = 0
        at_s = 3
        kind = "mig"
        [[event]]
        gpu = 0
        at_s = 6
        kind = "mig"
        "#
    );
    let fake = FakeNvml::new(&scenario);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let whole = stream
        .read_until(|frame| frame["gpus"][0]["utilization"]["gpu_percent"].is_number())
        .await;
    assert_eq!(whole["gpus"][0]["mig_devices"], serde_json::json!([]));
    let collector = server.collector_pid();

    let has = |count: usize| {
        move |frame: &Value| {
            let devices = &frame["gpus"][0]["mig_devices"];
            frame["type"] == "inventory"
                && devices
                    .as_array()
                    .is_some_and(|devices| devices.len() == count)
        }
    };
    let inventory = stream.read_until(has(2)).await;
    let event = stream.next_frame_of_type("event").await;
    assert_eq!(
        (&event["what"], &event["gpu"]["index"]),
        (&"mig_changed".into(), &0.into())
    );
    let device = &inventory["gpus"][0]["mig_devices"][0];
    assert_eq!(
        (&device["profile"], &device["gpu_instance"]),
        (&"3g.71gb".into(), &2.into())
    );
    assert!(device["uuid"].as_str().unwrap().starts_with("MIG-"));
    let sample = stream
        .read_until(|frame| {
            let instance = &frame["gpus"][0]["mig_devices"][0];
            frame["type"] == "sample" && instance["activity"]["sm_percent"].as_f64() > Some(0.0)
        })
        .await;
    let instance = &sample["gpus"][0]["mig_devices"][0];
    assert_eq!(instance["uuid"], device["uuid"]);
    assert!(
        instance["memory"]["used_bytes"].as_u64() >= Some(9 << 30),
        "{instance}"
    );
    assert_eq!(
        sample["gpus"][0]["mig_devices"][1]["activity"]["sm_percent"], 0.0,
        "the other MIG device is idle"
    );
    let process = &sample["gpus"][0]["processes"][0];
    assert_eq!(
        (&process["pid"], &process["mig"]["gpu_instance"]),
        (&pid.into(), &2.into())
    );
    assert_eq!(
        sample["gpus"][0]["utilization"]["gpu_percent"]["absent"],
        "not_supported"
    );
    assert!(
        sample["gpus"][1]["utilization"]["gpu_percent"].is_number(),
        "the other GPU is unchanged"
    );

    stream.read_until(has(0)).await;
    stream
        .read_until(|frame| frame["what"] == "mig_changed")
        .await;
    let after = stream
        .read_until(|frame| frame["gpus"][0]["utilization"]["gpu_percent"].is_number())
        .await;
    assert_eq!(after["gpus"][0]["mig_devices"], serde_json::json!([]));
    assert_eq!(after["gpus"][0]["processes"], serde_json::json!([]));
    for gpu in [0, 1] {
        assert_eq!(whole["gpus"][gpu]["uuid"], after["gpus"][gpu]["uuid"]);
    }
    assert_eq!(
        server.collector_pid(),
        collector,
        "the collector must not be restarted"
    );
}
