//! Allocations by schedulers, the jobs of processes, and the GPU use of a job.

use std::{fs, path::Path};

use fake_kubelet::{FakeKubelet, KubeletAnswer, make_pod, make_pods_answer};
use gpumon_history::{
    bucket::{BUCKET_MS, Bucket, Device, DeviceBucket},
    jobs::JobSpan,
    writer::{Writer, WriterSettings},
};
use gpumon_probe::{
    model::{
        JobKind,
        fields::{GPU_FIELDS, HOST_FIELDS},
        now_ms,
    },
    stat::Stat,
};
use serde_json::{Value, json};

use crate::support::{
    FakeNvml, Server, assert_refused, assert_refused_with, gpumon_command, stdout_text,
    wait_for_condition,
};

const POD_CGROUP: &str = "0::/kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-\
                   0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";
const SLURM_CGROUP: &str = "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0";

/// Writes a fake `/proc` with these processes: PID, cgroup and environment.
fn write_proc(root: &Path, processes: &[(u32, &str, &str)]) {
    for (pid, cgroup, environment) in processes {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let fields: Vec<_> = (5..=52).map(|field| field.to_string()).collect();
        fs::write(
            folder.join("stat"),
            format!("{pid} (train.py) S 1 {}", fields.join(" ")),
        )
        .unwrap();
        fs::write(
            folder.join("status"),
            "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n",
        )
        .unwrap();
        fs::write(folder.join("comm"), "train.py").unwrap();
        fs::write(folder.join("cmdline"), "train.py").unwrap();
        fs::write(folder.join("cgroup"), cgroup).unwrap();
        fs::write(folder.join("environ"), environment.replace(' ', "\0")).unwrap();
    }
}

fn gpu_uuids(fake: &FakeNvml) -> Vec<String> {
    let gpus = fake.read_json()["inventory"]["gpus"].clone();
    gpus.as_array()
        .unwrap()
        .iter()
        .map(|gpu| gpu["uuid"].as_str().unwrap().to_owned())
        .collect()
}

fn process_owner(snapshot: &Value, gpu: usize) -> &Value {
    &snapshot["sample"]["gpus"][gpu]["processes"][0]["owner"]
}

