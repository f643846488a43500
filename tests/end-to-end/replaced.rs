//! Collectors that end because of the driver. Each is replaced. Meanwhile, clients stay connected,
//! receive a message, and keep the last readings.

use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{FakeNvml, Server, Stream};

fn is_healthy_sample(frame: &Value) -> bool {
    let is_well = |gpu: &Value| gpu["health"]["state"] == "ok" && gpu["uuid"].is_string();
    frame["type"] == "sample" && frame["gpus"].as_array().unwrap().iter().all(is_well)
}

/// Runs a scenario with a fault that begins two seconds after the start. Returns the frames about
/// the fault that clients received.
async fn run_with_fault(fault: &str) -> (Value, Value) {
    let fake = FakeNvml::new(&format!(
        "gpus = 2\nstart_ms = {}\n[[fault]]\nfrom_s = 2\n{fault}",
        now_ms()
    ));
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let mut stream = server.open_stream().await;
    let before = stream.read_until(is_healthy_sample).await;
    let reported = stream
        .read_until(|frame| frame["type"] == "collector" && frame["state"] != "running")
        .await;
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(
        snapshot["sample"]["gpus"][1]["uuid"], before["gpus"][1]["uuid"],
        "the last known inventory is kept"
    );
    // The same connection receives new readings.
    let running = stream
        .read_until(|frame| frame["type"] == "collector" && frame["state"] == "running")
        .await;
    let after = stream.read_until(is_healthy_sample).await;
    for gpu in [0, 1] {
        assert_eq!(before["gpus"][gpu]["uuid"], after["gpus"][gpu]["uuid"]);
    }
    assert!(after["at_ms"].as_u64() >= running["at_ms"].as_u64());
    let hello = Stream::connect(server.port, "")
        .await
        .next_frame_of_type("hello")
        .await;
    let oldest = hello["history"]["times_ms"][0].as_u64().unwrap();
    assert!(
        oldest
            <= reported["at_ms"]
                .as_u64()
                .unwrap_or(u64::MAX)
                .min(after["at_ms"].as_u64().unwrap())
    );
    let begun = before["at_ms"].as_u64().unwrap();
    assert!(
        oldest <= begun + 1000,
        "the history from before is kept: it starts at {oldest}, and a sample was at {begun}"
    );
    (reported, after)
}

/// The server retries every fifteen seconds.
pub(crate) async fn upgraded_driver_is_read_by_new_collector() {
    let (reported, _) = run_with_fault("kind = \"mismatch\"\nto_s = 5\n").await;
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("different versions"),
        "{reported}"
    );
}

#[tokio::test]
async fn crashing_driver_library_ends_only_collector() {
    let (reported, after) =
        run_with_fault("kind = \"crash\"\ngpu = 1\ncall = \"nvmlDeviceGetPowerUsage\"\nto_s = 3\n")
            .await;
    assert_eq!(reported["state"], "restarting");
    assert!(
        reported["message"].as_str().unwrap().contains("signal: 6"),
        "{reported}"
    );
    assert!(after["gpus"][1]["power"]["draw_watts"].is_number());
}
