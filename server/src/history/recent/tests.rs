use std::sync::LazyLock;

use gpumon_history::bucket::Device;
use gpumon_probe::{
    host::HostReader,
    model::{Absence, GpuSample, Health, HostSample, Reading},
};

use super::*;

fn make_sample(at_ms: u64, gpus: &[(&str, f64)]) -> Sample {
    static HOST: LazyLock<HostSample> = LazyLock::new(|| HostReader::new().read());
    let gpus = gpus.iter().zip(0..).map(|((uuid, watts), index)| {
        let mut gpu = GpuSample::new_absent(
            index,
            Some((*uuid).to_owned()),
            at_ms,
            Health::Ok,
            &Absence::NotSupported,
        );
        gpu.power.draw_watts = Reading::Now(*watts);
        gpu
    });
    Sample {
        seq: 0,
        at_ms,
        interval_ms: 1000,
        gpus: gpus.collect(),
        host: HOST.clone(),
    }
}

fn power_values<'a>(history: &'a History, uuid: &str) -> &'a [Option<f32>] {
    &history
        .gpus
        .iter()
        .find(|gpu| gpu.uuid == uuid)
        .unwrap()
        .metrics["power.draw_watts"]
}

#[test]
fn gpu_absence_is_a_gap_not_zero() {
    let mut store = RecentSamples::default();
    store.push(&make_sample(1_000, &[("a", 1.0)]));
    store.push(&make_sample(2_000, &[("a", 2.0), ("b", 9.0)]));
    store.push(&make_sample(3_000, &[("b", 8.0)]));
    let history = store.recent_history(u64::MAX, &MetricSelection::select_overview());
    assert_eq!(history.times_ms, [1_000, 2_000, 3_000]);
    assert_eq!(power_values(&history, "a"), [Some(1.0), Some(2.0), None]);
    assert_eq!(power_values(&history, "b"), [None, Some(9.0), Some(8.0)]);
}

#[test]
fn only_requested_metrics_are_returned() {
    let mut store = RecentSamples::default();
    for second in 0..100 {
        store.push(&make_sample(second * 1_000, &[("a", second as f64)]));
    }
    let (few, _) =
        MetricSelection::parse_names(["power.draw_watts", "host.memory.used_bytes"].into_iter());
    let history = store.recent_history(2_000, &few);
    assert_eq!(history.times_ms, [97_000, 98_000, 99_000]);
    assert_eq!(
        power_values(&history, "a"),
        [Some(97.0), Some(98.0), Some(99.0)]
    );
    assert_eq!(history.gpus[0].metrics.len(), 1);
    assert_eq!(
        (
            history.host.len(),
            history.host["host.memory.used_bytes"].len()
        ),
        (1, 3)
    );
    assert!(
        history.host["host.memory.used_bytes"]
            .iter()
            .all(|bytes| bytes.is_some_and(|bytes| bytes > 0.0))
    );
}

#[test]
fn overview_is_small_and_reports_unknown_metrics() {
    let mut store = RecentSamples::default();
    store.push(&make_sample(1_000, &[("a", 1.0)]));
    let overview = store.recent_history(u64::MAX, &MetricSelection::select_overview());
    assert_eq!(
        (overview.gpus[0].metrics.len(), overview.host.len()),
        (1, 0)
    );
    let (wanted, error) =
        MetricSelection::parse_names(["power.drwa", "power.draw_watts", "x"].into_iter());
    assert_eq!(
        power_values(&store.recent_history(u64::MAX, &wanted), "a"),
        [Some(1.0)]
    );
    let error = error.unwrap_err();
    assert!(
        error.contains("'power.drwa', 'x'") && error.contains("power.draw_watts"),
        "{error}"
    );
    assert!(error.contains("host.cpu.busy_percent"), "{error}");
}

