//! Tests of the reader with a real Prometheus server that contains two hours of samples of a few
//! nodes.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gpumon_fleet::{
    FleetReader, Range,
    model::{FleetEventKind, FleetState, NodeHealth, OwnerKind},
    prometheus::{PrometheusReader, Settings},
};
use serde_json::Value;

/// The interval between two scrapes, in seconds.
const STEP: u64 = 30;
const STEPS: u64 = 240;

/// A series, and a function that returns its value a given number of minutes ago, or `None` if
/// there was no sample.
type Series = (&'static str, fn(f64) -> Option<f64>);

/// Three nodes. `n1` has no problems. `n2` was restarted 30 minutes ago and was unreachable for
/// three minutes. `n3` has been scraped for only 20 minutes.
const SERIES: &[Series] = &[
    (
        r#"gpumon_gpu_up{job="gpumon",instance="n1:9124",gpu="0",uuid="A"}"#,
        |_| Some(1.0),
    ),
    (
        r#"gpumon_gpu_up{job="gpumon",instance="n1:9124",gpu="1",uuid="B"}"#,
        |ago| Some(f64::from(!(45.2..50.0).contains(&ago))),
    ),
    (
        r#"gpumon_gpu_up{job="gpumon",instance="n2:9124",gpu="0",uuid="C"}"#,
        value_except_during_restart,
    ),
    (
        r#"gpumon_gpu_info{job="gpumon",instance="n1:9124",gpu="0",uuid="A",name="NVIDIA H200"}"#,
        |_| Some(1.0),
    ),
    (
        r#"gpumon_gpu_info{job="gpumon",instance="n1:9124",gpu="1",uuid="B",name="NVIDIA H200"}"#,
        |_| Some(1.0),
    ),
    (
        r#"gpumon_gpu_info{job="gpumon",instance="n2:9124",gpu="0",uuid="C",name="NVIDIA H100"}"#,
        value_except_during_restart,
    ),
    (
        r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n1:9124",gpu="0",uuid="A"}"#,
        |_| Some(1.0),
    ),
    (
        r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n1:9124",gpu="1",uuid="B"}"#,
        |_| Some(0.5),
    ),
    (
        r#"gpumon_gpu_utilization_ratio{job="gpumon",instance="n2:9124",gpu="0",uuid="C"}"#,
        |ago| value_except_during_restart(ago).map(|_| 0.0),
    ),
    (
        r#"gpumon_condition_severity{job="gpumon",instance="n2:9124",gpu="0",uuid="C",condition="held_idle"}"#,
        |ago| (ago < 62.0).then_some(1.0),
    ),
    (
        r#"gpumon_gpu_xid_errors_total{job="gpumon",instance="n1:9124",gpu="0",uuid="A",code="13"}"#,
        |_| Some(5.0),
    ),
    (
        r#"gpumon_gpu_xid_errors_total{job="gpumon",instance="n1:9124",gpu="0",uuid="A",code="79"}"#,
        |ago| (ago < 40.0).then_some(2.0),
    ),
    (
        r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n1:9124",user="ana",slurm_job="7"}"#,
        |ago| Some(1e6 - ago * 60.0),
    ),
    (
        r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n1:9124",user="bo"}"#,
        |ago| (ago < 10.2).then_some(600.0 - ago * 60.0),
    ),
    (
        r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n2:9124",user="ana",slurm_job="7"}"#,
        |ago| {
            let begin = if ago > 30.0 { 1e6 } else { 1800.0 };
            value_except_during_restart(ago).map(|_| begin - ago * 60.0)
        },
    ),
    (
        r#"gpumon_owner_gpu_seconds_total{job="gpumon",instance="n3:9124",user="cy"}"#,
        |ago| (ago < 20.2).then_some(1e6 - ago * 60.0),
    ),
    (
        r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n1:9124"}"#,
        |ago| Some(1e6 - ago * 6.0),
    ),
    (
        r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n2:9124"}"#,
        |ago| value_except_during_restart(ago).map(|_| if ago > 30.0 { 1e6 } else { 0.0 }),
    ),
    (
        r#"gpumon_unheld_gpu_seconds_total{job="gpumon",instance="n3:9124"}"#,
        |ago| (ago < 20.2).then_some(7.0),
    ),
    (r#"up{job="gpumon",instance="n1:9124"}"#, |_| Some(1.0)),
    (r#"up{job="gpumon",instance="n2:9124"}"#, |ago| {
        Some(f64::from(value_except_during_restart(ago).is_some()))
    }),
];

/// The number of jobs that ran on `n1` in the last two hours. It exceeds the maximum number of
/// listed jobs, and half of the jobs are pods.
const JOBS: u32 = 1200;

/// Returns the labels of each job, and how many minutes ago it started. Each job ran for a minute.
/// No job was running about an hour ago, because a tested range starts at that time.
fn list_jobs() -> impl Iterator<Item = (String, f64)> {
    (0..JOBS).map(|job| {
        let user = format!("user{}", job % 7);
        let id = if job % 2 == 0 {
            format!("slurm_job=\"{job}\"")
        } else {
            format!("pod_uid=\"{job}\"")
        };
        let labels = format!("job=\"gpumon\",instance=\"n1:9124\",user=\"{user}\",{id}");
        let first = if job < JOBS / 2 { 119.0 } else { 104.0 };
        (labels, first - f64::from(job) / 12.0)
    })
}

fn value_except_during_restart(ago: f64) -> Option<f64> {
    (!(27.2..30.2).contains(&ago)).then_some(1.0)
}

/// A Prometheus server that is stopped at the end of the test.
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

fn new_silent_command(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs an instant query and returns its values, keyed by the value of `label`.
fn query_by_label(url: &str, expression: &str, label: &str) -> BTreeMap<String, f64> {
    let mut encoded = String::new();
    for byte in expression.bytes() {
        write!(encoded, "%{byte:02X}").unwrap();
    }
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let series = body["data"]["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{body}"));
    let value = |series: &Value| series["value"][1].as_str().unwrap().parse().unwrap();
    series
        .iter()
        .map(|it| {
            (
                it["metric"][label].as_str().unwrap_or_default().to_owned(),
                value(it),
            )
        })
        .collect()
}

/// Writes the samples to a file in the format that `promtool` imports.
fn write_history(file: &Path) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut text = String::new();
    for (series, value) in SERIES {
        for step in (0..=STEPS).rev() {
            let at = now - step * STEP;
            if let Some(value) = value((step * STEP) as f64 / 60.0) {
                writeln!(text, "{series} {value} {at}").unwrap();
            }
        }
    }
    for (at_job, (labels, begin)) in list_jobs().enumerate() {
        for step in (0..=STEPS).rev() {
            let ago = (step * STEP) as f64 / 60.0;
            if ago > begin {
                continue;
            }
            let (seconds, at) = (((begin - ago) * 60.0).min(60.0), now - step * STEP);
            let watts = 300.0 + (at_job % 11) as f64 * 20.0;
            writeln!(
                text,
                "gpumon_owner_gpu_seconds_total{{{labels}}} {seconds} {at}"
            )
            .unwrap();
            writeln!(
                text,
                "gpumon_owner_energy_joules_total{{{labels}}} {} {at}",
                seconds * watts
            )
            .unwrap();
            if seconds < 60.0 && labels.contains("pod_uid") {
                let space = format!("team{}", at_job % 3);
                writeln!(
                    text,
                    "gpumon_gpu_job_info{{{labels},gpu=\"0\",namespace=\"{space}\"}} 1 {at}"
                )
                .unwrap();
            }
        }
    }
    text.push_str("# EOF\n");
    fs::write(file, text).unwrap();
}

