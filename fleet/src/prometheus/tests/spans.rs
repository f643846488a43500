//! Tests of time range queries, with and without recorded sums.

use serde_json::json;

use super::{Behavior, GPUMON_SERIES, start_reader};
use crate::{
    FleetReader, Range,
    model::{FleetEventKind, FleetState, OwnerKind},
};

fn one_day() -> Range {
    Range::new(86_400).unwrap()
}

const RECORDED: &str = r#"x{user="ana",slurm_job="7"} 3600
x{user="bo"} 100
x{user="0",pod_uid="u-1"} 50"#;

#[tokio::test]
async fn recorded_usage_is_added_up() {
    let series = r#"
gpumon_gpu_up{job="g",instance="n1:1",gpu="0",uuid="A"} 1
gpumon_gpu_job_info{job="g",instance="n1:1",gpu="0",uuid="A",user="0",pod="train-0",namespace="ml",pod_uid="u-1"} 1
"#;
    let (fake, reader) = start_reader(Behavior::Series(series)).await;
    fake.add_answer("count_over_time(job:gpumon_unheld", "x 96");
    fake.add_answer(
        "owner:gpumon_owner_nodes",
        "x{user=\"ana\",slurm_job=\"7\"} 2",
    );
    fake.add_answer("owner:", RECORDED);
    fake.add_answer("job:gpumon_unheld_gpu_seconds", "x 1000");
    fake.add_answer("job:gpumon_unheld_energy", "x 50");
    let usage = reader.fetch_usage(one_day()).await.unwrap();
    assert_eq!(
        (usage.state, &usage.problems),
        (FleetState::Current, &vec![])
    );
    let owners: Vec<_> = usage
        .owners
        .iter()
        .map(|it| (it.owner.kind, it.owner.id.as_str(), it.gpu_s, it.nodes))
        .collect();
    let pod = (OwnerKind::Pod, "train-0", Some(50.0), 0);
    assert_eq!(
        owners,
        [
            (OwnerKind::SlurmJob, "7", Some(3600.0), 2),
            (OwnerKind::User, "", Some(100.0), 0),
            pod
        ]
    );
    assert_eq!(
        (usage.unheld_gpu_s, usage.unheld_energy_joules),
        (Some(1000.0), Some(50.0))
    );
    assert_eq!((usage.energy_joules, usage.owners_total), (Some(3800.0), 3));
    assert_eq!(usage.to_ms - usage.from_ms, 86_400_000);
    assert!(
        !fake
            .take_queries()
            .iter()
            .any(|query| query.contains("gpumon_owner_gpu_seconds_total"))
    );
}

/// Returns a thousand jobs of two users, in descending order of usage.
fn make_series_of_many_jobs() -> &'static str {
    let line = |job: u32| {
        format!(
            "x{{user=\"u{}\",slurm_job=\"{job}\"}} {}\n",
            job % 2,
            2000 - job
        )
    };
    Box::leak((0..1000).map(line).collect::<String>().into_boxed_str())
}

#[tokio::test]
async fn user_sums_are_complete_despite_job_limit() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer("count_over_time(job:gpumon_unheld", "x 96");
    fake.add_answer(
        "sum by (user) (",
        "x{user=\"u0\"} 800000\nx{user=\"u1\"} 700000",
    );
    fake.add_answer("notebook!=", "x{user=\"u0\",notebook=\"k\"} 50000");
    fake.add_answer("owner:", make_series_of_many_jobs());
    let usage = serde_json::to_value(&*reader.fetch_usage(one_day()).await.unwrap()).unwrap();
    let users: Vec<_> = usage["users"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|user| (&user["name"], &user["energy_joules"]))
        .collect();
    assert_eq!(usage["unlisted"]["owners"], 500, "{usage}");
    assert_eq!(
        users,
        [
            (&json!("u0"), &json!(800_000.0)),
            (&json!("u1"), &json!(700_000.0))
        ],
        "{usage}"
    );
}

