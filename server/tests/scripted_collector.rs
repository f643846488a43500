//! Tests of the server with a scripted collector: the data that the server keeps, and the clients
//! that receive it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use gpumon_probe::model::{
    Absence, Driver, Gpu, GpuDetails, Inventory, Platform, Reading, Record, Trace, TraceMetric,
    Vendor,
};
use gpumon_server::{
    LiveSettings, SampleSource, ServerSettings,
    alerts::AlertSettings,
    auth::AccessPolicy,
    listen::{Listener, PortPurpose},
    runs::RunSettings,
    supervisor::CollectorCommand,
    view::ShowProcesses,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

const TIMEOUT: Duration = Duration::from_mins(1);

/// The script of a collector. Collector n, counted from 0, prints the file `lines.n`, and then
/// everything that is written to the file `more`. It ends when the file `end.n` exists, and appends
/// the requests that it receives to the file `requests`.
const SCRIPT: &str = r#"
cd "$0"
n=$(cat count 2>/dev/null || echo 0)
echo $((n + 1)) > count
exec 3<&0
cat <&3 >> requests &
cat "lines.$n"
while [ ! -e "end.$n" ]; do
    if mv more now 2>/dev/null; then cat now; fi
    sleep 0.05
done
kill $!
exit 3
"#;

struct Server {
    folder: TempDir,
    address: String,
}

impl Server {
    fn start(first: &[Record], second: &[Record]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_records(&folder.path().join("lines.0"), first);
        write_records(&folder.path().join("lines.1"), second);
        let policy = Arc::new(AccessPolicy::allow_all());
        let listener = Listener::open_tcp(
            "127.0.0.1:0".parse().unwrap(),
            PortPurpose::Everything,
            &policy,
        )
        .unwrap();
        let address = listener
            .display_address(&policy)
            .trim_start_matches("http")
            .to_owned();
        let collector = CollectorCommand {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), SCRIPT.into(), folder.path().into()],
            interval: Duration::from_secs(1),
        };
        let runs = RunSettings {
            worker: gpumon_workload::parent::WorkerCommand {
                program: "/bin/false".into(),
                arguments: Vec::new(),
            },
        };
        let settings = ServerSettings {
            join: None,
            readings: SampleSource::Collector(collector),
            live: LiveSettings::default().into_constant_receiver(),
            policy,
            show_processes: ShowProcesses::Names,
            runs,
            history: None,
            alerts: AlertSettings::default(),
            kubelet: None,
            fleet: None,
            energy_price: None,
        };
        tokio::spawn(gpumon_server::run(
            vec![listener],
            settings,
            std::future::pending(),
        ));
        Self { folder, address }
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn connect_client(&self) -> Client {
        let url = format!("ws{}api/v1/stream", self.address);
        Client(
            timeout(TIMEOUT, connect_async(url))
                .await
                .unwrap()
                .unwrap()
                .0,
        )
    }

    /// Returns the indexes and times of the details in a new client's hello frame.
    async fn indexes_and_times_of_hello_details(&self) -> Vec<(u64, u64)> {
        let hello = self.connect_client().await.next_frame().await;
        let details = hello["details"].as_array().unwrap().iter();
        details
            .map(|it| (it["index"].as_u64().unwrap(), it["at_ms"].as_u64().unwrap()))
            .collect()
    }
}

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn next_frame(&mut self) -> Value {
        loop {
            if let Message::Text(text) = timeout(TIMEOUT, self.0.next())
                .await
                .unwrap()
                .unwrap()
                .unwrap()
            {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn next_matching_frame(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.collect_frames_until(wanted).await.pop().unwrap()
    }

    /// Returns all frames up to and including the first for which `wanted` returns `true`.
    async fn collect_frames_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let begun = std::time::Instant::now();
        let mut frames = vec![self.next_frame().await];
        while !wanted(&frames[frames.len() - 1]) {
            assert!(begun.elapsed() < TIMEOUT, "waited in vain: {frames:?}");
            frames.push(self.next_frame().await);
        }
        frames
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }
}

/// Writes a file under another name and then renames it, so that no reader sees an incomplete file.
fn write_records(path: &Path, records: &[Record]) {
    let lines = records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n")
        .collect::<String>();
    let partial = path.with_extension("part");
    fs::write(&partial, lines).unwrap();
    fs::rename(partial, path).unwrap();
}

fn make_inventory(uuids: &[&str]) -> Record {
    let text = |text: &str| Reading::Now(text.to_owned());
    let gpu = |(index, uuid): (u32, &&str)| Gpu {
        uuid: Some((*uuid).to_owned()),
        name: text("NVIDIA H200"),
        pci_bus_id: text("00000000:00:06.0"),
        ..Gpu::new_unidentified(index, &Absence::NotSupported)
    };
    Record::Inventory(Inventory {
        at_ms: 1,
        hostname: "node".to_owned(),
        platform: Platform {
            is_simulated: false,
            drivers: vec![Driver {
                vendor: Vendor::Nvidia,
                version: text("580.1"),
                library_version: text("13.580.1"),
                cuda_version: text("13.0"),
            }],
        },
        gpus: (0..).zip(uuids).map(gpu).collect(),
        topology: Vec::new(),
        playback: None,
    })
}

fn make_details(index: u32, uuid: &str, at_ms: u64) -> Record {
    Record::Details(GpuDetails::new_absent(
        index,
        Some(uuid.to_owned()),
        at_ms,
        &Absence::NotSupported,
    ))
}

fn make_trace(start_us: u64) -> Record {
    let (uuid, metric) = (Some("GPU-0".to_owned()), TraceMetric::PowerWatts);
    Record::Trace(Trace {
        index: 0,
        uuid,
        metric,
        start_us,
        offsets_us: vec![0],
        values: vec![1.5],
        gap: false,
    })
}

#[tokio::test]
async fn gpu_details_survive_collector_restart_until_replaced() {
    let first = [
        make_inventory(&["a", "b", "c", "d"]),
        make_details(0, "a", 10),
        make_details(1, "b", 10),
        make_details(2, "c", 10),
        make_details(3, "d", 10),
    ];
    // The second collector has the same GPU at index 0, a different one at index 1, and none at
    // index 3.
    let second = [make_inventory(&["a", "x", "c"]), make_details(2, "c", 20)];
    let server = Server::start(&first, &second);
    let mut client = server.connect_client().await;
    if server.indexes_and_times_of_hello_details().await.len() < 4 {
        client
            .next_matching_frame(|frame| frame["type"] == "details" && frame["index"] == 3)
            .await;
    }
    assert_eq!(
        server.indexes_and_times_of_hello_details().await,
        [(0, 10), (1, 10), (2, 10), (3, 10)]
    );
    fs::write(server.file_path("end.0"), "").unwrap();
    client
        .next_matching_frame(|frame| frame["state"] == "restarting")
        .await;
    assert_eq!(
        server.indexes_and_times_of_hello_details().await.len(),
        4,
        "what was known stays known"
    );
    client
        .next_matching_frame(|frame| frame["type"] == "details" && frame["at_ms"] == 20)
        .await;
    assert_eq!(
        server.indexes_and_times_of_hello_details().await,
        [(0, 10), (2, 20)]
    );
}

#[tokio::test]
async fn traces_are_sent_only_to_active_requesters() {
    let server = Server::start(&[make_inventory(&["GPU-0"])], &[]);
    let (mut asks, mut plain) = (server.connect_client().await, server.connect_client().await);
    asks.send(r#"{"type":"traces","on":true}"#).await;
    // The response to this invalid frame shows that the previous frame was processed.
    asks.send("nonsense").await;
    asks.next_matching_frame(|frame| frame["type"] == "error")
        .await;
    write_records(
        &server.file_path("more"),
        &[make_trace(1), make_trace(2), make_details(0, "GPU-0", 30)],
    );
    assert_eq!(
        asks.next_matching_frame(|frame| frame["type"] == "trace")
            .await["start_us"],
        1
    );
    assert_eq!(
        asks.next_matching_frame(|frame| frame["type"] == "trace")
            .await["start_us"],
        2
    );
    // Details can overtake a trace once, but not twice. The test therefore waits for a second frame
    // of details.
    write_records(&server.file_path("more"), &[make_details(0, "GPU-0", 31)]);
    let seen = plain
        .collect_frames_until(|frame| frame["at_ms"] == 31)
        .await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );

    asks.send(r#"{"type":"pause"}"#).await;
    asks.send("nonsense").await;
    asks.next_matching_frame(|frame| frame["type"] == "error")
        .await;
    write_records(
        &server.file_path("more"),
        &[make_trace(3), make_details(0, "GPU-0", 40)],
    );
    asks.next_matching_frame(|frame| frame["at_ms"] == 40).await;
    asks.send(r#"{"type":"resume"}"#).await;
    let seen = asks
        .collect_frames_until(|frame| frame["type"] == "history")
        .await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );
    write_records(&server.file_path("more"), &[make_trace(4)]);
    assert_eq!(
        asks.next_matching_frame(|frame| frame["type"] == "trace")
            .await["start_us"],
        4,
        "the past is past"
    );

    asks.send(r#"{"type":"traces","on":false}"#).await;
    asks.send("nonsense").await;
    asks.next_matching_frame(|frame| frame["type"] == "error")
        .await;
    write_records(
        &server.file_path("more"),
        &[make_trace(5), make_details(0, "GPU-0", 50)],
    );
    asks.next_matching_frame(|frame| frame["at_ms"] == 50).await;
    write_records(&server.file_path("more"), &[make_details(0, "GPU-0", 51)]);
    let seen = asks
        .collect_frames_until(|frame| frame["at_ms"] == 51)
        .await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn collector_receives_each_settings_change_once() {
    let server = Server::start(&[make_inventory(&["a"])], &[make_inventory(&["a"])]);
    // Two kinds of lines are ignored: `watched`, because it can be sent before the first client
    // connects, and `known_gpus`, because it is sent to the second collector.
    let requests = || {
        let all = fs::read_to_string(server.file_path("requests")).unwrap_or_default();
        let counts = |line: &&str| !line.contains("watched") && !line.contains("known_gpus");
        all.split_inclusive('\n').filter(counts).collect::<String>()
    };
    let eventually = async |expected: &str| {
        let begun = std::time::Instant::now();
        while requests() != expected {
            assert!(
                begun.elapsed() < TIMEOUT,
                "not {expected:?}: {:?}",
                requests()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut client = server.connect_client().await;
    client
        .next_matching_frame(|frame| frame["type"] == "inventory" || !frame["inventory"].is_null())
        .await;
    client.send(r#"{"type":"interval","ms":250}"#).await;
    client.send(r#"{"type":"interval","ms":250}"#).await;
    eventually("{\"interval_ms\":250}\n").await;
    client.send(r#"{"type":"interval","ms":5000}"#).await;
    eventually("{\"interval_ms\":250}\n{\"interval_ms\":1000}\n").await;
    client.send(r#"{"type":"interval","ms":100}"#).await;
    eventually("{\"interval_ms\":250}\n{\"interval_ms\":1000}\n{\"interval_ms\":100}\n").await;
    fs::write(server.file_path("end.0"), "").unwrap();
    let all = "{\"interval_ms\":250}\n{\"interval_ms\":1000}\n{\"interval_ms\":100}\n{\"interval_ms\":100}\n";
    eventually(all).await;
}
