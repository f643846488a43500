//! Tests that build fleets from series.

use axum::http::StatusCode;

use super::{Behavior, FakeServer, GPUMON_SERIES, read_until, settings_for, start_reader};
use crate::{
    FleetError, FleetReader, NodeAddress,
    model::{Fleet, FleetHold, FleetState, GpuHealth, NodeHealth, OwnerKind, Resolution},
    prometheus::PrometheusReader,
};

fn list_readings(fleet: &Fleet, id: &str) -> Vec<Option<f64>> {
    fleet.gpus.readings[id].clone()
}

#[tokio::test]
async fn fleet_has_nodes_gpus_owners_and_conditions() {
    let (_fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        (fleet.state, &fleet.problems, fleet.resolution),
        (FleetState::Current, &vec![], Resolution::Gpu)
    );
    assert_eq!(fleet.nodes.name, ["n2", "n10"]);
    assert_eq!(fleet.nodes.health, [NodeHealth::Up; 2]);
    assert_eq!(
        (&fleet.gpus.node, &fleet.gpus.index),
        (&vec![0, 0, 1], &vec![0, 1, 0])
    );
    assert_eq!(
        fleet.gpus.health,
        [GpuHealth::Ok, GpuHealth::NotResponding, GpuHealth::Ok]
    );
    let model = |at: usize| fleet.gpus.models[fleet.gpus.model[at].unwrap() as usize].as_str();
    assert_eq!(
        [0, 1, 2].map(model),
        ["NVIDIA H200", "NVIDIA H200", "NVIDIA H100"]
    );
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(50.0), None, Some(0.0)]
    );
    assert_eq!(
        list_readings(&fleet, "memory.total_bytes"),
        [None, None, Some(8e10)]
    );
    assert_eq!(fleet.gpus.processes, [None, None, Some(2)]);
    assert_eq!(fleet.gpus.idle_holding_s, [None, None, Some(300.0)]);
    let conditions: Vec<_> = fleet
        .conditions
        .iter()
        .map(|it| (it.gpu, it.kind.as_str(), it.severity))
        .collect();
    assert_eq!(conditions, [(1, "xid_79", 3), (2, "held_idle", 1)]);
    let owners: Vec<_> = fleet
        .owners
        .iter()
        .map(|it| (it.user.as_deref(), it.kind, it.id.as_str()))
        .collect();
    assert_eq!(
        owners,
        [
            (Some("ana"), OwnerKind::SlurmJob, "7"),
            (Some("bo"), OwnerKind::User, "")
        ]
    );
    assert_eq!(
        fleet.holds,
        [
            FleetHold { gpu: 2, owner: 0 },
            FleetHold { gpu: 2, owner: 1 }
        ]
    );
    assert!(
        fleet.missing["power.draw_watts"].contains("gpumon_gpu_power_watts"),
        "{:?}",
        fleet.missing
    );
    assert!(!fleet.missing.contains_key("processes") && !fleet.missing.contains_key("conditions"));
}

