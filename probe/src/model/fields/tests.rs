use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::{
    derive::examples,
    host::HostReader,
    model::{Absence, MigInstance, Reading, ThrottleReason},
};

/// The parts of a sample that are not numbers or are described elsewhere.
const EXCLUDED_PATHS: [&str; 3] = ["throttle_reasons", "mig_devices", "processes"];

/// Collects the paths of all absent readings in a sample's JSON into `found`.
fn collect_absent_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Value::Object(parts) = value else { return };
    if parts.contains_key("absent") {
        found.insert(path.to_owned());
        return;
    }
    for (key, part) in parts {
        collect_absent_paths(
            part,
            &if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            },
            found,
        );
    }
}

fn field_ids<S>(fields: &[Field<S>]) -> BTreeSet<String> {
    fields.iter().map(|field| field.id.to_owned()).collect()
}

fn make_gpu() -> GpuSample {
    let mut gpu =
        GpuSample::new_absent(0, None, 1, crate::model::Health::Ok, &Absence::NotSupported);
    gpu.activity = Reading::Now(examples::make_activity(1.0, 1.0));
    // These readings are omitted from JSON when they are not supported, so they are set here.
    gpu.utilization.media_percent = Reading::Now(1.0);
    (gpu.memory.gtt_total_bytes, gpu.memory.gtt_used_bytes) = (Reading::Now(1), Reading::Now(1));
    gpu.limits = Reading::Now(examples::make_limits());
    gpu.temperature.junction_celsius = Reading::Now(1.0);
    (gpu.clocks.soc_mhz, gpu.clocks.fabric_mhz) = (Reading::Now(1), Reading::Now(1));
    gpu
}

#[test]
fn field_catalogue_contains_every_number_of_sample() {
    let mut sample = make_gpu();
    for field in GPU_FIELDS {
        (field.access.amend)(&mut sample, &|_| None);
    }
    let mut found = BTreeSet::new();
    collect_absent_paths(&serde_json::to_value(&sample).unwrap(), "", &mut found);
    let known = field_ids(GPU_FIELDS);
    let others: BTreeSet<_> = EXCLUDED_PATHS.map(str::to_owned).into();
    assert_eq!(
        &found - &known,
        others,
        "add what is missing to fields/gpu.rs"
    );
    assert!(
        known.is_subset(&found),
        "an entry leads elsewhere than its id says: {:?}",
        &known - &found
    );

    let mut found = BTreeSet::new();
    let mut host = HostReader::new().read();
    for field in HOST_FIELDS {
        (field.access.amend)(&mut host, &|_| None);
    }
    collect_absent_paths(&serde_json::to_value(&host).unwrap(), "host", &mut found);
    assert_eq!(
        found,
        field_ids(HOST_FIELDS),
        "fields/host.rs has what a sample of the machine has"
    );
}

#[test]
fn field_names_are_unique() {
    let names = |all: Vec<Option<&'static str>>| {
        let all: Vec<_> = all.into_iter().flatten().collect();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{all:?}"
        );
    };
    let (gpu, host) = (GPU_FIELDS.iter(), HOST_FIELDS.iter());
    names(
        gpu.clone()
            .map(|field| Some(field.id))
            .chain(host.clone().map(|field| Some(field.id)))
            .collect(),
    );
    names(gpu.clone().map(|field| Some(field.label)).collect());
    names(gpu.clone().map(|field| Some(field.short_label)).collect());
    names(host.clone().map(|field| Some(field.label)).collect());
    names(
        gpu.clone()
            .map(|field| field.prometheus)
            .chain(host.clone().map(|field| field.prometheus))
            .collect(),
    );
    names(gpu.clone().map(|field| field.prometheus_mig).collect());
    names(
        gpu.clone()
            .map(|field| field.dcgm.map(|dcgm| dcgm.name))
            .collect(),
    );
    names(
        gpu.clone()
            .map(|field| field.dcgm.map(|dcgm| dcgm.renamed))
            .collect(),
    );
    // The limits are one metric of `gpumon top`.
    let charts = gpu.map(|field| field.chart.filter(|chart| chart.key != "limits"));
    names(charts.map(|chart| Some(chart?.key)).collect());
}

#[test]
fn field_limits_and_overview_name_existing_fields() {
    let known = &field_ids(GPU_FIELDS) | &field_ids(HOST_FIELDS);
    let limits = GPU_FIELDS.iter().map(|field| (field.id, field.limit));
    for (id, limit) in limits.chain(HOST_FIELDS.iter().map(|field| (field.id, field.limit))) {
        if let Some(Limit::Field(limit)) = limit {
            assert!(known.contains(limit), "{id}: {limit}");
        }
    }
    let drawn_and_judged =
        overview_fields().map(|field| (field.id, field.chart.is_some() && field.load.is_some()));
    assert!(drawn_and_judged.eq(OVERVIEW.map(|id| (id, true))));
    for field in GPU_FIELDS {
        assert!(field.short_label.len() <= 7, "{}", field.id);
        assert!(
            field.prometheus_mig.is_none() || field.mig.is_some(),
            "{}",
            field.id
        );
    }
}

