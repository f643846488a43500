//! GPUs are added to and removed from a running machine: other GPUs keep their indices, and clients
//! stay connected.

use std::time::Duration;

use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{FakeNvml, Server, health_states};

/// Returns the index and the PCI bus ID of each GPU.
fn bus_ids(inventory: &Value) -> Vec<(u64, String)> {
    let gpus = inventory["gpus"].as_array().unwrap().iter();
    gpus.map(|gpu| {
        (
            gpu["index"].as_u64().unwrap(),
            gpu["pci_bus_id"].as_str().unwrap_or_default().to_owned(),
        )
    })
    .collect()
}

fn gpu_uuids(inventory: &Value) -> Vec<Option<&str>> {
    inventory["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gpu| gpu["uuid"].as_str())
        .collect()
}

/// One GPU is removed, and another one is added. The driver numbers the GPUs in the order of the
/// PCI bus, where the added GPU comes before the two others.
pub(crate) async fn added_gpu_is_read_without_renumbering() {
    let start_ms = now_ms();
    let scenario = format!(
        "gpus = 4\nstart_ms = {start_ms}\n[[gpu]]\nindex = 0\nfrom_s = 8\n[[gpu]]\nindex = \
         2\nto_s = 5\n"
    );
    let fake = FakeNvml::new(&scenario);
    let server = Server::start_with_fake(&fake, &["--interval-ms", "500"]);
    let mut stream = server.open_stream().await;
    let hello = stream
        .read_until(|frame| frame["type"] == "hello" || frame["type"] == "inventory")
        .await;
    let first = if hello["type"] == "hello" {
        hello["inventory"].clone()
    } else {
        hello
    };
    let first = if first["gpus"].is_array() {
        first
    } else {
        stream.next_frame_of_type("inventory").await
    };
    assert_eq!(first["gpus"].as_array().unwrap().len(), 3);
    let lost = stream
        .read_until(|frame| {
            frame["type"] == "sample" && health_states(frame) == ["ok", "lost", "ok"]
        })
        .await;
    // gpumon queries the driver for added GPUs again only one minute after the start. The test
    // reads samples until then.
    for after_ms in [25_000, 45_000] {
        stream
            .read_until(|frame| {
                frame["type"] == "sample" && frame["at_ms"].as_u64() > Some(start_ms + after_ms)
            })
            .await;
    }
    let added = stream
        .read_until(|frame| frame["type"] == "event" && frame["what"] == "gpu_added")
        .await;
    assert!(
        now_ms() - start_ms < Duration::from_secs(90).as_millis() as u64,
        "the GPU must be found within about a minute"
    );
    assert_eq!(added["gpu"]["index"], 3);
    let sample = stream
        .read_until(|frame| {
            frame["type"] == "sample" && health_states(frame) == ["ok", "lost", "ok", "ok"]
        })
        .await;
    let snapshot = server.get("/api/v1/snapshot").json();
    let inventory = &snapshot["inventory"];
    assert_eq!(
        gpu_uuids(inventory)[..3],
        gpu_uuids(&first)[..],
        "indexes and UUIDs must not change"
    );
    assert_eq!(bus_ids(inventory)[..3], bus_ids(&first)[..]);
    assert_eq!(gpu_uuids(inventory)[3], added["gpu"]["uuid"].as_str());
    assert_eq!(
        inventory["gpus"][1]["name"], first["gpus"][1]["name"],
        "the lost GPU keeps its name"
    );
    assert!(sample["gpus"][3]["power"]["draw_watts"].is_number());
    let events = snapshot["events"].as_array().unwrap();
    assert_eq!(
        events
            .iter()
            .filter(|event| event["what"] == "gpu_lost")
            .count(),
        1,
        "the loss is reported once: {events:?}"
    );
    let history = server.get("/api/v1/snapshot?history_s=600").json();
    let oldest = history["history"]["times_ms"][0].as_u64().unwrap();
    assert!(
        oldest <= lost["at_ms"].as_u64().unwrap(),
        "earlier history is kept"
    );
}

/// A killed collector is replaced by one whose driver finds fewer GPUs.
#[tokio::test]
async fn missing_gpu_keeps_index_in_next_collector() {
    let fake = FakeNvml::new(&format!(
        "gpus = 3\nstart_ms = {}\n[[gpu]]\nindex = 0\nto_s = 4\n",
        now_ms()
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let whole = stream
        .read_until(|frame| frame["type"] == "sample" && health_states(frame) == ["ok"; 3])
        .await;
    stream
        .read_until(|frame| {
            frame["type"] == "sample" && health_states(frame) == ["lost", "ok", "ok"]
        })
        .await;
    crate::support::send_signal("-KILL", server.collector_pid().expect("a collector runs"));
    stream
        .read_until(|frame| frame["type"] == "collector" && frame["state"] == "running")
        .await;
    let sample = stream.read_until(|frame| frame["type"] == "sample").await;
    assert_eq!(health_states(&sample), ["lost", "ok", "ok"]);
    for gpu in 0..3 {
        assert_eq!(sample["gpus"][gpu]["uuid"], whole["gpus"][gpu]["uuid"]);
        assert_eq!(sample["gpus"][gpu]["index"], gpu);
    }
}