#[tokio::test]
async fn single_node_is_extracted_with_address() {
    let (_fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    assert_eq!(reader.find_address("n10"), None, "nothing has been read");
    let node = reader.fetch_node("n10").await.unwrap();
    assert_eq!(
        (node.nodes.name.as_slice(), node.gpus.index.as_slice()),
        (["n10".to_owned()].as_slice(), [0].as_slice())
    );
    assert_eq!(list_readings(&node, "memory.used_bytes"), [Some(1e10)]);
    assert_eq!(
        (node.owners.len(), node.holds[1], node.conditions.len()),
        (2, FleetHold { gpu: 0, owner: 1 }, 1)
    );
    assert_eq!(
        reader.find_address("n10"),
        Some(NodeAddress {
            host: "n10".to_owned(),
            port: Some(9124)
        })
    );
    let unknown = reader.fetch_node("n\u{1b}3").await.unwrap_err();
    assert_eq!(unknown, FleetError::NoSuchNode("n\u{fffd}3".to_owned()));
}

#[tokio::test]
async fn last_known_fleet_is_outdated_until_reread() {
    let (_fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    let first = reader.get_last_known_fleet().await;
    assert_eq!(
        (first.state, first.nodes.name.len()),
        (FleetState::Current, 2),
        "nothing was known, and it was waited for"
    );
    let old = loop {
        let fleet = reader.get_last_known_fleet().await;
        assert_eq!((fleet.problems.len(), fleet.at_ms), (0, first.at_ms));
        if fleet.state == FleetState::Outdated {
            break fleet;
        }
        // A read is delayed if the previous read took long. The loop therefore waits between reads.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!(old.nodes, first.nodes);
    let new = reader.fetch_current_fleet().await;
    assert!(
        new.state == FleetState::Current && new.at_ms > old.at_ms,
        "{:?} {} {}",
        new.state,
        new.at_ms,
        old.at_ms
    );
}

#[tokio::test]
async fn implausible_values_are_ignored() {
    let values = ["0.5", "-3", "1e300", "1.00000001", "+Inf"];
    let each = |(gpu, value): (usize, &&str)| {
        let labels = format!(r#"{{job="g",instance="a:1",gpu="{gpu}",uuid="{gpu}"}}"#);
        format!(
            "gpumon_gpu_up{labels} 1\ngpumon_gpu_info{labels} \
             1\ngpumon_gpu_utilization_ratio{labels} {value}\ngpumon_gpu_power_watts{labels} \
             {value}\n"
        )
    };
    let series: String = values.iter().enumerate().map(each).collect();
    let (_fake, reader) = start_reader(Behavior::Series(series.leak())).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(50.0), None, None, Some(100.0), None]
    );
    assert_eq!(
        list_readings(&fleet, "power.draw_watts"),
        [Some(0.5), None, None, Some(1.000_000_01), None]
    );
}

#[tokio::test]
async fn unreachable_nodes_have_reasons() {
    let series = r#"
gpumon_gpu_up{job="g",instance="a:1",gpu="0",uuid="old-A"} 1
gpumon_gpu_info{job="g",instance="a:1",gpu="0",uuid="old-A"} 1
gpumon_gpu_info{job="g",instance="a:1",gpu="1",uuid="old-B"} 1
gpumon_gpu_info{job="g",instance="b:1",gpu="0",uuid="old-C",name="X"} 1
gpumon_gpu_info{job="g",instance="gone:1",gpu="0",uuid="old-D"} 1
gpumon_gpu_utilization_ratio{job="g",instance="a:1",gpu="0",uuid="old-A"} 1
gpumon_gpu_memory_total_bytes{job="g",instance="b:1",gpu="0",uuid="old-C"} 8
gpumon_collector_state{job="g",instance="a:1",state="running"} 1
gpumon_collector_state{job="g",instance="c:1",state="paused"} 1
gpumon_collector_state{job="g",instance="d:1",state="running"} 1
gpumon_sample_age_seconds{job="g",instance="d:1"} 99
up{job="g",instance="a:1"} 1
up{job="g",instance="b:1"} 0
up{job="g",instance="c:1"} 1
up{job="g",instance="d:1"} 1
up{job="my-gpumon",instance="e:1"} 0
"#;
    let (fake, reader) = start_reader(Behavior::Series(series)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(fleet.nodes.name, ["a", "b", "c", "d", "e"]);
    let silent = NodeHealth::NoReadings;
    let (up, down) = (NodeHealth::Up, NodeHealth::Unreachable);
    assert_eq!(fleet.nodes.health, [up, down, silent, silent, down]);
    for (node, words) in [
        (1, "cannot scrape"),
        (2, "paused"),
        (3, "99 s"),
        (4, "cannot scrape"),
    ] {
        assert!(
            fleet.nodes.reasons[&node].contains(words),
            "{:?}",
            fleet.nodes.reasons
        );
    }
    // The GPU of the node that does not respond is known from earlier data. The other node responds
    // but no longer reports one of its GPUs, which therefore counts as lost.
    assert_eq!(fleet.gpus.node, [0, 0, 1]);
    assert_eq!(
        fleet.gpus.health,
        [GpuHealth::Ok, GpuHealth::NotResponding, GpuHealth::Unknown]
    );
    assert_eq!(
        list_readings(&fleet, "memory.total_bytes"),
        [None, None, Some(8.0)]
    );
    // A node that Prometheus no longer scrapes remains listed for a while.
    fake.set_behavior(Behavior::Series(GPUMON_SERIES));
    let fleet = read_until(&reader, |fleet| {
        fleet.nodes.name.iter().any(|name| name == "n2")
    })
    .await;
    let at = fleet
        .nodes
        .name
        .iter()
        .position(|name| name == "a")
        .unwrap();
    assert_eq!(fleet.nodes.health[at], NodeHealth::Unreachable);
    assert!(
        fleet.nodes.reasons[&(at as u32)]
            .contains("check that the scrape configuration still includes the node"),
        "{:?}",
        fleet.nodes.reasons
    );
}

const DCGM_OLD: &str = r#"
DCGM_FI_DEV_GPU_UTIL{instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200",pod="train",namespace="ml"} 90
DCGM_FI_DEV_GPU_TEMP{instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200",pod="train",namespace="ml"} 60
DCGM_FI_DEV_FB_USED{instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200"} 1024
DCGM_FI_DEV_FB_FREE{instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200"} 3072
DCGM_FI_DEV_FB_USED{instance="10.0.0.1:9400",gpu="1",UUID="B",Hostname="n1",modelName="NVIDIA H200",GPU_I_ID="1"} 1024
DCGM_FI_DEV_FB_USED{instance="10.0.0.1:9400",gpu="1",UUID="B",Hostname="n1",modelName="NVIDIA H200",GPU_I_ID="2"} 1024
DCGM_FI_DEV_FB_USED{instance="10.0.0.1:9400",gpu="1",UUID="B",Hostname="n1",modelName="NVIDIA H200",GPU_I_ID="2",replica="b"} 1024
DCGM_FI_DEV_XID_ERRORS{instance="10.0.0.1:9400",gpu="1",UUID="B",Hostname="n1"} 79
"#;

#[tokio::test]
async fn fleet_with_only_dcgm_exporter_lacks_some_readings() {
    let (_fake, reader) = start_reader(Behavior::Series(DCGM_OLD)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        (fleet.state, fleet.nodes.name.as_slice()),
        (FleetState::Current, ["n1".to_owned()].as_slice())
    );
    assert_eq!(fleet.gpus.index, [0, 1], "MIG devices are no GPUs");
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(90.0), None]
    );
    let mib = f64::from(1 << 20);
    assert_eq!(
        list_readings(&fleet, "memory.used_bytes"),
        [Some(1024.0 * mib), Some(2048.0 * mib)]
    );
    assert_eq!(
        list_readings(&fleet, "memory.total_bytes"),
        [Some(4096.0 * mib), None]
    );
    assert_eq!(
        (
            fleet.owners[0].id.as_str(),
            fleet.owners[0].namespace.as_deref()
        ),
        ("train", Some("ml"))
    );
    assert_eq!(fleet.conditions[0].kind, "xid_79");
    for missing in ["processes", "conditions", "power.limit_watts"] {
        assert!(
            fleet.missing[missing].contains("dcgm-exporter does not export"),
            "{:?}",
            fleet.missing
        );
    }
    assert!(fleet.missing["power.limit_watts"].contains("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"));
    assert!(fleet.nodes.unopenable[&0].contains("gpumon serve"));
}

#[tokio::test]
async fn unreachable_gpumon_node_is_not_called_dcgm_only() {
    let series = r#"
gpumon_gpu_up{job="gpumon",instance="n1:9124",gpu="0",uuid="A"} 1
gpumon_gpu_utilization_ratio{job="gpumon",instance="n1:9124",gpu="0",uuid="A"} 0.5
gpumon_gpu_info{job="gpumon",instance="n1:9124",gpu="0",uuid="A",name="NVIDIA H200",source="nvml"} 1
gpumon_gpu_info{job="gpumon",instance="n2:9124",gpu="0",uuid="B",name="NVIDIA H200",source="nvml"} 1
up{job="gpumon",instance="n1:9124"} 1
up{job="gpumon",instance="n2:9124"} 0
"#;
    let (_fake, reader) = start_reader(Behavior::Series(series)).await;
    let fleet = read_until(&reader, |fleet| {
        fleet.nodes.health.contains(&NodeHealth::Unreachable)
    })
    .await;
    assert_eq!(fleet.nodes.name, ["n1", "n2"]);
    assert!(
        fleet.nodes.unopenable.is_empty(),
        "{:?}",
        fleet.nodes.unopenable
    );
}

#[tokio::test]
async fn renamed_dcgm_metrics_are_converted() {
    let series = r#"
DCGM_FI_DEV_GPU_UTIL_RATIO{instance="x:9400",gpu="0",UUID="A",hostname="n1",modelName="NVIDIA H200"} 0.9
DCGM_FI_DEV_FB_USED_BYTES{instance="x:9400",gpu="0",UUID="A",hostname="n1",modelName="NVIDIA H200"} 5
"#;
    let (_fake, reader) = start_reader(Behavior::Series(series)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(fleet.nodes.name, ["n1"]);
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(90.0)]
    );
    assert_eq!(list_readings(&fleet, "memory.used_bytes"), [Some(5.0)]);
}

#[tokio::test]
async fn redundant_dcgm_exporter_is_not_queried() {
    let both = r#"
gpumon_gpu_up{job="g",instance="10.0.0.1:9124",gpu="0",uuid="A"} 1
gpumon_gpu_info{job="g",instance="10.0.0.1:9124",gpu="0",uuid="A",name="NVIDIA H200"} 1
gpumon_gpu_utilization_ratio{job="g",instance="10.0.0.1:9124",gpu="0",uuid="A"} 0.25
gpumon_gpu_memory_used_bytes{job="g",instance="10.0.0.1:9124",gpu="0",uuid="A"} 7
DCGM_FI_DEV_GPU_UTIL{job="d",instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200"} 90
DCGM_FI_DEV_FB_USED{job="d",instance="10.0.0.1:9400",gpu="0",UUID="A",Hostname="n1",modelName="NVIDIA H200"} 1
"#;
    let (fake, reader) = start_reader(Behavior::Series(both)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(fleet.nodes.name, ["10.0.0.1"]);
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(25.0)],
        "gpumon's own is what counts"
    );
    fake.take_queries();
    let read = fleet.at_ms;
    read_until(&reader, |fleet| fleet.at_ms > read).await;
    let queries = fake.take_queries();
    assert!(
        queries
            .iter()
            .any(|it| it.contains("gpumon_gpu_utilization_ratio")),
        "{queries:?}"
    );
    assert!(
        !queries.iter().any(|it| it.contains("DCGM_FI_DEV_GPU_UTIL")),
        "{queries:?}"
    );
}

#[tokio::test]
async fn gpu_scraped_by_several_jobs_counts_once() {
    let series = r#"
gpumon_gpu_up{job="a",instance="n1:1",gpu="0",uuid="A",replica="x"} 1
gpumon_gpu_info{job="a",instance="n1:1",gpu="0",uuid="A",replica="x",source="nvml"} 1
gpumon_gpu_info{job="a",instance="n1:1",gpu="0",uuid="A",replica="y",source="nvml"} 1
gpumon_gpu_info{job="b",instance="n1:2",gpu="0",uuid="A",replica="y",source="nvml"} 1
gpumon_gpu_power_watts{job="a",instance="n1:1",gpu="0",uuid="A",replica="x"} 100
gpumon_gpu_power_watts{job="b",instance="n1:2",gpu="0",uuid="A",replica="y"} 100
"#;
    let (_fake, reader) = start_reader(Behavior::Series(series)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        (
            fleet.nodes.name.len(),
            list_readings(&fleet, "power.draw_watts")
        ),
        (1, vec![Some(100.0)])
    );
}

#[tokio::test]
async fn untrusted_labels_are_cleaned_and_quoted() {
    let series = "gpumon_gpu_up{job=\"g\\\\\",instance=\"<b>\u{1b}[31m&:9124\",gpu=\"0\",uuid=\"A\"} \
                  1\ngpumon_gpu_up{job=\"g|.*\",instance=\"n:1\",gpu=\"-1\",uuid=\"A\"} \
                  1\ngpumon_gpu_utilization_ratio{job=\"g|.*\",instance=\"<b>\u{1b}[31m&:9124\",gpu=\"0\",uuid=\"A\"} \
                  1\ngpumon_gpu_utilization_ratio{job=\"g|.*\",instance=\"n:1\",gpu=\"99999999999\",uuid=\"A\"} \
                  1\ngpumon_gpu_utilization_ratio{job=\"g|.*\",instance=\"n:1\",gpu=\"0\",uuid=\"B\"} \
                  NaN\ngpumon_gpu_job_info{job=\"g\",instance=\"<b>\u{1b}[31m&:9124\",gpu=\"0\",uuid=\"A\",user=\"\u{202e}x\u{7}\"} \
                  1\n";
    let (fake, reader) = start_reader(Behavior::Series(series)).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        fleet.nodes.name,
        ["<b>\u{fffd}[31m&"],
        "as text, which a page shows as such"
    );
    assert_eq!(fleet.owners[0].user.as_deref(), Some("\u{fffd}x\u{fffd}"));
    let up = fake
        .take_queries()
        .into_iter()
        .find(|query| query.starts_with("up{"))
        .unwrap();
    assert_eq!(up, r#"up{job=~"g|g\\|\\.\\*|.*gpumon.*|.*dcgm.*"}"#);
}

#[tokio::test]
async fn configured_labels_select_series_and_name_nodes() {
    let series = r#"
gpumon_gpu_up{job="g",instance="10.0.0.1:1",gpu="0",uuid="A",machine="rack1"} 1
gpumon_gpu_utilization_ratio{job="g",instance="10.0.0.1:1",gpu="0",uuid="A",machine="rack1"} 1
"#;
    let fake = FakeServer::start(Behavior::Series(series)).await;
    let mut settings = settings_for(&fake);
    settings.labels = vec![("cluster".to_owned(), "a\"b".to_owned())];
    settings.node_label = Some("machine".to_owned());
    let reader = PrometheusReader::new(settings.clone()).unwrap();
    assert_eq!(reader.fetch_current_fleet().await.nodes.name, ["rack1"]);
    let queries = fake.take_queries();
    assert!(
        queries
            .iter()
            .all(|query| query.contains(r#"cluster="a\"b""#)),
        "{queries:?}"
    );
    settings.labels[0].0 = "a=\"b\"} or vector(1)".to_owned();
    assert!(
        PrometheusReader::new(settings)
            .err()
            .unwrap()
            .to_string()
            .contains("not a valid label name")
    );
}

#[tokio::test]
async fn large_fleet_lists_gpus_only_for_opened_node() {
    let series = r#"
gpumon_gpu_up{job="g",instance="n1:1",gpu="0",uuid="A"} 1
gpumon_gpu_up{job="g",instance="n1:1",gpu="1",uuid="B"} 1
gpumon_gpu_up{job="g",instance="n2:1",gpu="0",uuid="C"} 1
gpumon_gpu_utilization_ratio{job="g",instance="n1:1",gpu="0",uuid="A"} 0.5
gpumon_gpu_utilization_ratio{job="g",instance="n1:1",gpu="1",uuid="B"} 1
instance:gpumon_gpus:count{job="g",instance="n1:1"} 2
instance:gpumon_gpus:count{job="g",instance="n2:1"} 1
instance:gpumon_gpus_down:sum{job="g",instance="n1:1"} 0
instance:gpumon_gpus_down:sum{job="g",instance="n2:1"} 1
instance:gpumon_gpu_utilization_ratio:avg{job="g",instance="n1:1"} 0.75
instance:gpumon_gpu_info:count{job="g",instance="n1:1",name="NVIDIA H200"} 2
instance:gpumon_gpu_job_info:count{job="g",instance="n1:1",user="ana"} 2
up{job="g",instance="n1:1"} 1
up{job="g",instance="n2:1"} 1
"#;
    let fake = FakeServer::start(Behavior::Series(series)).await;
    let mut settings = settings_for(&fake);
    settings.gpus_most = 2;
    let reader = PrometheusReader::new(settings).unwrap();
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        (fleet.resolution, &fleet.nodes.gpus),
        (Resolution::Node, &vec![2, 1])
    );
    assert_eq!(fleet.gpus.node, [0, 1]);
    assert_eq!(
        list_readings(&fleet, "utilization.gpu_percent"),
        [Some(75.0), None]
    );
    assert_eq!(fleet.gpus.health, [GpuHealth::Ok, GpuHealth::NotResponding]);
    assert_eq!((fleet.owners.len(), fleet.holds.len()), (1, 1));
    assert!(
        fake.take_queries()
            .iter()
            .any(|query| query.contains("gpumon_gpu_up")),
        "no rule has counted them"
    );
    let node = reader.fetch_node("n1").await.unwrap();
    assert_eq!(
        (node.resolution, node.gpus.index.as_slice()),
        (Resolution::Gpu, [0, 1].as_slice())
    );
    assert!(
        fake.take_queries()
            .iter()
            .all(|query| query.contains(r#"instance=~"n1:1""#))
    );
    // No query counts the GPUs if a recording rule has already counted them.
    fake.add_answer("max(job:gpumon_gpus:count)", "x 3");
    let mut settings = super::settings_for(&fake);
    settings.gpus_most = 2;
    let counted = PrometheusReader::new(settings)
        .unwrap()
        .fetch_current_fleet()
        .await;
    assert_eq!(
        (counted.resolution, &counted.nodes, &counted.gpus),
        (Resolution::Node, &fleet.nodes, &fleet.gpus)
    );
    assert!(
        fake.take_queries()
            .iter()
            .all(|query| !query.contains("gpumon_gpu_up"))
    );
}

#[tokio::test]
async fn partial_answer_is_reported() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_warning("store 10.0.0.7 is down\u{1b}");
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(
        (fleet.state, fleet.gpus.index.len()),
        (FleetState::Partial, 3)
    );
    assert!(
        fleet.problems[0].contains("store 10.0.0.7 is down\u{fffd}"),
        "{:?}",
        fleet.problems
    );
}

#[tokio::test]
async fn prometheus_without_gpus_gets_advice() {
    let (fake, reader) = start_reader(Behavior::Series("up{job=\"node\"} 1")).await;
    let fleet = reader.fetch_current_fleet().await;
    assert_eq!(fleet.state, FleetState::Partial);
    assert!(
        fleet.problems[0].contains("Configure it to scrape gpumon"),
        "{:?}",
        fleet.problems
    );
    fake.set_behavior(Behavior::Series(GPUMON_SERIES));
    let read = fleet.at_ms;
    let anew = read_until(&reader, |fleet| fleet.at_ms > read).await;
    assert_eq!(anew.nodes.name.len(), 2, "it is looked for again at once");
    fake.set_behavior(Behavior::Raw(
        StatusCode::INTERNAL_SERVER_ERROR,
        "text/plain",
        "oops",
    ));
}