#[test]
fn chart_names_match_those_of_fields() {
    let of_gpus = charted_fields(GPU_FIELDS).filter_map(|field| field.chart);
    let named: BTreeSet<_> = of_gpus
        .chain(charted_fields(HOST_FIELDS).filter_map(|field| field.chart))
        .map(|chart| chart.name)
        .collect();
    let charts: BTreeSet<_> = CHARTS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| *name != "mig")
        .collect();
    assert_eq!(named, charts);
}

#[test]
fn every_field_has_help_sentence() {
    let helps = GPU_FIELDS.iter().map(|field| (field.id, field.help));
    for (id, help) in helps.chain(HOST_FIELDS.iter().map(|field| (field.id, field.help))) {
        assert!(help.ends_with('.'), "{id}: {help:?}");
    }
}

#[test]
fn prometheus_name_ends_with_unit() {
    let named = |id, unit, kind, name: Option<&str>| {
        let Some(name) = name else { return };
        let ending = match unit {
            Unit::Percent => "_ratio",
            Unit::Bytes => "_bytes",
            Unit::Watts => "_watts",
            Unit::Joules => "_joules",
            Unit::Celsius | Unit::CelsiusDifference => "_celsius",
            Unit::Megahertz => "_hertz",
            Unit::BytesPerSecond => "_bytes_per_second",
            Unit::Seconds => "_seconds",
            Unit::Count => "",
        };
        let name = if kind == Kind::Counter {
            name.strip_suffix("_total")
        } else {
            Some(name)
        };
        assert!(
            name.is_some_and(|name| name.ends_with(ending)),
            "{id}: {name:?}"
        );
    };
    for field in GPU_FIELDS {
        named(field.id, field.unit, field.kind, field.prometheus);
        named(field.id, field.unit, field.kind, field.prometheus_mig);
    }
    for field in HOST_FIELDS {
        named(field.id, field.unit, field.kind, field.prometheus);
    }
}

#[test]
fn field_access_reads_and_corrects_values() {
    let field = |id| GPU_FIELDS.iter().find(|field| field.id == id).unwrap();
    let mut sample = make_gpu();
    sample.memory.used_bytes = Reading::Earlier {
        value: u64::MAX,
        at_ms: 1,
    };
    let used = field("memory.used_bytes").access;
    (used.amend)(&mut sample, &Some);
    assert_eq!(
        sample.memory.used_bytes.value(),
        Some(&u64::MAX),
        "not rounded by a look"
    );
    (used.amend)(&mut sample, &|_| None);
    assert_eq!((used.read)(&sample), Err(&Absence::Unknown));
    let active = field("activity.sm_percent").access;
    (active.amend)(&mut sample, &|percent| Some(percent + 1.0));
    assert_eq!(active.value(&sample), Some(2.0));
    sample.activity = Reading::Absent(Absence::WarmingUp);
    assert_eq!((active.read)(&sample), Err(&Absence::WarmingUp));
    let mig = MigInstance {
        gpu_instance: 1,
        compute_instance: 0,
    };
    let device = MigSample {
        uuid: "MIG-0".into(),
        instance: mig,
        memory: make_gpu().memory,
        activity: make_gpu().activity,
        allocated_to: Vec::new(),
    };
    assert_eq!(
        field("activity.sm_percent").mig.unwrap().value(&device),
        Some(1.0)
    );
}

#[test]
fn values_are_converted_to_other_units() {
    let based = [
        Unit::Percent.to_base_unit(50.0),
        Unit::Megahertz.to_base_unit(1980.0),
        Unit::Watts.to_base_unit(3.0),
    ];
    assert_eq!(
        based.map(|value| value.to_string()),
        ["0.5", "1980000000", "3"]
    );
    let reported = |id: &str, value| {
        let field = GPU_FIELDS.iter().find(|field| field.id == id).unwrap();
        field
            .dcgm
            .unwrap()
            .to_dcgm_unit(field.unit, value)
            .to_string()
    };
    assert_eq!(reported("utilization.gpu_percent", 50.0), "50");
    assert_eq!(reported("activity.sm_percent", 50.0), "0.5");
    assert_eq!(reported("memory.used_bytes", 3.5 * f64::from(1 << 20)), "3");
    assert_eq!(reported("power.energy_joules_total", 2.0), "2000");
}

