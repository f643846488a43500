use std::collections::BTreeSet;

use gpumon_probe::{
    host::HostReader,
    model::{
        Absence, Allocation, Condition, ConditionKind, Driver, Event, EventKind, Gpu, GpuDetails,
        GpuRef, GpuSample, Health, Inventory, MigDevice, MigInstance, MigSample, Platform, Process,
        ProcessKind, Reading, RemappedRows, Sample, Severity, ThrottleReason, Vendor, XidReport,
    },
    usage::Usage,
};

use super::*;
use crate::{
    frame::{CollectorState, CollectorStatus},
    hub::{LimitTimes, XidCounts, make_limited_gpu},
};

pub(super) const ABSENT: Absence = Absence::NotSupported;

fn make_gpu(index: u32) -> Gpu {
    Gpu {
        uuid: Some(format!("GPU-{index}")),
        name: Reading::Now("NVIDIA \"H200\"".to_owned()),
        pci_bus_id: Reading::Now("00000000:00:06.0".to_owned()),
        ..Gpu::new_unidentified(index, &ABSENT)
    }
}

/// A test's data, which is converted to [`HubData`].
#[derive(Clone)]
pub(super) struct Example {
    pub(super) collector: CollectorStatus,
    pub(super) inventory: Inventory,
    pub(super) sample: Sample,
    pub(super) details: Vec<GpuDetails>,
    pub(super) xids: XidCounts,
    pub(super) limit_times: LimitTimes,
    pub(super) usage: Usage,
}

impl Example {
    pub(super) fn to_hub_data(&self) -> HubData {
        HubData {
            collector: self.collector.clone(),
            inventory: Some(Arc::new(self.inventory.clone())),
            sample: Some(Arc::new(self.sample.clone())),
            details: self.details.iter().cloned().map(Arc::new).collect(),
            xids: self.xids.clone(),
            limit_times: Arc::new(self.limit_times.clone()),
            usage: self.usage.clone(),
            refused: Some(Arc::default()),
        }
    }

    fn render_page(&self, key: PageKey) -> String {
        key.render_text(&self.to_hub_data())
    }

    pub(super) fn render_gpumon_page(&self) -> String {
        self.render_page(PageKey::default())
    }

    fn render_page_with_names(&self, names: MetricNames) -> String {
        self.render_page(PageKey {
            names,
            ..PageKey::default()
        })
    }
}

/// Returns data of three GPUs: a healthy one, one that hangs, and one with few readings.
pub(super) fn make_example() -> Example {
    let now = now_ms();
    let sample = |index: u32, health| {
        GpuSample::new_absent(index, Some(format!("GPU-{index}")), now, health, &ABSENT)
    };
    let mut well = sample(0, Health::Ok);
    well.utilization.gpu_percent = Reading::Now(50.0);
    well.memory.used_bytes = Reading::Now(3 << 30);
    well.power.energy_joules_total = Reading::Now(12.5);
    well.clocks.sm_mhz = Reading::Now(1980);
    let mut hung = sample(
        1,
        Health::Hung {
            since_ms: now - 9_000,
        },
    );
    hung.utilization.gpu_percent = Reading::Now(77.0);
    for (code, last_ms) in [(79, 1), (13, 2)] {
        let kind = ConditionKind::Xid {
            pid: None,
            code,
            count: 1,
            last_ms,
        };
        let condition = Condition {
            since_ms: 1,
            severity: Severity::Critical,
            text: "gone".to_owned(),
            kind,
        };
        well.conditions.push(condition.clone());
        hung.conditions.push(condition);
    }
    let details = |index: u32| {
        let mut details = GpuDetails::new_absent(index, Some(format!("GPU-{index}")), now, &ABSENT);
        details.remapped_rows = Reading::Now(RemappedRows {
            correctable: 2,
            uncorrectable: 1,
            pending: true,
            failed: false,
            spare: None,
        });
        details
    };
    let text = |text: &str| Reading::Now(text.to_owned());
    let mut xids = XidCounts::default();
    let report = XidReport {
        code: 79,
        name: None,
        pid: None,
        meaning: String::new(),
        advice: String::new(),
        message: None,
    };
    let gpu_ref = Some(GpuRef {
        index: 0,
        uuid: None,
    });
    xids.count_event(&Event {
        at_ms: now,
        gpu: gpu_ref,
        what: EventKind::Xid(report),
    });
    Example {
        collector: CollectorStatus {
            state: CollectorState::Running,
            since_ms: 0,
            message: None,
            resumes_ms: None,
            joined: None,
        },
        inventory: Inventory {
            at_ms: now,
            hostname: "node7".to_owned(),
            platform: Platform {
                is_simulated: false,
                drivers: vec![Driver {
                    vendor: Vendor::Nvidia,
                    version: text("580.1"),
                    library_version: text("13.580.1"),
                    cuda_version: text("13.0"),
                }],
            },
            gpus: vec![make_gpu(0), make_gpu(1), make_gpu(2)],
            topology: Vec::new(),
            playback: None,
        },
        sample: Sample {
            seq: 0,
            at_ms: now,
            interval_ms: 1000,
            gpus: vec![well, hung, sample(2, Health::Ok)],
            host: HostReader::new().read(),
        },
        details: vec![details(0), details(1)],
        xids,
        limit_times: LimitTimes::default(),
        usage: Usage::default(),
    }
}

