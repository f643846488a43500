//! Tests of the server with a scripted collector: the data that it keeps, and the clients that
//! receive it.

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
    Live, Readings, Settings,
    alerts::AlertSettings,
    auth::Doors,
    listen::{Listener, Purpose},
    runs::RunSettings,
    supervisor::Collector,
    view::ShowProcesses,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message};

const PATIENCE: Duration = Duration::from_mins(1);

/// The script of a collector. The n-th one prints `lines.n`, then whatever is written to `more`,
/// and ends when `end.n` exists. It appends the requests that it receives to `requests`.
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
        write(&folder.path().join("lines.0"), first);
        write(&folder.path().join("lines.1"), second);
        let doors = Arc::new(Doors::none());
        let listener =
            Listener::tcp("127.0.0.1:0".parse().unwrap(), Purpose::Everything, &doors).unwrap();
        let address = listener
            .address(&doors)
            .trim_start_matches("http")
            .to_owned();
        let collector = Collector {
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
        let settings = Settings {
            join: None,
            readings: Readings::Collector(collector),
            live: Live::default().fixed(),
            doors,
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

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn client(&self) -> Client {
        let url = format!("ws{}api/v1/stream", self.address);
        Client(
            timeout(PATIENCE, connect_async(url))
                .await
                .unwrap()
                .unwrap()
                .0,
        )
    }

    /// Returns the indexes and times of the details in a client's hello.
    async fn details(&self) -> Vec<(u64, u64)> {
        let hello = self.client().await.next().await;
        let details = hello["details"].as_array().unwrap().iter();
        details
            .map(|it| (it["index"].as_u64().unwrap(), it["at_ms"].as_u64().unwrap()))
            .collect()
    }
}

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = timeout(PATIENCE, self.0.next())
                .await
                .unwrap()
                .unwrap()
                .unwrap()
            {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        self.all_until(wanted).await.pop().unwrap()
    }

    /// Returns all frames up to the wanted one.
    async fn all_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let begun = std::time::Instant::now();
        let mut frames = vec![self.next().await];
        while !wanted(&frames[frames.len() - 1]) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {frames:?}");
            frames.push(self.next().await);
        }
        frames
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }
}

/// Writes a file under another name and renames it, so that nobody reads an incomplete one.
fn write(path: &Path, records: &[Record]) {
    let lines = records
        .iter()
        .map(|record| serde_json::to_string(record).unwrap() + "\n")
        .collect::<String>();
    let beside = path.with_extension("part");
    fs::write(&beside, lines).unwrap();
    fs::rename(beside, path).unwrap();
}