#[test]
fn owners_come_from_kubelet_prolog_and_slurm_cgroup() {
    let processes = (0..3).map(|gpu| {
        format!(
            "[[process]]\ngpu = {gpu}\npid = {}\nmemory = \"1 GiB\"\n",
            20 + gpu
        )
    });
    let fake = FakeNvml::new(&format!(
        "gpus = 4\n[[gpu]]\nindex = 3\nprofile = \"idle\"\n{}",
        processes.collect::<String>()
    ));
    write_proc(
        &fake.path("proc"),
        &[
            (20, POD_CGROUP, ""),
            (
                21,
                SLURM_CGROUP,
                "SLURM_JOB_ID=88123 SLURM_JOB_SLUID=sEKNKTV3WPV500",
            ),
            (22, "0::/", ""),
        ],
    );
    let uuids = gpu_uuids(&fake);
    let (gpustat, socket) = (fake.path("gpustat"), fake.path("kubelet.sock"));
    fs::create_dir(&gpustat).unwrap();
    // The file belongs to the user who runs the test. The fake processes belong to root, so they
    // only match this user if the test runs as root.
    let own = rustix::process::geteuid().as_raw();
    for gpu in [2, 3] {
        fs::write(gpustat.join(&uuids[gpu]), format!("88125 {own}\n")).unwrap();
    }
    let shared = format!("{}::0", uuids[0]);
    let kubelet = FakeKubelet::start(
        &socket,
        make_pods_answer(&[make_pod(
            "research",
            "train-0",
            "trainer",
            "nvidia.com/gpu",
            &[&shared],
        )]),
    )
    .unwrap();
    let paths = [fake.path("proc"), gpustat, socket];
    let [proc, gpustat, socket] = paths.each_ref().map(|path| path.to_str().unwrap());
    let arguments = [
        "--interval-ms",
        "200",
        "--procfs",
        proc,
        "--slurm-gpus",
        gpustat,
        "--kubelet-socket",
        socket,
    ];
    let server = Server::start_with_fake(&fake, &arguments);
    let snapshot = || server.get("/api/v1/snapshot").json();
    wait_for_condition("the pod of the process is known", || {
        process_owner(&snapshot(), 0)["pod"]["name"] == "train-0"
    });
    wait_for_condition("the Slurm job of the process is known", || {
        process_owner(&snapshot(), 1)["slurm"]["job_id"] == "88123"
    });
    let known = snapshot();
    assert_eq!(process_owner(&known, 0)["pod"]["namespace"], "research");
    assert_eq!(process_owner(&known, 0)["container"]["name"], "trainer");
    let by_kubernetes = json!([{"by": "kubernetes", "namespace": "research", "pod": "train-0", "container": "trainer"}]);
    assert_eq!(known["sample"]["gpus"][0]["allocated_to"], by_kubernetes);
    assert_eq!(
        known["sample"]["gpus"][3]["allocated_to"][0]["job_id"], "88125",
        "the job is reported although it has no processes"
    );
    if own == 0 {
        wait_for_condition("the job of the prolog is known", || {
            process_owner(&snapshot(), 2)["slurm"]["job_id"] == "88125"
        });
    }
    let table = stdout_text(&fake.gpumon_command(&[]).output().unwrap());
    assert!(
        table.contains("pod research/train-0") && table.contains("GPU 3: allocated to slurm 88125"),
        "{table}"
    );

    let of_pod = r#",pod="train-0",namespace="research",container="trainer"}"#;
    for (names, name) in [
        ("dcgm", "DCGM_FI_DEV_FB_USED"),
        ("dcgm-4.9", "DCGM_FI_DEV_FB_USED_BYTES"),
    ] {
        let page = server.get(&format!("/metrics?format={names}")).body;
        let used = |uuid: &str| {
            page.lines()
                .find(|line| line.starts_with(&format!("{name}{{")) && line.contains(uuid))
        };
        assert!(
            used(&uuids[0]).is_some_and(|line| line.contains(of_pod)),
            "{page}"
        );
        assert!(
            used(&uuids[2]).is_some_and(|line| !line.contains("pod=")),
            "{page}"
        );
    }

    let jobs = server.get("/api/v1/jobs?id=train-0").json();
    assert_eq!(jobs["jobs"][0]["name"], "research/train-0", "{jobs}");
    let refusal = server.get("/api/v1/jobs?pod=train-0");
    assert!(
        refusal.status == 400 && refusal.body.contains("use id, or no parameter"),
        "{}",
        refusal.body
    );
    let report = || {
        fake.gpumon_command(&["job", "research/train-0", "--json"])
            .output()
            .unwrap()
    };
    wait_for_condition("the job has a report", || report().status.success());
    let report: Value = serde_json::from_str(&stdout_text(&report())).unwrap();
    assert_eq!(
        (&report["kind"], &report["gpus"][0]["uuid"]),
        (&"pod".into(), &uuids[0].as_str().into())
    );

    kubelet.set_answer(KubeletAnswer::Hung);
    let seq = snapshot()["sample"]["seq"].as_u64();
    wait_for_condition("samples still arrive", || {
        snapshot()["sample"]["seq"].as_u64() > seq.map(|seq| seq + 5)
    });
    assert_eq!(
        process_owner(&snapshot(), 0)["pod"]["name"],
        "train-0",
        "the last known pod is kept for a while"
    );
}

#[test]
fn refused_kubelet_request_is_reported_once() {
    let fake = FakeNvml::new("gpus = 1");
    let socket = fake.path("kubelet.sock");
    let _kubelet = FakeKubelet::start(&socket, KubeletAnswer::Refused).unwrap();
    let mut server = Server::start_with_fake(
        &fake,
        &[
            "--interval-ms",
            "200",
            "--kubelet-socket",
            socket.to_str().unwrap(),
        ],
    );
    let reported = loop {
        let message = server.next_message();
        if message.contains("kubelet") {
            break message;
        }
    };
    assert!(
        reported.contains("gRPC status 8: rejected by rate limit")
            && reported.contains("--kubelet-socket none"),
        "{reported}"
    );
    wait_for_condition("the server still has readings", || {
        server.get("/readyz").status == 200
    });
}