#[tokio::test]
async fn usage_without_namespace_is_summed_separately() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer("count_over_time(job:gpumon_unheld", "x 96");
    fake.add_answer("sum by (user) (", "x{user=\"0\"} 100");
    fake.add_answer(
        "group_left (namespace)",
        "x{namespace=\"ml\"} 60\nx{namespace=\"web\"} 30",
    );
    fake.add_answer("notebook!=", "");
    fake.add_answer(
        "owner:",
        "x{user=\"0\",pod_uid=\"u-1\"} 70\nx{user=\"0\",pod_uid=\"u-2\"} 30",
    );
    let usage = reader.fetch_usage(one_day()).await.unwrap();
    let sums: Vec<_> = usage
        .namespaces
        .iter()
        .map(|it| (it.name.as_deref(), it.gpu_s, it.energy_joules))
        .collect();
    let near = |value: Option<f64>, expected: f64| {
        value.is_some_and(|value| (value - expected).abs() < 1e-9)
    };
    assert_eq!(
        sums.iter().map(|it| it.0).collect::<Vec<_>>(),
        [Some("ml"), Some("web"), None],
        "{sums:?}"
    );
    assert!(
        near(sums[0].1, 60.0) && near(sums[1].2, 30.0) && near(sums[2].1, 10.0),
        "{sums:?}"
    );
    let queries = fake.take_queries();
    let joined = queries
        .iter()
        .find(|query| query.contains("group_left (namespace)"))
        .unwrap();
    assert!(
        joined.starts_with("sum by (namespace) (")
            && joined.contains("gpumon_gpu_job_info{pod_uid!="),
        "{joined}"
    );
}

#[tokio::test]
async fn usage_is_partial_if_nodes_have_gaps() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer("count_over_time(job:gpumon_unheld", "x 95");
    fake.add_answer("resets(gpumon_unheld", "x 3");
    fake.add_answer("gpumon_owners_omitted", "x 2");
    fake.add_answer("owner:", RECORDED);
    let usage = reader.fetch_usage(one_day()).await.unwrap();
    assert_eq!(usage.state, FleetState::Partial);
    let problems = usage.problems.join("\n");
    for words in [
        "have recorded only 95 of 96 quarter-hour intervals",
        "3 nodes restarted gpumon or were not scraped",
        "2 nodes have had more than 500 owners",
    ] {
        assert!(problems.contains(words), "{words}: {problems}");
    }
}

#[tokio::test]
async fn usage_without_recording_rules_is_computed_from_counters() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer(
        "count(gpumon_unheld_gpu_seconds_total < gpumon_unheld",
        "x 2",
    );
    fake.add_answer("count(gpumon_unheld_gpu_seconds_total unless", "x 1");
    fake.add_answer("count(gpumon_unheld_gpu_seconds_total offset 86400s", "x 1");
    fake.add_answer("count(gpumon_unheld_gpu_seconds_total", "x 10");
    fake.add_answer("gpumon_owner_gpu_seconds_total", "x{user=\"ana\"} 60");
    let usage = reader.fetch_usage(one_day()).await.unwrap();
    assert_eq!(
        (usage.owners[0].gpu_s, usage.owners[0].nodes),
        (Some(60.0), 60)
    );
    assert_eq!(
        (usage.owners[0].energy_joules, usage.energy_joules),
        (None, None)
    );
    assert_eq!(usage.state, FleetState::Partial);
    let problems = usage.problems.join("\n");
    for words in [
        "2 nodes restarted gpumon; their usage",
        "1 node was not scraped",
        "left out. Load deploy/prometheus/fleet.yml",
        "less than 24.0 h of data from most nodes; the usage shown covers only the last 12.0 h",
    ] {
        assert!(problems.contains(words), "{words}: {problems}");
    }
    assert_eq!(usage.to_ms - usage.from_ms, 43_200_000);
    let queries = fake.take_queries();
    let increase = queries
        .iter()
        .find(|query| query.starts_with("sum by (user") && query.contains("owner_gpu_seconds"));
    assert!(
        increase.unwrap().contains("offset 43200s) >= 0"),
        "{queries:?}"
    );
}

#[tokio::test]
async fn recently_loaded_rules_are_not_recommended_again() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer("count(gpumon_unheld_gpu_seconds_total unless", "x 1");
    fake.add_answer("count(instance:gpumon_gpus:count)", "x 10");
    for (range, words) in [
        (one_day(), "does not cover the whole time range yet"),
        (Range::new(3600).unwrap(), "a range of 6 h or more"),
    ] {
        let problems = reader.fetch_usage(range).await.unwrap().problems.join("\n");
        assert!(
            problems.contains(words) && !problems.contains("Load"),
            "{words}: {problems}"
        );
    }
}