#[test]
fn every_field_of_catalogue_is_kept() {
    let mut store = RecentSamples::default();
    let all: Vec<_> = GPU_FIELDS
        .iter()
        .map(|field| field.id)
        .chain(HOST_FIELDS.iter().map(|field| field.id))
        .collect();
    let (all, reported) = MetricSelection::parse_names(all.into_iter());
    assert_eq!(
        (
            reported,
            all.metrics_for(DeviceKind::Gpu).len(),
            all.metrics_for(DeviceKind::Host).len()
        ),
        (Ok(()), GPU_FIELDS.len(), HOST_FIELDS.len())
    );
    for second in 1..=700 {
        let mut sample = make_sample(second * 1_000, &[("a", 1.0)]);
        if (2..=3).contains(&second) {
            let energy = &mut sample.gpus[0].power.energy_joules_total;
            *energy = Reading::Now(123_456_700.0 + second as f64 * 8.0);
        }
        store.push(&sample);
        if second == 3 {
            let history = store.recent_history(u64::MAX, &all);
            let metrics = &history.gpus[0].metrics;
            assert_eq!(
                metrics.keys().collect::<Vec<_>>(),
                ["power.draw_watts", "power.energy_joules_total"]
            );
            let joules = [None, Some(123_456_716.0), Some(123_456_724.0)];
            assert_eq!(
                metrics["power.energy_joules_total"], joules,
                "all digits of a counter"
            );
            assert!(
                history.host.contains_key("host.memory.total_bytes"),
                "{:?}",
                history.host
            );
        }
    }
    assert_eq!(
        store.recent_history(u64::MAX, &all).gpus[0].metrics.len(),
        1,
        "nobody needs a column of nothing"
    );
}

#[test]
fn large_counter_keeps_small_increments() {
    let mut store = RecentSamples::default();
    for second in 1..=60 {
        let mut sample = make_sample(second * 1_000, &[("a", 700.0)]);
        sample.gpus[0].power.energy_joules_total = Reading::Now(1e10 + second as f64 * 700.0);
        store.push(&sample);
    }
    let (wanted, _) = MetricSelection::parse_names(["power.energy_joules_total"].into_iter());
    let mut grid = Grid::new(0, u64::MAX, 0, wanted);
    store.add_to_grid(&mut grid, 0);
    let span = grid.into_span(1000, |_| Device::default());
    let joules = &span.gpus[0].metrics["power.energy_joules_total"].values;
    let expected: Vec<_> = (1..=60)
        .map(|second| Some(1e10 + f64::from(second) * 700.0))
        .collect();
    assert_eq!(*joules, expected);
}

#[test]
fn restored_means_do_not_count_as_samples() {
    let mut earlier = RecentSamples::default();
    for second in 0..60 {
        earlier.push(&make_sample(1_000_000 + second * 1_000, &[("a", 5.0)]));
    }
    let mut grid = Grid::new(0, u64::MAX, 10_000, MetricSelection::select_all());
    earlier.add_to_grid(&mut grid, 0);
    let span = grid.into_span(10_000, |_| Device::default());
    let mut store = RecentSamples::default();
    let first_ms = 1_063_000;
    store.push(&make_sample(first_ms, &[("a", 7.0)]));
    store.restore(&span);
    let history = store.recent_history(u64::MAX, &MetricSelection::select_overview());
    assert_eq!(
        history.times_ms,
        [
            1_005_000, 1_015_000, 1_025_000, 1_035_000, 1_045_000, 1_055_000, first_ms
        ]
    );
    assert_eq!(
        (
            history.means,
            store
                .recent_history(20_000, &MetricSelection::select_overview())
                .means
        ),
        (6, 2)
    );
    assert_eq!(power_values(&history, "a")[5..], [Some(5.0), Some(7.0)]);
    assert_eq!(
        (store.time_range_ms(), store.sample_spacing_ms()),
        (Some((first_ms, first_ms)), 1000)
    );
    let mut grid = Grid::new(0, u64::MAX, 0, MetricSelection::select_overview());
    store.add_to_grid(&mut grid, 0);
    assert_eq!(
        grid.into_span(1000, |_| Device::default()).times_ms,
        [first_ms],
        "a span has it from the ten seconds"
    );
    store.push(&make_sample(
        1_005_000 + RETENTION_MS + 15_000,
        &[("a", 7.0)],
    ));
    assert_eq!(
        store
            .recent_history(u64::MAX, &MetricSelection::select_overview())
            .means,
        4
    );
}

