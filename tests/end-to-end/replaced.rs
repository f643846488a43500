//! Collectors that end because of the driver: they are replaced, and clients stay connected, are
//! notified, and keep the last readings.

use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::{Fake, Server, Stream};

fn is_well(frame: &Value) -> bool {
    let is_well = |gpu: &Value| gpu["health"]["state"] == "ok" && gpu["uuid"].is_string();
    frame["type"] == "sample" && frame["gpus"].as_array().unwrap().iter().all(is_well)
}

/// Runs a scenario with a fault that begins two seconds after the start. Returns the frames about
/// it that clients received.
async fn told_of(fault: &str) -> (Value, Value) {
    let fake = Fake::new(&format!(
        "gpus = 2\nstart_ms = {}\n[[fault]]\nfrom_s = 2\n{fault}",
        now_ms()
    ));
    let server = Server::over(&fake, &["--interval-ms", "250"]);
    let mut stream = server.stream().await;
    let before = stream.until(is_well).await;
    let told = stream
        .until(|frame| frame["type"] == "collector" && frame["state"] != "running")
        .await;
    let snapshot = server.get("/api/v1/snapshot").json();
    assert_eq!(
        snapshot["sample"]["gpus"][1]["uuid"], before["gpus"][1]["uuid"],
        "what was last known stays"
    );
    // The same connection receives new readings.
    let running = stream
        .until(|frame| frame["type"] == "collector" && frame["state"] == "running")
        .await;
    let after = stream.until(is_well).await;
    for gpu in [0, 1] {
        assert_eq!(before["gpus"][gpu]["uuid"], after["gpus"][gpu]["uuid"]);
    }
    assert!(after["at_ms"].as_u64() >= running["at_ms"].as_u64());
    let hello = Stream::connect(server.port, "")
        .await
        .next_of("hello")
        .await;
    let oldest = hello["history"]["times_ms"][0].as_u64().unwrap();
    assert!(
        oldest
            <= told["at_ms"]
                .as_u64()
                .unwrap_or(u64::MAX)
                .min(after["at_ms"].as_u64().unwrap())
    );
    let begun = before["at_ms"].as_u64().unwrap();
    assert!(
        oldest <= begun + 1000,
        "history from before is kept: {oldest}, and a sample came at {begun}"
    );
    (told, after)
}

/// The server retries every fifteen seconds.
pub(crate) async fn a_driver_that_is_upgraded_underneath_is_read_by_another_collector() {
    let (told, _) = told_of("kind = \"mismatch\"\nto_s = 5\n").await;
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("different versions"),
        "{told}"
    );
}

#[tokio::test]
async fn a_library_that_crashes_takes_the_collector_and_nothing_else() {
    let (told, after) =
        told_of("kind = \"crash\"\ngpu = 1\ncall = \"nvmlDeviceGetPowerUsage\"\nto_s = 3\n").await;
    assert_eq!(told["state"], "restarting");
    assert!(
        told["message"].as_str().unwrap().contains("signal: 6"),
        "{told}"
    );
    assert!(after["gpus"][1]["power"]["draw_watts"].is_number());
}