#[tokio::test]
async fn pod_usage_is_computed_from_dcgm_samples() {
    let series = r#"
DCGM_FI_DEV_GPU_UTIL{instance="a:9400",gpu="0",Hostname="n1"} 50
DCGM_FI_DEV_POWER_USAGE{instance="a:9400",gpu="0",Hostname="n1"} 100
"#;
    let (fake, reader) = start_reader(Behavior::Series(series)).await;
    let used = "x{pod=\"train\",namespace=\"ml\",Hostname=\"n1\"} \
                900\nx{pod=\"train\",namespace=\"ml\",Hostname=\"n2\"} 100\nx 7";
    fake.add_answer("_over_time(", used);
    let usage = reader.fetch_usage(one_day()).await.unwrap();
    let train = &usage.owners[0];
    assert_eq!(
        (train.owner.id.as_str(), train.gpu_s, train.nodes),
        ("train", Some(1000.0), 2)
    );
    assert_eq!(
        (usage.unheld_gpu_s, usage.energy_joules),
        (Some(7.0), Some(1007.0))
    );
    let queries = fake.take_queries();
    assert!(
        queries
            .iter()
            .any(|it| it.contains("(DCGM_FI_DEV_GPU_UTIL * 0.01)[86400s:900s]")),
        "{queries:?}"
    );
}

#[tokio::test]
async fn events_include_xids_lost_gpus_and_unreachable_nodes() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    fake.add_answer(
        "gpumon_gpu_xid_errors_total",
        "x{instance=\"n2:9124\",gpu=\"0\",code=\"94\"} \
         3\nx{instance=\"old:1\",gpu=\"0\",code=\"13\"} 1",
    );
    fake.add_answer(
        "min_over_time(up",
        "up{instance=\"n10:9124\"} 0\nup{instance=\"n11:9124\"} 0",
    );
    // This is the response to the instant query for ongoing events.
    fake.add_answer("\"} == 0", "up{instance=\"n11:9124\"} 0");
    let events = reader.fetch_events(one_day()).await.unwrap();
    let reported: Vec<_> = events
        .events
        .iter()
        .map(|it| {
            (
                it.node.as_str(),
                it.gpu,
                it.kind,
                it.xid,
                it.count,
                it.lasts,
            )
        })
        .collect();
    for event in [
        ("n2", Some(0), FleetEventKind::Xid, Some(94), 3, false),
        ("old", Some(0), FleetEventKind::Xid, Some(13), 1, false),
        ("n2", Some(1), FleetEventKind::Xid, Some(79), 1, true),
        (
            "n2",
            Some(1),
            FleetEventKind::GpuNotResponding,
            None,
            1,
            true,
        ),
        ("n10", None, FleetEventKind::NodeUnreachable, None, 1, false),
        ("n11", None, FleetEventKind::NodeUnreachable, None, 1, true),
    ] {
        assert!(reported.contains(&event), "{event:?}: {reported:?}");
    }
    assert_eq!((reported.len(), events.events_total), (6, 6));
    assert!(
        reported.is_sorted_by_key(|event| !event.5),
        "what lasts is first: {reported:?}"
    );
}

#[tokio::test]
async fn only_fleet_history_uses_recording_rules() {
    let (fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    let all = reader
        .fetch_history(Range::new(3600).unwrap(), None)
        .await
        .unwrap();
    assert_eq!((all.node.as_deref(), all.at_ms.len()), (None, 121));
    assert_eq!(all.at_ms[1] - all.at_ms[0], 30_000);
    let value = |id: &str| {
        all.series
            .iter()
            .find(|it| it.id == id)
            .unwrap()
            .values
            .iter()
            .flatten()
            .copied()
            .next()
    };
    // The fake server does not add up values, so each sum equals a single value.
    assert_eq!(
        (
            value("gpus"),
            value("memory.used_bytes"),
            value("power.draw_watts")
        ),
        (Some(1.0), Some(1e10), None)
    );
    let queries = fake.take_queries();
    assert!(
        queries
            .iter()
            .any(|it| it.contains("job:gpumon_gpus:count")),
        "{queries:?}"
    );
    assert!(
        queries.iter().any(|it| it == "count(gpumon_gpu_up)"),
        "{queries:?}"
    );
    let node = reader
        .fetch_history(Range::new(3600).unwrap(), Some("n2"))
        .await
        .unwrap();
    assert_eq!(node.node.as_deref(), Some("n2"));
    let queries = fake.take_queries();
    assert!(
        queries
            .iter()
            .all(|it| it.contains(r#"instance=~"n2:9124""#)),
        "{queries:?}"
    );
    assert!(reader.fetch_history(one_day(), Some("n3")).await.is_err());
}

#[tokio::test]
async fn history_of_time_range_is_cached_between_requests() {
    let (_fake, reader) = start_reader(Behavior::Series(GPUMON_SERIES)).await;
    let range = Range::new(900).unwrap();
    let [first, second] = [
        reader.fetch_history(range, None).await.unwrap(),
        reader.fetch_history(range, None).await.unwrap(),
    ];
    assert!(std::sync::Arc::ptr_eq(&first, &second));
}