pub(super) fn make_process(pid: u32) -> Process {
    Process {
        pid,
        kind: ProcessKind::Compute,
        memory_bytes: Reading::Now(u64::from(pid)),
        sm_percent: Reading::Now(50.0),
        memory_percent: Reading::Absent(ABSENT),
        encoder_percent: Reading::Absent(ABSENT),
        decoder_percent: Reading::Absent(ABSENT),
        name: Reading::Now("train.py".to_owned()),
        program: None,
        command: Reading::Now("python train.py --token secret".to_owned()),
        user: Reading::Now("ana".to_owned()),
        host_memory_bytes: Reading::Absent(ABSENT),
        traced: Reading::Absent(ABSENT),
        started_ms: Reading::Absent(ABSENT),
        mig: None,
        mps: false,
        owner: Reading::Absent(ABSENT),
    }
}

/// Returns the lines of one family, and checks the whole page.
#[track_caller]
pub(super) fn family_lines<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let (mut families, mut series, mut current) = (BTreeSet::new(), BTreeSet::new(), "");
    for line in page.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            current = head.split(' ').next().unwrap();
            assert!(
                families.insert(current),
                "a family in two pieces: {current}"
            );
        } else if !line.starts_with("# HELP ") {
            let (labeled, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert_eq!(
                labeled.split('{').next(),
                Some(current),
                "outside its family: {line}"
            );
            assert!(series.insert(labeled), "twice: {labeled}");
        }
    }
    page.lines()
        .filter(|line| {
            line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} "))
        })
        .collect()
}