impl Prometheus {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [file, data, settings] =
            ["history", "data", "prometheus.yml"].map(|name| folder.path().join(name));
        write_history(&file);
        let missing = "Prometheus is missing: install it with `python3 tools/need.py promtool`, \
                       then try again";
        let mut promtool = new_silent_command("promtool");
        promtool
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .args([&file, &data]);
        assert!(promtool.status().expect(missing).success());
        fs::write(&settings, "{}").unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut prometheus = new_silent_command("prometheus");
        prometheus.arg(format!("--config.file={}", settings.display()));
        prometheus.arg(format!("--storage.tsdb.path={}", data.display()));
        prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = prometheus.spawn().expect(missing);
        Self {
            process,
            url: format!("http://127.0.0.1:{port}"),
            _folder: folder,
        }
    }
}

#[tokio::test]
async fn real_prometheus_provides_fleet_and_history() {
    let prometheus = Prometheus::start();
    let mut settings = Settings::new(&prometheus.url);
    settings.period = Duration::from_millis(200);
    let reader = PrometheusReader::new(settings).unwrap();
    let mut fleet = reader.fetch_current_fleet().await;
    for _ in 0..200 {
        if fleet.state == FleetState::Current {
            break;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet = reader.fetch_current_fleet().await;
    }
    assert_eq!(
        (fleet.state, &fleet.problems),
        (FleetState::Current, &vec![])
    );
    assert_eq!(fleet.nodes.name, ["n1", "n2"]);
    assert_eq!(fleet.nodes.health, [NodeHealth::Up; 2]);
    assert_eq!(
        fleet.gpus.readings["utilization.gpu_percent"],
        [Some(100.0), Some(50.0), Some(0.0)]
    );
    assert_eq!(fleet.gpus.models, ["NVIDIA H200", "NVIDIA H100"]);
    let idle = fleet.gpus.idle_holding_s[2].unwrap();
    // The GPU has been idle for 62 minutes. Earlier, there was another idle period of five minutes.
    // The query has a resolution of a quarter of an hour.
    assert!((2700.0..=4020.0).contains(&idle), "{idle}");

    let hour = Range::new(3600).unwrap();
    let usage = reader.fetch_usage(hour).await.unwrap();
    let used = |kind: OwnerKind| {
        usage
            .owners
            .iter()
            .find(|it| it.owner.kind == kind)
            .unwrap()
    };
    let near = |value: Option<f64>, expected: f64| {
        value.is_some_and(|value| (value - expected).abs() <= 90.0)
    };
    // On one node, the job ran for the whole hour; on the other, only since the node's restart.
    let job = used(OwnerKind::SlurmJob);
    assert!(
        near(job.gpu_s, 3600.0 + 1800.0) && job.nodes == 2,
        "{job:?}"
    );
    assert!(
        near(used(OwnerKind::User).gpu_s, 600.0),
        "{:?}",
        used(OwnerKind::User)
    );
    assert!(near(usage.unheld_gpu_s, 360.0), "{:?}", usage.unheld_gpu_s);
    assert_eq!(usage.state, FleetState::Partial);
    assert!(
        usage.unlisted.owners > 0 && usage.owners.len() < usage.owners_total as usize,
        "{}",
        usage.owners_total
    );
    let energy = "gpumon_owner_energy_joules_total";
    let used = |matchers: &str| {
        format!("({energy}{matchers} - ({energy}{matchers} offset 1h or {energy}{matchers} * 0))")
    };
    let by_user = query_by_label(
        &prometheus.url,
        &format!("sum by (user) ({})", used("")),
        "user",
    );
    let info =
        "group by (pod_uid, namespace) (max_over_time(gpumon_gpu_job_info{pod_uid!=\"\"}[2h]))";
    let of_pods = used("{pod_uid!=\"\"}");
    let by_namespace =
        format!("sum by (namespace) ({of_pods} * on (pod_uid) group_left (namespace) {info})");
    let by_namespace = query_by_label(&prometheus.url, &by_namespace, "namespace");
    assert_eq!(
        (by_user.len(), by_namespace.len()),
        (7, 3),
        "{by_user:?} {by_namespace:?}"
    );
    for (groups, truth) in [(&usage.users, by_user), (&usage.namespaces, by_namespace)] {
        for (name, joules) in truth {
            let group = groups
                .iter()
                .find(|group| group.name.as_deref() == Some(&*name))
                .unwrap();
            let difference = (group.energy_joules.unwrap() / joules - 1.0).abs();
            assert!(difference < 0.005, "{name}: {difference}");
        }
    }
    let problems = usage.problems.join("\n");
    for words in [
        "1 node restarted gpumon; its usage",
        "1 node was not scraped at the start of the time range",
    ] {
        assert!(problems.contains(words), "{problems}");
    }

    let events = reader.fetch_events(hour).await.unwrap();
    let reported: Vec<_> = events
        .events
        .iter()
        .map(|it| (it.node.as_str(), it.gpu, it.kind, it.xid, it.count))
        .collect();
    for event in [
        ("n1", Some(0), FleetEventKind::Xid, Some(79), 2),
        ("n1", Some(1), FleetEventKind::GpuNotResponding, None, 1),
        ("n2", None, FleetEventKind::NodeUnreachable, None, 1),
    ] {
        assert!(reported.contains(&event), "{event:?}: {reported:?}");
    }
    assert_eq!(
        (reported.len(), events.state),
        (3, FleetState::Current),
        "{reported:?}"
    );
    assert!(events.events.iter().all(|event| !event.lasts));

    let past = reader.fetch_history(hour, None).await.unwrap();
    let values = |id: &str| {
        past.series
            .iter()
            .find(|series| series.id == id)
            .unwrap()
            .values
            .clone()
    };
    assert_eq!((past.state, past.at_ms.len()), (FleetState::Current, 121));
    assert!(values("gpus").contains(&Some(3.0)), "{past:?}");
    let utilization: Vec<f64> = values("utilization.gpu_percent")
        .into_iter()
        .flatten()
        .collect();
    assert!(
        utilization.len() > 110
            && utilization
                .iter()
                .all(|value| (50.0..=75.0).contains(value)),
        "{utilization:?}"
    );
    let node = reader.fetch_history(hour, Some("n1")).await.unwrap();
    let gpus = node
        .series
        .iter()
        .find(|series| series.id == "gpus")
        .unwrap();
    assert!(
        gpus.values
            .iter()
            .flatten()
            .all(|count| (count - 2.0).abs() < 1e-9),
        "{gpus:?}"
    );
}
