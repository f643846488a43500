//! The metrics for Prometheus at `/metrics`.

use std::time::{Duration, Instant};

use crate::support::{FakeNvml, Server, send_signal, wait_for_condition};

/// Returns the value of a series, for example `name{label="value"}`.
fn series_value(page: &str, series: &str) -> Option<f64> {
    page.lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn every_gpu_has_metrics_in_both_naming_schemes() {
    let fake = FakeNvml::new(
        "gpus = 2\n[[gpu]]\nindex = 1\nutilization_percent = 80\npower_watts = 500\n",
    );
    let server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let answer = server.get("/metrics");
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    let snapshot = server.get("/api/v1/snapshot").json();
    let uuid = snapshot["sample"]["gpus"][1]["uuid"].as_str().unwrap();
    let labels = format!("{{gpu=\"1\",uuid=\"{uuid}\"}}");
    let page = answer.body;
    assert_eq!(
        series_value(&page, &format!("gpumon_gpu_up{labels}")),
        Some(1.0),
        "{page}"
    );
    assert_eq!(
        series_value(&page, &format!("gpumon_gpu_utilization_ratio{labels}")),
        Some(0.8)
    );
    assert_eq!(
        series_value(&page, &format!("gpumon_gpu_power_watts{labels}")),
        Some(500.0)
    );
    assert!(!page.contains("pid="));
    for path in ["/metrics/dcgm", "/metrics?format=dcgm"] {
        let page = server.get(path).body;
        let utilization = page
            .lines()
            .filter(|line| line.starts_with("DCGM_FI_DEV_GPU_UTIL{"))
            .collect::<Vec<_>>();
        assert_eq!(utilization.len(), 2, "{page}");
        assert!(
            utilization[1].contains(&format!("UUID=\"{uuid}\""))
                && utilization[1].ends_with("} 80")
        );
    }
    for path in ["/metrics/dcgm-4.9", "/metrics?format=dcgm-4.9"] {
        let page = server.get(path).body;
        let utilization = page
            .lines()
            .filter(|line| line.starts_with("DCGM_FI_DEV_GPU_UTIL_RATIO{"))
            .nth(1)
            .unwrap();
        assert!(
            utilization.contains(",hostname=\"") && utilization.ends_with("} 0.8"),
            "{page}"
        );
    }
    for path in [
        "/metrics?format=json",
        "/metrics?links=maybe",
        "/metrics?link=true",
    ] {
        let refused = server.get(path);
        assert_eq!(refused.status, 400);
        assert!(
            refused.body.contains("dcgm-4.9, and links=true or false"),
            "{}",
            refused.body
        );
    }
}

#[test]
fn xid_starts_condition_and_is_counted_by_code() {
    let fake = FakeNvml::new("gpus = 2\n[[event]]\ngpu = 1\nat_s = 3\nkind = \"xid\"\ncode = 31\n");
    let server = Server::start_with_fake(&fake, &[]);
    wait_for_condition("the server is ready", || {
        server.get("/readyz").status == 200
    });
    let series = |name: &str, of: &str| {
        let page = server.get("/metrics").body;
        page.lines()
            .find(|line| line.starts_with(name) && line.contains(of))
            .and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    let of_gpu = |gpu: u32| {
        series(
            &format!("gpumon_condition{{gpu=\"{gpu}\""),
            "condition=\"xid\"",
        )
    };
    wait_for_condition("the Xid is counted", || {
        series("gpumon_gpu_xid_errors_total", "code=\"31\"") == Some(1.0)
    });
    wait_for_condition("the Xid is a condition", || of_gpu(1) == Some(1.0));
    assert_eq!(
        (series("gpumon_gpu_xid{", "code=\"31\""), of_gpu(0)),
        (Some(1.0), Some(0.0))
    );
}

#[test]
fn time_of_limiting_causes_is_counted_across_collectors() {
    let fake = FakeNvml::new(
        "gpus = 2\ngpu = [{ index = 1, gpm = false }]\nprocess = [{ gpu = 0, pid = 5000001, \
         sm_percent = 20, workers = 2 }, { gpu = 1, pid = 5000002, sm_percent = 90 }]\n",
    );
    let begun = Instant::now();
    let server = Server::start_simulated(&fake, &["--interval-ms", "250"]);
    // Returns the time of each cause on a GPU, in seconds.
    let read_seconds = |gpu: u32| -> Vec<(String, f64)> {
        let page = server.get("/metrics").body;
        let start = format!("gpumon_gpu_limited_seconds_total{{gpu=\"{gpu}\",");
        let lines = page.lines().filter(|line| line.starts_with(&start));
        let parse = |line: &str| {
            let (_, cause) = line.split_once("cause=\"")?;
            let (cause, seconds) = cause.split_once("\"} ")?;
            Some((cause.to_owned(), seconds.parse().ok()?))
        };
        lines.map(|line| parse(line).unwrap()).collect()
    };
    let sum = |seconds: &[(String, f64)]| seconds.iter().map(|(_, seconds)| seconds).sum::<f64>();
    wait_for_condition("the first window has ended", || sum(&read_seconds(0)) > 0.0);
    let first = read_seconds(0);
    assert_eq!(first.len(), 12, "{first:?}");

    send_signal("-KILL", server.collector_pid().expect("a collector runs"));
    let mut last = first;
    let second = sum(&last) + 3.0;
    wait_for_condition("a new collector's windows are counted", || {
        let seconds = read_seconds(0);
        let pairs = seconds.iter().zip(&last);
        assert!(
            pairs
                .clone()
                .all(|(new, old)| new.0 == old.0 && new.1 >= old.1)
                && pairs.count() == 12,
            "{last:?}, {seconds:?}"
        );
        last = seconds;
        sum(&last) > second
    });
    let elapsed = begun.elapsed().as_secs_f64();
    assert!(sum(&last) <= elapsed, "{elapsed}: {last:?}");
    let largest = last.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    assert_eq!(largest.unwrap().0, "host", "{last:?}");

    // Without hardware counters, five causes cannot be distinguished.
    let without_counters = read_seconds(1);
    assert!(
        without_counters.len() == 7 && without_counters.iter().any(|it| it.0 == "unknown"),
        "{without_counters:?}"
    );
}

#[test]
fn link_metrics_are_served_only_on_request() {
    let fake = FakeNvml::new("gpus = 1\n[[gpu]]\nindex = 0\nnvlinks = 6\nnvlinks_down = [2]\n");
    let server = Server::start_with_fake(&fake, &[]);
    let count = |path: &str, start: &str| {
        server
            .get(path)
            .body
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    wait_for_condition("the links were read", || {
        count("/metrics?links=true", "gpumon_nvlink_up{") == 6
    });
    assert_eq!(count("/metrics", "gpumon_nvlink_"), 0);
    assert_eq!(count("/metrics?links=false", "gpumon_nvlink_"), 0);
    let page = server.get("/metrics").body;
    let down = page
        .lines()
        .find(|line| line.starts_with("gpumon_gpu_nvlinks{") && line.contains("state=\"down\""));
    assert!(down.is_some_and(|line| line.ends_with(" 1")), "{page}");
}

#[test]
fn hanging_gpu_is_down_without_delaying_response() {
    let fake = FakeNvml::new("gpus = 2\n[[fault]]\ngpu = 1\nkind = \"hang\"\nfrom_s = 3\n");
    let server = Server::start_with_fake(&fake, &["--interval-ms", "250"]);
    let up = |index: u32| {
        let page = server.get("/metrics").body;
        page.lines()
            .find(|line| line.starts_with(&format!("gpumon_gpu_up{{gpu=\"{index}\"")))
            .map(|line| line.ends_with(" 1"))
    };
    wait_for_condition("both GPUs are up", || {
        up(0) == Some(true) && up(1) == Some(true)
    });
    wait_for_condition("one GPU is down", || up(1) == Some(false));
    let answers = (0..20).map(|_| {
        let begun = Instant::now();
        let page = server.get("/metrics").body;
        let of_hung = page.lines().filter(|line| line.contains("gpu=\"1\""));
        assert!(
            of_hung
                .clone()
                .any(|line| line.ends_with("state=\"hung\"} 1")),
            "{page}"
        );
        assert_eq!(
            of_hung
                .filter(|line| line.starts_with("gpumon_gpu_memory"))
                .count(),
            0,
            "{page}"
        );
        assert!(page.contains("gpumon_gpu_memory_used_bytes{gpu=\"0\""));
        begun.elapsed()
    });
    let fastest = answers.min().unwrap();
    assert!(
        fastest < Duration::from_millis(50),
        "/metrics took {fastest:?}"
    );
}

#[test]
fn process_metrics_are_served_only_if_enabled() {
    let fake = FakeNvml::new("gpus = 1\n[[process]]\ngpu = 0\npid = 1\nmemory = \"2 GiB\"\n");
    let without = Server::start_with_fake(&fake, &["--no-control"]);
    wait_for_condition("the server is ready", || {
        without.get("/readyz").status == 200
    });
    assert!(!without.get("/metrics").body.contains("gpumon_process_"));
    let with = Server::start_with_fake(&fake, &["--metrics-processes"]);
    wait_for_condition("the server is ready", || with.get("/readyz").status == 200);
    let page = with.get("/metrics").body;
    let process = page
        .lines()
        .find(|line| line.starts_with("gpumon_process_memory_bytes{"))
        .expect(&page);
    assert!(
        process.contains("pid=\"1\"") && process.ends_with(" 2147483648"),
        "{process}"
    );
}