#[test]
fn readings_use_base_units_or_are_omitted() {
    let page = make_example().render_gpumon_page();
    assert_eq!(
        family_lines(&page, "gpumon_gpu_utilization_ratio"),
        [r#"gpumon_gpu_utilization_ratio{gpu="0",uuid="GPU-0"} 0.5"#]
    );
    let used = [r#"gpumon_gpu_memory_used_bytes{gpu="0",uuid="GPU-0"} 3221225472"#];
    assert_eq!(family_lines(&page, "gpumon_gpu_memory_used_bytes"), used);
    assert_eq!(
        family_lines(&page, "gpumon_gpu_sm_clock_hertz"),
        [r#"gpumon_gpu_sm_clock_hertz{gpu="0",uuid="GPU-0"} 1980000000"#]
    );
    assert!(page.contains("# TYPE gpumon_gpu_energy_joules_total counter"));
    assert!(
        !page.contains("gpumon_gpu_temperature_celsius"),
        "nobody has one, so there is not even a head"
    );
    let rows = r#"gpumon_gpu_remapped_rows_total{gpu="0",uuid="GPU-0",cause="correctable"} 2"#;
    assert!(family_lines(&page, "gpumon_gpu_remapped_rows_total").contains(&rows));
    assert_eq!(family_lines(&page, "gpumon_gpu_info").len(), 3);
    assert!(page.contains(
        r#"name="NVIDIA \"H200\"",driver="580.1",pci_bus_id="00000000:00:06.0",source="nvml"} 1"#
    ));
}

#[test]
fn hung_gpu_is_down_without_values() {
    let page = make_example().render_gpumon_page();
    assert_eq!(
        family_lines(&page, "gpumon_gpu_up")[1],
        r#"gpumon_gpu_up{gpu="1",uuid="GPU-1"} 0"#
    );
    assert_eq!(
        family_lines(&page, "gpumon_gpu_up")[2],
        r#"gpumon_gpu_up{gpu="2",uuid="GPU-2"} 1"#
    );
    let of_hung: Vec<_> = page
        .lines()
        .filter(|line| line.contains(r#"gpu="1""#))
        .collect();
    let names: BTreeSet<_> = of_hung
        .iter()
        .map(|line| line.split('{').next().unwrap())
        .collect();
    let health = [
        "gpumon_condition",
        "gpumon_condition_severity",
        "gpumon_gpu_info",
        "gpumon_gpu_sample_age_seconds",
        "gpumon_gpu_state",
        "gpumon_gpu_up",
        "gpumon_gpu_xid",
    ];
    assert_eq!(
        names,
        BTreeSet::from(health),
        "what it showed and had before is no measurement"
    );
    assert!(page.contains(r#"gpumon_gpu_xid{gpu="1",uuid="GPU-1",code="79"} 1"#));
}

#[test]
fn state_metrics_have_value_0_or_1() {
    let mut throttled = make_example();
    throttled.sample.gpus[0].throttle_reasons = Reading::Now(vec![ThrottleReason::SwPowerCap]);
    throttled.sample.gpus[0].conditions.clear();
    throttled.sample.gpus[2].throttle_reasons = Reading::Now(Vec::new());
    let page = throttled.render_gpumon_page();
    let of = |name: &str, value: &str| {
        let ending = format!(" {value}");
        family_lines(&page, name)
            .iter()
            .filter(|line| line.ends_with(&ending))
            .count()
    };
    let reasons = ThrottleReason::for_vendor(Vendor::Nvidia).count();
    for (name, ones, zeros) in [
        ("gpumon_collector_state", 1, CollectorState::ALL.len() - 1),
        ("gpumon_gpu_state", 3, 3 * (Health::TAGS.len() - 1)),
        ("gpumon_gpu_throttled", 1, 2 * reasons - 1),
        ("gpumon_condition", 1, 3 * ConditionKind::TAGS.len() - 1),
        ("gpumon_gpu_xid", 2, 1),
    ] {
        assert_eq!(
            (of(name, "1"), of(name, "0")),
            (ones, zeros),
            "{name}: {page}"
        );
    }
    for series in [
        r#"gpumon_gpu_throttled{gpu="0",uuid="GPU-0",reason="sw_power_cap"} 1"#,
        r#"gpumon_gpu_state{gpu="1",uuid="GPU-1",state="hung"} 1"#,
        r#"gpumon_condition{gpu="1",uuid="GPU-1",condition="xid"} 1"#,
        r#"gpumon_condition_severity{gpu="1",uuid="GPU-1",condition="xid"} 3"#,
        // This Xid condition has ended, but its code has occurred since the server's start.
        r#"gpumon_gpu_xid{gpu="0",uuid="GPU-0",code="79"} 0"#,
        r#"gpumon_gpu_xid_errors_total{gpu="0",uuid="GPU-0",code="79"} 1"#,
        r#"gpumon_collector_state{state="running"} 1"#,
    ] {
        assert!(page.lines().any(|line| line == series), "{series}: {page}");
    }
}

#[test]
fn time_of_each_limiting_cause_is_counted() {
    let mut example = make_example();
    example.sample.gpus[0] = make_limited_gpu(example.sample.at_ms, 10_000);
    example.limit_times.count_sample(&example.sample);
    // The counter of a GPU that does not respond remains.
    example.sample.gpus[0].health = Health::Lost { since_ms: 1 };
    let page = example.render_gpumon_page();
    let lines = family_lines(&page, "gpumon_gpu_limited_seconds_total");
    for (cause, seconds) in [("idle", "0"), ("host", "7.5"), ("unknown", "2.5")] {
        let labels = format!(r#"{{gpu="0",uuid="GPU-0",cause="{cause}"}}"#);
        let line = format!("gpumon_gpu_limited_seconds_total{labels} {seconds}");
        assert!(lines.contains(&line.as_str()), "{line}: {lines:?}");
    }
    assert!(
        !page.contains(r#"cause="tensor""#),
        "the GPU has no counter of its tensor cores"
    );
}

#[test]
fn pause_or_late_collector_removes_readings() {
    let mut paused = make_example();
    paused.collector.state = CollectorState::Paused;
    let mut late = make_example();
    late.sample.at_ms -= 60_000;
    for (page, up) in [
        (
            paused.render_page(PageKey {
                processes: true,
                ..PageKey::default()
            }),
            "0",
        ),
        (
            late.render_page(PageKey {
                processes: true,
                ..PageKey::default()
            }),
            "1",
        ),
    ] {
        assert_eq!(
            family_lines(&page, "gpumon_collector_up"),
            [format!("gpumon_collector_up {up}")]
        );
        assert_eq!(family_lines(&page, "gpumon_gpu_info").len(), 3);
        for name in [
            "gpumon_gpu_up",
            "gpumon_gpu_utilization_ratio",
            "gpumon_condition",
            "gpumon_host_cpus",
        ] {
            assert!(family_lines(&page, name).is_empty(), "{name}");
        }
        assert!(!page.contains("remapped"), "{page}");
    }
    assert_eq!(paused.render_page_with_names(MetricNames::Dcgm).len(), 0);
    assert_eq!(
        family_lines(&paused.render_gpumon_page(), "gpumon_collector_state")[4],
        r#"gpumon_collector_state{state="paused"} 1"#
    );
}

#[test]
fn dcgm_names_have_dcgm_labels_and_units() {
    let page = make_example().render_page_with_names(MetricNames::Dcgm);
    let labels = r#"{gpu="0",UUID="GPU-0",pci_bus_id="00000000:00:06.0",device="nvidia0",modelName="NVIDIA \"H200\"",Hostname="node7",DCGM_FI_DRIVER_VERSION="580.1"}"#;
    for (name, value) in [
        ("DCGM_FI_DEV_GPU_UTIL", "50"),
        ("DCGM_FI_DEV_FB_USED", "3072"),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "12500"),
        ("DCGM_FI_DEV_SM_CLOCK", "1980"),
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "2"),
        ("DCGM_FI_DEV_XID_ERRORS", "13"),
    ] {
        assert_eq!(
            family_lines(&page, name)[0],
            format!("{name}{labels} {value}")
        );
    }
    assert!(page.contains("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter"));
}

#[test]
fn partitioned_gpu_has_metrics_per_mig_instance() {
    let mut partitioned = make_example();
    let instance = MigInstance {
        gpu_instance: 7,
        compute_instance: 0,
    };
    let mut memory = GpuSample::new_absent(0, None, 0, Health::Ok, &ABSENT).memory;
    memory.used_bytes = Reading::Now(1 << 30);
    let part = MigSample {
        uuid: "MIG-1".to_owned(),
        instance,
        memory,
        activity: Reading::Absent(ABSENT),
        allocated_to: vec![Allocation::Kubernetes {
            namespace: "research".to_owned(),
            pod: "part".to_owned(),
            container: "main".to_owned(),
        }],
    };
    partitioned.sample.gpus[0].mig_devices = Reading::Now(vec![part]);
    partitioned.inventory.gpus[0].mig_devices = vec![MigDevice {
        index: 0,
        uuid: "MIG-1".to_owned(),
        instance,
        profile: Reading::Now("1g.18gb".to_owned()),
        multiprocessors: Reading::Absent(ABSENT),
        copy_engines: Reading::Absent(ABSENT),
        decoders: Reading::Absent(ABSENT),
        encoders: Reading::Absent(ABSENT),
    }];
    let page = partitioned.render_gpumon_page();
    let used = r#"gpumon_mig_memory_used_bytes{gpu="0",uuid="GPU-0",mig_uuid="MIG-1",profile="1g.18gb"} 1073741824"#;
    assert_eq!(family_lines(&page, "gpumon_mig_memory_used_bytes"), [used]);
    let dcgm = partitioned.render_page_with_names(MetricNames::Dcgm);
    let used = family_lines(&dcgm, "DCGM_FI_DEV_FB_USED");
    assert_eq!(
        used.len(),
        1,
        "the whole GPU would count the part twice: {used:?}"
    );
    assert!(
        used[0].ends_with(
            r#"GPU_I_PROFILE="1g.18gb",GPU_I_ID="7",pod="part",namespace="research",container="main"} 1024"#
        ),
        "{used:?}"
    );
}

#[test]
fn pods_reported_by_kubelet_become_dcgm_labels() {
    let held = |namespace: &str, pod: &str, container: &str| Allocation::Kubernetes {
        namespace: namespace.to_owned(),
        pod: pod.to_owned(),
        container: container.to_owned(),
    };
    let slurm = Allocation::Slurm {
        job_id: "7".to_owned(),
        user: None,
    };
    let train = || held("research", "train-0", "trainer");
    assert!(
        !make_example()
            .render_page_with_names(MetricNames::Dcgm)
            .contains("pod=")
    );
    for (holders, reported) in [
        (vec![slurm.clone()], ""),
        (
            vec![slurm, train()],
            r#",pod="train-0",namespace="research",container="trainer""#,
        ),
        (
            vec![train(), held("research", "train-0", "sidecar")],
            r#",pod="train-0",namespace="research""#,
        ),
        (
            vec![train(), held("research", "train-1", "trainer")],
            r#",namespace="research""#,
        ),
        (vec![train(), held("web", "train-0", "trainer")], ""),
        (
            vec![train(), held("web", "train-0", "trainer"), train()],
            "",
        ),
    ] {
        let mut allocated = make_example();
        allocated.sample.gpus[0].allocated_to = holders;
        for (names, name) in [
            (MetricNames::Dcgm, "DCGM_FI_DEV_GPU_UTIL"),
            (MetricNames::Dcgm49, "DCGM_FI_DEV_GPU_UTIL_RATIO"),
        ] {
            let page = allocated.render_page_with_names(names);
            let series = &family_lines(&page, name)[0];
            assert!(
                series.contains(&format!(r#"DRIVER_VERSION="580.1"{reported}}} "#)),
                "{series}"
            );
        }
        assert!(
            !allocated.render_gpumon_page().contains("train-0"),
            "own names have it of processes, in gpumon_gpu_job_info"
        );
    }
}

#[test]
fn largest_processes_are_listed_only_on_request() {
    let mut busy = make_example();
    busy.sample.gpus[0].processes =
        Reading::Now((1..=150).chain([150]).map(make_process).collect());
    busy.sample.gpus[0].processes_omitted = 7;
    let without = busy.render_gpumon_page();
    assert!(
        !without.contains("pid=") && !without.contains("train.py"),
        "{without}"
    );
    assert_eq!(
        family_lines(&without, "gpumon_gpu_processes"),
        [r#"gpumon_gpu_processes{gpu="0",uuid="GPU-0"} 158"#]
    );
    let with = busy.render_page(PageKey {
        processes: true,
        ..PageKey::default()
    });
    let reported = family_lines(&with, "gpumon_process_memory_bytes");
    assert_eq!(reported.len(), 100);
    assert!(
        reported[0].contains(r#"pid="150",name="train.py",user="ana""#),
        "{}",
        reported[0]
    );
    assert_eq!(
        family_lines(&with, "gpumon_processes_omitted"),
        ["gpumon_processes_omitted 57"]
    );
    assert!(!with.contains("secret"));
}

#[test]
fn newer_dcgm_has_different_names_labels_and_units() {
    let page = make_example().render_page_with_names(MetricNames::Dcgm49);
    let labels = r#"{gpu="0",UUID="GPU-0",pci_bus_id="00000000:00:06.0",device="nvidia0",modelName="NVIDIA \"H200\"",hostname="node7",DCGM_FI_SYSTEM_DRIVER_VERSION="580.1"}"#;
    for (name, value) in [
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "0.5"),
        ("DCGM_FI_DEV_FB_USED_BYTES", "3221225472"),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "12.5"),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "1980000000"),
        ("DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "2"),
        ("DCGM_FI_DEV_ROW_REMAP_PENDING", "1"),
    ] {
        assert_eq!(
            family_lines(&page, name),
            [format!("{name}{labels} {value}")]
        );
    }
    assert!(
        !page.contains("DCGM_FI_DEV_GPU_UTIL{") && !page.contains("Hostname"),
        "{page}"
    );
}

#[test]
fn xid_of_lost_gpu_has_dcgm_series() {
    let mut lost = make_example();
    lost.sample.gpus[1].health = Health::Lost { since_ms: 1 };
    lost.sample.gpus[2].conditions.clear();
    let page = lost.render_page_with_names(MetricNames::Dcgm);
    let values: Vec<_> = family_lines(&page, "DCGM_FI_DEV_XID_ERRORS")
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(values, ["13", "13", "0"], "the newest, or 0");
}

#[test]
fn counters_have_open_metrics_suffix() {
    let mut page = Page::default();
    let (key, known) = (
        PageKey {
            links: true,
            processes: true,
            ..PageKey::default()
        },
        make_example().to_hub_data(),
    );
    key.write_gpumon_metrics(&mut page, &Scrape::new(&known, now_ms()));
    for (name, kind, _) in &page.families {
        assert_eq!(name.ends_with("_total"), *kind == "counter", "{name}");
    }
}
