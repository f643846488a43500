//! The reader over a real Prometheus with two hours of what a few nodes told.

use std::{
    fmt::Write,
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gpumon_fleet::{
    FleetReader, Range,
    model::{FleetEventKind, FleetState, NodeHealth, OwnerKind},
    prometheus::{PrometheusReader, Settings},
};

/// Seconds between two scrapes, and how many there were.
const STEP: u64 = 30;
const STEPS: u64 = 240;

/// A series, and its value so many minutes ago; `None` where it had none.
type Series = (&'static str, fn(f64) -> Option<f64>);

/// `n1` is well. `n2` was restarted 30 minutes ago, and could not be reached for three minutes. `n3` is scraped for 20
/// minutes.
const SERIES: &[Series] = &[
    (r#"gpumon_gpu_up{job="gpumon",instance="n1:9124",gpu="0",uuid="A"}"#, |_| Some(1.0)),
    (r#"gpumon_gpu_up{job="gpumon",instance="n1:9124",gpu="1",uuid="B"}"#, |ago| {
        Some(f64::from(!(45.2..50.0).contains(&ago)))
    }),
    (r#"gpumon_gpu_up{job="gpumon",instance="n2:9124",gpu="0",uuid="C"}"#, unless_restarted),
    (r#"gpumon_gpu_info{job="gpumon",instance="n1:9124",gpu="0",uuid="A",name="NVIDIA H200"}"#, |_| Some(1.0)),
    (r#"gpumon_gpu_info{job="gpumon",instance="n1:9124",gpu="1",uuid="B",name="NVIDIA H200"}"#, |_| Some(1.0)),
    (r#"gpumon_gpu_info{job="gpumon",instance="n2:9124",gpu="0",uuid="C",name="NVIDIA H100"}"#, unless_restarted),
    (r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n1:9124",gpu="0",uuid="A"}"#, |_| Some(1.0)),
    (r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n1:9124",gpu="1",uuid="B"}"#, |_| Some(0.5)),
    (r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n2:9124",gpu="0",uuid="C"}"#, |ago| {
        unless_restarted(ago).map(|_| 0.0)
    }),
    (r#"gpumon_condition_severity{job="gpumon",instance="n2:9124",gpu="0",uuid="C",condition="held_idle"}"#, |ago| {
        (ago < 62.0).then_some(1.0)
    }),
    (r#"gpumon_gpu_xid_errors_total{job="gpumon",instance="n1:9124",gpu="0",uuid="A",code="13"}"#, |_| Some(5.0)),
    (r#"gpumon_gpu_xid_errors_total{job="gpumon",instance="n1:9124",gpu="0",uuid="A",code="79"}"#, |ago| {
        (ago < 40.0).then_some(2.0)
    }),
    (r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n1:9124",user="ana",slurm_job="7"}"#, |ago| {
        Some(1e6 - ago * 60.0)
    }),
    (r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n1:9124",user="bo"}"#, |ago| {
        (ago < 10.2).then_some(600.0 - ago * 60.0)
    }),
    (r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n2:9124",user="ana",slurm_job="7"}"#, |ago| {
        let begin = if ago > 30.0 { 1e6 } else { 1800.0 };
        unless_restarted(ago).map(|_| begin - ago * 60.0)
    }),
    (r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n3:9124",user="cy"}"#, |ago| {
        (ago < 20.2).then_some(1e6 - ago * 60.0)
    }),
    (r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n1:9124"}"#, |ago| Some(1e6 - ago * 6.0)),
    (r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n2:9124"}"#, |ago| {
        unless_restarted(ago).map(|_| if ago > 30.0 { 1e6 } else { 0.0 })
    }),
    (r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n3:9124"}"#, |ago| (ago < 20.2).then_some(7.0)),
    (r#"up{job="gpumon",instance="n1:9124"}"#, |_| Some(1.0)),
    (r#"up{job="gpumon",instance="n2:9124"}"#, |ago| Some(f64::from(unless_restarted(ago).is_some()))),
];

fn unless_restarted(ago: f64) -> Option<f64> {
    (!(27.2..30.2).contains(&ago)).then_some(1.0)
}

/// A Prometheus that ends with the test.
struct Prometheus {
    process: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What there was, as `promtool` takes it.
fn history(file: &Path) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut text = String::new();
    for (series, value) in SERIES {
        for step in (0..=STEPS).rev() {
            let at = now - step * STEP;
            if let Some(value) = value((step * STEP) as f64 / 60.0) {
                writeln!(text, "{series} {value} {at}").unwrap();
            }
        }
    }
    text.push_str("# EOF\n");
    fs::write(file, text).unwrap();
}

impl Prometheus {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [file, data, settings] = ["history", "data", "prometheus.yml"].map(|name| folder.path().join(name));
        history(&file);
        let missing = "Prometheus is missing: install it with `python3 tools/need.py promtool`, then try again";
        let mut promtool = program("promtool");
        promtool.args(["tsdb", "create-blocks-from", "openmetrics"]).args([&file, &data]);
        assert!(promtool.status().expect(missing).success());
        fs::write(&settings, "{}").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut prometheus = program("prometheus");
        prometheus.arg(format!("--config.file={}", settings.display()));
        prometheus.arg(format!("--storage.tsdb.path={}", data.display()));
        prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = prometheus.spawn().expect(missing);
        Self { process, url: format!("http://127.0.0.1:{port}"), _folder: folder }
    }
}

#[tokio::test]
async fn a_real_prometheus_tells_of_a_fleet_as_it_is_and_was() {
    let prometheus = Prometheus::start();
    let mut settings = Settings::new(&prometheus.url);
    settings.period = Duration::from_millis(200);
    let reader = PrometheusReader::new(settings).unwrap();
    let mut fleet = reader.now().await;
    for _ in 0..200 {
        if fleet.state == FleetState::Current {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet = reader.now().await;
    }
    assert_eq!((fleet.state, &fleet.problems), (FleetState::Current, &vec![]));
    assert_eq!(fleet.nodes.name, ["n1", "n2"]);
    assert_eq!(fleet.nodes.health, [NodeHealth::Up; 2]);
    assert_eq!(fleet.gpus.readings["utilization.gpu_percent"], [Some(100.0), Some(50.0), Some(0.0)]);
    assert_eq!(fleet.gpus.models, ["NVIDIA H200", "NVIDIA H100"]);
    let idle = fleet.gpus.idle_holding_s[2].unwrap();
    // For 62 minutes, of which the last whole quarters of an hour are known, and for five minutes before.
    assert!((2700.0..=4020.0).contains(&idle), "{idle}");

    let hour = Range::new(3600).unwrap();
    let usage = reader.usage(hour).await.unwrap();
    let used = |kind: OwnerKind| usage.owners.iter().find(|it| it.owner.kind == kind).unwrap();
    let near = |value: Option<f64>, expected: f64| value.is_some_and(|value| (value - expected).abs() <= 90.0);
    // An hour on one node, and since the restart on the other.
    let job = used(OwnerKind::SlurmJob);
    assert!(near(job.gpu_s, 3600.0 + 1800.0) && job.nodes == 2, "{usage:?}");
    assert!(near(used(OwnerKind::User).gpu_s, 600.0), "{usage:?}");
    assert!(near(usage.unheld_gpu_s, 360.0), "{usage:?}");
    assert_eq!((usage.owners_total, usage.state), (2, FleetState::Partial));
    let problems = usage.problems.join("\n");
    for words in ["1 nodes have restarted gpumon", "1 nodes were not scraped when the span began"] {
        assert!(problems.contains(words), "{problems}");
    }

    let events = reader.events(hour).await.unwrap();
    let told: Vec<_> = events.events.iter().map(|it| (it.node.as_str(), it.gpu, it.kind, it.xid, it.count)).collect();
    for event in [
        ("n1", Some(0), FleetEventKind::Xid, Some(79), 2),
        ("n1", Some(1), FleetEventKind::GpuNotResponding, None, 1),
        ("n2", None, FleetEventKind::NodeUnreachable, None, 1),
    ] {
        assert!(told.contains(&event), "{event:?}: {told:?}");
    }
    assert_eq!((told.len(), events.state), (3, FleetState::Current), "{told:?}");
    assert!(events.events.iter().all(|event| !event.lasts));

    let past = reader.history(hour, None).await.unwrap();
    let values = |id: &str| past.series.iter().find(|series| series.id == id).unwrap().values.clone();
    assert_eq!((past.state, past.at_ms.len()), (FleetState::Current, 121));
    assert!(values("gpus").contains(&Some(3.0)), "{past:?}");
    let utilization: Vec<f64> = values("utilization.gpu_percent").into_iter().flatten().collect();
    assert!(
        utilization.len() > 110 && utilization.iter().all(|value| (50.0..=75.0).contains(value)),
        "{utilization:?}"
    );
    let node = reader.history(hour, Some("n1")).await.unwrap();
    let gpus = node.series.iter().find(|series| series.id == "gpus").unwrap();
    assert!(gpus.values.iter().flatten().all(|count| (count - 2.0).abs() < 1e-9), "{gpus:?}");
}