#[test]
fn gauges_are_rounded_for_charts() {
    for (value, kept) in [
        (534.369, "534.4"),
        (137_742_436_693.0, "137700000000.0"),
        (99.996, "100.0"),
        (0.012_345_67, "0.01235"),
        (-7.0, "-7.0"),
        (0.0, "0.0"),
        (1980.0, "1980.0"),
    ] {
        let short = round_gauge(Kind::Gauge, value) as f32;
        assert_eq!(serde_json::to_string(&short).unwrap(), kept);
    }
    assert!(
        round_gauge(Kind::Gauge, f64::NAN).is_nan(),
        "no number is none"
    );
}

#[test]
fn samples_are_limited_in_time_and_density() {
    let mut store = RecentSamples::default();
    for tick in 0..10_000 {
        store.push(&make_sample(tick * 100, &[("a", tick as f64)]));
    }
    let history = store.recent_history(u64::MAX, &MetricSelection::select_overview());
    assert!(history.times_ms.len() <= 668, "{}", history.times_ms.len());
    assert!(history.times_ms[0] >= 999_900 - RETENTION_MS);
    assert_eq!(power_values(&history, "a").len(), history.times_ms.len());
}

#[test]
fn clock_set_back_does_not_stop_recording() {
    let mut store = RecentSamples::default();
    for at_ms in [1_000_000, 1_001_000, 1_002_000, 501_000, 502_000] {
        store.push(&make_sample(at_ms, &[("a", at_ms as f64)]));
    }
    let history = store.recent_history(u64::MAX, &MetricSelection::select_overview());
    assert_eq!(history.times_ms, [501_000, 502_000]);
    assert_eq!(
        power_values(&history, "a"),
        [Some(501_000.0), Some(502_000.0)]
    );
}

#[test]
fn repeated_readings_of_hung_gpu_leave_gap() {
    let mut store = RecentSamples::default();
    let mut hung = make_sample(10_000, &[("a", 5.0)]);
    hung.gpus[0].at_ms = 1_000;
    store.push(&make_sample(1_000, &[("a", 5.0)]));
    store.push(&hung);
    assert_eq!(
        power_values(
            &store.recent_history(u64::MAX, &MetricSelection::select_overview()),
            "a"
        ),
        [Some(5.0), None]
    );
}

#[test]
fn averaged_rate_fills_its_measured_period_except_gaps() {
    let store = |gap: Option<u64>| {
        let mut store = RecentSamples::default();
        for second in 1..=10_u64 {
            let mut sample = make_sample(second * 1000, &[("a", 1.0)]);
            let gpu = &mut sample.gpus[0];
            let read = |earlier, now| {
                if second == 10 {
                    Reading::Now(now)
                } else {
                    Reading::Now(earlier).with_time(500)
                }
            };
            (gpu.pcie.tx_bytes_per_second, gpu.temperature.margin_celsius) =
                (read(9e6, 2e6), read(50.0, 40.0));
            if gap == Some(second) {
                gpu.at_ms = 0;
                sample.interval_ms = 100;
            }
            store.push(&sample);
        }
        let (wanted, _) = MetricSelection::parse_names(
            ["pcie.tx_bytes_per_second", "temperature.margin_celsius"].into_iter(),
        );
        let history = store.recent_history(u64::MAX, &wanted);
        ["pcie.tx_bytes_per_second", "temperature.margin_celsius"]
            .map(|id| history.gpus[0].metrics[id].clone())
    };
    let [rate, margin] = store(None);
    assert_eq!(rate, [Some(2e6); 10]);
    assert_eq!(margin[8..], [Some(50.0), Some(40.0)], "it was so then");
    let [rate, _] = store(Some(4));
    assert_eq!((rate[2], rate[3], rate[4]), (Some(2e6), None, Some(2e6)));
}