fn inventory(uuids: &[&str]) -> Record {
    let text = |text: &str| Reading::Now(text.to_owned());
    let gpu = |(index, uuid): (u32, &&str)| Gpu {
        uuid: Some((*uuid).to_owned()),
        name: text("NVIDIA H200"),
        pci_bus_id: text("00000000:00:06.0"),
        ..Gpu::unidentified(index, &Absence::NotSupported)
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

fn details(index: u32, uuid: &str, at_ms: u64) -> Record {
    Record::Details(GpuDetails::absent(
        index,
        Some(uuid.to_owned()),
        at_ms,
        &Absence::NotSupported,
    ))
}

fn trace(start_us: u64) -> Record {
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
async fn details_outlive_the_collector_until_new_ones_come_or_their_gpu_goes() {
    let first = [
        inventory(&["a", "b", "c", "d"]),
        details(0, "a", 10),
        details(1, "b", 10),
        details(2, "c", 10),
        details(3, "d", 10),
    ];
    // The second collector has the same first GPU, another board at index 1, and no fourth GPU.
    let second = [inventory(&["a", "x", "c"]), details(2, "c", 20)];
    let server = Server::start(&first, &second);
    let mut client = server.client().await;
    if server.details().await.len() < 4 {
        client
            .until(|frame| frame["type"] == "details" && frame["index"] == 3)
            .await;
    }
    assert_eq!(server.details().await, [(0, 10), (1, 10), (2, 10), (3, 10)]);
    fs::write(server.file("end.0"), "").unwrap();
    client.until(|frame| frame["state"] == "restarting").await;
    assert_eq!(
        server.details().await.len(),
        4,
        "what was known stays known"
    );
    client
        .until(|frame| frame["type"] == "details" && frame["at_ms"] == 20)
        .await;
    assert_eq!(server.details().await, [(0, 10), (2, 20)]);
}

#[tokio::test]
async fn traces_go_to_those_who_asked_for_them_while_they_look() {
    let server = Server::start(&[inventory(&["GPU-0"])], &[]);
    let (mut asks, mut plain) = (server.client().await, server.client().await);
    asks.send(r#"{"type":"traces","on":true}"#).await;
    // The response to this invalid frame shows that the previous frame was processed.
    asks.send("nonsense").await;
    asks.until(|frame| frame["type"] == "error").await;
    write(
        &server.file("more"),
        &[trace(1), trace(2), details(0, "GPU-0", 30)],
    );
    assert_eq!(
        asks.until(|frame| frame["type"] == "trace").await["start_us"],
        1
    );
    assert_eq!(
        asks.until(|frame| frame["type"] == "trace").await["start_us"],
        2
    );
    // Details can overtake a trace, but not twice, so a second frame is awaited.
    write(&server.file("more"), &[details(0, "GPU-0", 31)]);
    let seen = plain.all_until(|frame| frame["at_ms"] == 31).await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );

    asks.send(r#"{"type":"pause"}"#).await;
    asks.send("nonsense").await;
    asks.until(|frame| frame["type"] == "error").await;
    write(&server.file("more"), &[trace(3), details(0, "GPU-0", 40)]);
    asks.until(|frame| frame["at_ms"] == 40).await;
    asks.send(r#"{"type":"resume"}"#).await;
    let seen = asks.all_until(|frame| frame["type"] == "history").await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );
    write(&server.file("more"), &[trace(4)]);
    assert_eq!(
        asks.until(|frame| frame["type"] == "trace").await["start_us"],
        4,
        "the past is past"
    );

    asks.send(r#"{"type":"traces","on":false}"#).await;
    asks.send("nonsense").await;
    asks.until(|frame| frame["type"] == "error").await;
    write(&server.file("more"), &[trace(5), details(0, "GPU-0", 50)]);
    asks.until(|frame| frame["at_ms"] == 50).await;
    write(&server.file("more"), &[details(0, "GPU-0", 51)]);
    let seen = asks.all_until(|frame| frame["at_ms"] == 51).await;
    assert!(
        !seen.iter().any(|frame| frame["type"] == "trace"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn the_collector_is_told_each_change_once_and_the_next_one_what_holds() {
    let server = Server::start(&[inventory(&["a"])], &[inventory(&["a"])]);
    // Lines that depend on timing are ignored: whether somebody watches can change before the first
    // client, and the second collector receives the known GPUs.
    let requests = || {
        let all = fs::read_to_string(server.file("requests")).unwrap_or_default();
        let counts = |line: &&str| !line.contains("watched") && !line.contains("known_gpus");
        all.split_inclusive('\n').filter(counts).collect::<String>()
    };
    let eventually = async |expected: &str| {
        let begun = std::time::Instant::now();
        while requests() != expected {
            assert!(
                begun.elapsed() < PATIENCE,
                "not {expected:?}: {:?}",
                requests()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut client = server.client().await;
    client
        .until(|frame| frame["type"] == "inventory" || !frame["inventory"].is_null())
        .await;
    client.send(r#"{"type":"interval","ms":250}"#).await;
    client.send(r#"{"type":"interval","ms":250}"#).await;
    eventually("{\"interval_ms\":250}\n").await;
    client.send(r#"{"type":"interval","ms":5000}"#).await;
    eventually("{\"interval_ms\":250}\n{\"interval_ms\":1000}\n").await;
    client.send(r#"{"type":"interval","ms":100}"#).await;
    eventually("{\"interval_ms\":250}\n{\"interval_ms\":1000}\n{\"interval_ms\":100}\n").await;
    fs::write(server.file("end.0"), "").unwrap();
    let all = "{\"interval_ms\":250}\n{\"interval_ms\":1000}\n{\"interval_ms\":100}\n{\"interval_ms\":100}\n";
    eventually(all).await;
}