/// Writes history buckets for a job with one busy and one idle GPU.
pub(crate) fn write_history(folder: &Path, minutes: u64) -> u64 {
    let first_ms = (now_ms() / BUCKET_MS - 2 * minutes * 6) * BUCKET_MS;
    let stats = |busy: f64| {
        let value = |id: &str| match id {
            "utilization.gpu_percent" | "activity.sm_percent" => Some(90.0 * busy),
            "activity.tensor_percent" => Some(40.0 * busy),
            "memory.used_bytes" => Some(60e9 * busy),
            "memory.total_bytes" => Some(80e9),
            "power.draw_watts" => Some(100.0 + 500.0 * busy),
            "limits.tensor_percent" => Some(70.0 * busy),
            "limits.idle_percent" => Some(100.0 - 70.0 * busy),
            _ => None,
        };
        GPU_FIELDS
            .iter()
            .map(|field| value(field.id).map(Stat::from_value))
            .collect()
    };
    let settings = WriterSettings {
        folder: folder.to_owned(),
        size_bytes: 1 << 30,
    };
    let writer = Writer::start(settings, 600_000, |_| {}, |_| {}).unwrap();
    let device = |index: u32| Device {
        uuid: format!("GPU-{index}"),
        index,
        name: Some("NVIDIA H100".to_owned()),
        parent: None,
    };
    let job = |uuid: &str, id: &str, to_ms| JobSpan {
        kind: JobKind::Slurm,
        id: id.to_owned(),
        name: None,
        user: Some("ana\u{1b}[2J".to_owned()),
        uuid: uuid.to_owned(),
        from_ms: first_ms + 3_000,
        to_ms,
        private: false,
    };
    for at_ms in (0..minutes * 6).map(|bucket| first_ms + bucket * BUCKET_MS) {
        let buckets = [(0, 1.0), (1, 0.0)].map(|(index, busy)| DeviceBucket {
            device: device(index),
            samples: 10,
            stats: stats(busy),
        });
        let jobs = vec![
            job("GPU-0", "88123", at_ms + 9_000),
            job("GPU-1", "88123", at_ms + 9_000),
            job("GPU-1", "77", at_ms + 9_000),
        ];
        let host = vec![None; HOST_FIELDS.len()];
        writer.add_bucket(Bucket {
            at_ms,
            devices: buckets.into(),
            samples: 10,
            host,
            jobs,
            ..Bucket::default()
        });
    }
    writer.finish_writing();
    first_ms
}

#[test]
fn ended_job_is_reported_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let first_ms = write_history(folder.path(), 10);
    let data = folder.path().to_str().unwrap();
    let output = gpumon_command(&["job", "88123", "--data-dir", data, "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_str(&stdout_text(&output)).unwrap();
    let [one, other] = [&report["gpus"][0], &report["gpus"][1]];
    assert_eq!(
        (&report["id"], &report["from_ms"]),
        (&"88123".into(), &(first_ms + 3_000).into())
    );
    assert_eq!(
        (
            &one["figures"]["gpu_utilization_mean_percent"],
            &one["idle_percent"]
        ),
        (&json!(90.0), &json!(0.0)),
        "{report}"
    );
    let held_s = 10 * 60 - 4;
    assert_eq!(
        (&one["held_ms"], &one["known_ms"]),
        (&json!(held_s * 1000), &json!(held_s * 1000)),
        "{report}"
    );
    assert_eq!(
        one["figures"]["energy_joules"],
        json!(600.0 * f64::from(held_s))
    );
    assert_eq!(
        (
            &other["idle_percent"],
            &other["figures"]["memory_peak_bytes"]
        ),
        (&json!(100.0), &json!(0.0))
    );
    assert_eq!(
        report["advice"],
        json!([
            "GPU 1 was never used: request one GPU.",
            "GPU 0: Tensor cores are busy 40 % of the time. The GPU is well used. Narrower types \
             such as FP8 are faster.",
        ])
    );
    assert_eq!(
        one["limits"]["shares"],
        json!([{"cause": "tensor", "percent": 70.0}, {"cause": "idle", "percent": 30.0}])
    );
    let text = stdout_text(
        &gpumon_command(&["job", "88123", "--data-dir", data])
            .output()
            .unwrap(),
    );
    assert!(
        text.starts_with("Slurm job 88123 of ana") && !text.contains('\x1b'),
        "{text}"
    );
    assert!(
        text.contains("included in the figures: Slurm job 77 of ana"),
        "{text}"
    );
    for words in [
        "2 GPUs",
        "90 %",
        "55.9 of 74.5 GiB",
        "GPU 0 limited by: tensor-bound 70 %, idle 30 %",
        "GPU 1 was never used: request one GPU.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let nearest = assert_refused_with(
        gpumon_command(&["job", "88132", "--data-dir", data]),
        2,
        &["Slurm job 88123 of ana", "another directory"],
    );
    assert!(!nearest.contains('\x1b'), "{nearest}");
    fs::remove_file(folder.path().join("history.db")).unwrap();
    assert_refused(
        gpumon_command(&["job", "88123", "--data-dir", data]),
        1,
        "history.db",
    );
}

#[test]
fn missing_server_or_job_is_refused_with_remedy() {
    let fake = FakeNvml::new("gpus = 1");
    assert_refused_with(
        fake.gpumon_command(&["job", "88123"]),
        1,
        &["gpumon serve", "--control"],
    );
    let server = Server::start_with_fake(&fake, &["--interval-ms", "200"]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    assert_refused_with(
        fake.gpumon_command(&["job", "88123"]),
        2,
        &["no job has been seen on a GPU", "--data-dir"],
    );
}