#[test]
fn metric_names_are_grouped_and_dcgm_names_unique() {
    fn collect_names<S>(
        metrics: &[Metric<S>],
        names: &mut Vec<&'static str>,
        dcgm: &mut Vec<Dcgm>,
    ) {
        dcgm.extend(metrics.iter().filter_map(|metric| metric.dcgm));
        for alike in metrics.chunk_by(|one, other| one.prometheus == other.prometheus) {
            let Some(name) = alike[0].prometheus else {
                continue;
            };
            let labels: BTreeSet<_> = alike.iter().map(|metric| metric.labels).collect();
            assert_eq!(labels.len(), alike.len(), "{name}: labels tell them apart");
            let heads = alike
                .iter()
                .map(|metric| (metric.help, metric.kind, metric.unit));
            assert!(
                heads
                    .clone()
                    .all(|head| head == heads.clone().next().unwrap()),
                "{name}"
            );
            assert_eq!(
                alike[0].kind == Kind::Counter,
                name.ends_with("_total"),
                "{name}"
            );
            assert!(alike[0].help.ends_with('.'), "{name}");
            names.push(name);
        }
    }
    let mut names: Vec<_> = GPU_FIELDS
        .iter()
        .filter_map(|field| field.prometheus)
        .collect();
    let mut dcgm: Vec<_> = GPU_FIELDS.iter().filter_map(|field| field.dcgm).collect();
    collect_names(SAMPLE_METRICS, &mut names, &mut dcgm);
    collect_names(DETAIL_METRICS, &mut names, &mut dcgm);
    collect_names(BOARD_METRICS, &mut names, &mut dcgm);
    let all_differ = |names: Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    assert!(all_differ(names.clone()), "{names:?}");
    assert!(
        all_differ(dcgm.iter().map(|dcgm| dcgm.name).collect()),
        "{dcgm:?}"
    );
    assert!(
        all_differ(dcgm.iter().map(|dcgm| dcgm.renamed).collect()),
        "{dcgm:?}"
    );
}

#[test]
fn renamed_dcgm_metrics_use_base_units() {
    let reported = |name, renamed, unit, value| {
        let dcgm = Dcgm { name, renamed };
        (
            dcgm.to_dcgm_unit(unit, value),
            dcgm.to_renamed_unit(unit, value),
        )
    };
    assert_eq!(
        reported(
            "DCGM_FI_DEV_FB_USED",
            "DCGM_FI_DEV_FB_USED_BYTES",
            Unit::Bytes,
            3_145_729.0
        ),
        (3.0, 3_145_729.0)
    );
    assert_eq!(
        reported(
            "DCGM_FI_DEV_SM_CLOCK",
            "DCGM_FI_DEV_SM_CLOCK_HERTZ",
            Unit::Megahertz,
            2.0
        ),
        (2.0, 2e6)
    );
    assert_eq!(
        reported(
            "DCGM_FI_DEV_POWER_VIOLATION",
            "DCGM_FI_DEV_POWER_VIOLATION",
            Unit::Seconds,
            0.5
        ),
        (5e8, 5e8)
    );
    assert_eq!(
        reported(
            "DCGM_FI_PROF_SM_ACTIVE",
            "DCGM_FI_PROF_SM_UTIL_RATIO",
            Unit::Percent,
            50.0
        ),
        (0.5, 0.5)
    );
    let links = (
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
    );
    assert_eq!(
        reported(links.0, links.1, Unit::BytesPerSecond, 10_240_000.0),
        (10.0, 10_240_000.0)
    );
}

#[test]
fn combined_metric_is_absent_without_its_parts() {
    let of = |gpu: &GpuSample, name: &str| {
        let metric = SAMPLE_METRICS
            .iter()
            .find(|metric| metric.dcgm.is_some_and(|dcgm| dcgm.name == name))
            .unwrap();
        (metric.read)(gpu)
    };
    let mut sample = make_gpu();
    let names = [
        "DCGM_FI_DEV_FB_USED_PERCENT",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    ];
    assert_eq!(names.map(|name| of(&sample, name)), [None; 3]);
    let bytes = |bytes| Reading::Now(bytes);
    (sample.memory.total_bytes, sample.memory.used_bytes) = (bytes(100), bytes(45));
    assert_eq!(
        of(&sample, names[0]),
        None,
        "how much is reserved is not known"
    );
    sample.memory.reserved_bytes = bytes(10);
    sample.throttle_reasons = Reading::Now(vec![
        ThrottleReason::HwSlowdown,
        ThrottleReason::HwThermalSlowdown,
    ]);
    (
        sample.nvlink.rx_bytes_per_second,
        sample.nvlink.tx_bytes_per_second,
    ) = (Reading::Now(1.0), Reading::Now(2.0));
    assert_eq!(
        names.map(|name| of(&sample, name)),
        [Some(0.5), Some(72.0), Some(3.0)]
    );
}
