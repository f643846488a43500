//! Tests of gaps, of reducing the resolution, and of the stability of lines.

use gpumon_history::span::{DeviceSpan, HistorySpan, Series};
use gpumon_probe::model::Reading;

use super::*;
use crate::top::{metrics::find_metric_position, testing::simulated_sample};

fn power_line() -> ChartLine {
    ChartLine::Gpu(0, find_metric_position("power").unwrap())
}

fn make_sample(at_ms: u64, watts: Option<f64>) -> Sample {
    let mut sample = simulated_sample(1);
    sample.at_ms = at_ms;
    sample.interval_ms = 1000;
    sample.gpus[0].at_ms = at_ms;
    sample.gpus[0].power.draw_watts = watts.map_or(
        Reading::Absent(gpumon_probe::model::Absence::GpuLost),
        Reading::Now,
    );
    sample
}

fn make_window(end_ms: u64, span_s: u64, columns: usize) -> Window {
    Window {
        end_ms,
        span_ms: span_s * 1000,
        columns,
    }
}

#[test]
fn missing_data_leaves_gap_in_line() {
    let mut history = History::default();
    for second in 1..=20 {
        let absent = (5..=8).contains(&second);
        if second != 15 && second != 16 && second != 17 {
            history.push(&make_sample(
                second * 1000,
                (!absent).then_some(second as f64),
            ));
        }
    }
    let values = history.read_line_values(power_line(), make_window(20_000, 20, 20));
    for second in 1..=20_u64 {
        let value = values[second as usize - 1];
        let is_gap = (5..=8).contains(&second) || (15..=17).contains(&second);
        assert_eq!(value.is_none(), is_gap, "second {second}: {values:?}");
    }
}

#[test]
fn columns_between_samples_are_interpolated() {
    let mut history = History::default();
    history.push(&make_sample(1000, Some(0.0)));
    history.push(&make_sample(2000, Some(10.0)));
    let values = history.read_line_values(power_line(), make_window(2000, 2, 20));
    assert_eq!(values[9], Some(0.0));
    assert_eq!(values[14], Some(5.0));
    assert_eq!(values[19], Some(10.0));
}

#[test]
fn chart_line_scrolls_by_whole_columns() {
    let mut history = History::default();
    for second in 0..200_u64 {
        history.push(&make_sample(
            second * 1000 + 137,
            Some((second * 7919 % 101) as f64),
        ));
    }
    let before = history.read_line_values(power_line(), make_window(190_000, 60, 25));
    let after = history.read_line_values(power_line(), make_window(190_000 + 2400, 60, 25));
    assert_eq!(before[1..], after[..24]);
}

#[test]
fn history_keeps_one_hour_in_bounded_rows() {
    let mut history = History::default();
    for tick in 0..80 * 600_u64 {
        history.push(&make_sample(tick * 100, Some((tick / 600) as f64)));
    }
    let end = 80 * 60_000;
    let rows = history.fine.time_points().len() + history.coarse.time_points().len();
    assert!(rows < 1700, "{rows}");
    let hour = history.read_line_values(power_line(), make_window(end, 3600, 60));
    assert_eq!(
        hour.iter().filter(|value| value.is_none()).count(),
        0,
        "{hour:?}"
    );
    assert!(
        (hour[0].unwrap() - 20.0).abs() <= 1.0 && (hour[59].unwrap() - 79.0).abs() < 0.1,
        "{hour:?}"
    );
}

#[test]
fn history_continues_after_clock_is_set_back() {
    let mut history = History::default();
    for at_ms in [1_000_000, 1_001_000, 501_000, 502_000] {
        history.push(&make_sample(at_ms, Some(at_ms as f64)));
    }
    assert_eq!(
        history.read_line_values(power_line(), make_window(502_000, 2, 2)),
        [Some(501_000.0), Some(502_000.0)]
    );
}

#[test]
fn server_history_precedes_first_sample() {
    let mut history = History::default();
    let metrics = [(
        "power.draw_watts".to_owned(),
        vec![Some(1.0), None, Some(3.0)],
    )]
    .into();
    let past = frame::History {
        times_ms: vec![1000, 2000, 3000],
        gpus: vec![frame::GpuHistory {
            uuid: "a".into(),
            metrics,
            holders: Vec::new(),
        }],
        ..frame::History::default()
    };
    history.add_server_history(&past, 1000, |uuid| (uuid == "a").then_some(0));
    history.push(&make_sample(4000, Some(4.0)));
    assert_eq!(
        history.read_line_values(power_line(), make_window(4000, 4, 4)),
        [Some(1.0), None, Some(3.0), Some(4.0)]
    );
    assert_eq!(
        history.read_line_values(ChartLine::Host(0), make_window(3000, 3, 3)),
        [None, None, None]
    );
    // After a server has restarted, its history is shorter than the screen's history.
    history.add_server_history(&past, 1000, |_| Some(0));
    assert_eq!(
        history.read_line_values(power_line(), make_window(4000, 4, 4)),
        [Some(1.0), None, Some(3.0), Some(4.0)]
    );
}

#[test]
fn line_continues_from_history_of_earlier_server() {
    let mut history = History::default();
    let metrics = [(
        "power.draw_watts".to_owned(),
        [5.0, 15.0, 25.0, 33.0].map(Some).to_vec(),
    )]
    .into();
    let past = frame::History {
        times_ms: vec![5_000, 15_000, 25_000, 33_000],
        means: 3,
        gpus: vec![frame::GpuHistory {
            uuid: "a".into(),
            metrics,
            holders: Vec::new(),
        }],
        ..frame::History::default()
    };
    history.add_server_history(&past, 1000, |_| Some(0));
    history.push(&make_sample(34_000, Some(34.0)));
    let values = history.read_line_values(power_line(), make_window(34_000, 28, 28));
    assert!(values[1..].iter().all(Option::is_some), "{values:?}");
    // If no values arrive for a while after the last mean, the line still has a gap.
    history.push(&make_sample(40_000, Some(40.0)));
    assert_eq!(
        history.read_line_values(power_line(), make_window(40_000, 6, 6))[..5],
        [None; 5]
    );
}

#[test]
fn later_server_readings_are_merged_by_time() {
    let mut history = History::default();
    history.push(&make_sample(2000, Some(2.0)));
    history.push(&make_sample(4000, Some(4.0)));
    let past = frame::History {
        times_ms: vec![1000, 2000, 3000],
        gpus: vec![frame::GpuHistory {
            uuid: "a".into(),
            metrics: [(
                "clocks.sm_mhz".to_owned(),
                vec![Some(100.0), Some(200.0), None],
            )]
            .into(),
            holders: Vec::new(),
        }],
        host: [(
            "host.cpu.busy_percent".to_owned(),
            vec![Some(7.0), Some(8.0), Some(9.0)],
        )]
        .into(),
        ..frame::History::default()
    };
    history.add_server_history(&past, 1000, |_| Some(0));
    let clock = ChartLine::Gpu(
        0,
        METRICS
            .iter()
            .position(|metric| metric.id == "clocks.sm_mhz")
            .unwrap(),
    );
    let cpu = ChartLine::Host(
        HOST_METRICS
            .iter()
            .position(|metric| metric.id == "host.cpu.busy_percent")
            .unwrap(),
    );
    assert_eq!(
        history.read_line_values(clock, make_window(3000, 3, 3)),
        [Some(100.0), Some(200.0), None]
    );
    assert_eq!(
        history.read_line_values(cpu, make_window(3000, 3, 3)),
        [Some(7.0), Some(8.0), Some(9.0)]
    );
    assert_eq!(
        history.read_line_values(power_line(), make_window(2000, 1, 1)),
        [Some(2.0)]
    );
    assert_eq!(
        history.read_line_values(power_line(), make_window(4000, 1, 1)),
        [Some(4.0)]
    );
}

#[test]
fn extreme_times_are_handled() {
    let mut history = History::default();
    for at_ms in [
        u64::MAX - 20_000,
        u64::MAX - 1000,
        u64::MAX,
        u64::MAX,
        5,
        u64::MAX,
    ] {
        let mut sample = make_sample(at_ms, Some(7.0));
        sample.interval_ms = u32::MAX;
        history.push(&sample);
        let values = history.read_line_values(power_line(), make_window(at_ms, 3600, 200));
        assert_eq!(values.len(), 200);
    }
    let past = frame::History {
        times_ms: vec![9, 3, u64::MAX],
        gpus: Vec::new(),
        ..frame::History::default()
    };
    history.add_server_history(&past, u32::MAX, |_| None);
    assert_eq!(
        history
            .read_line_values(power_line(), make_window(u64::MAX, 60, 10))
            .len(),
        10
    );
}

#[test]
fn impossible_gpu_index_is_ignored() {
    let mut history = History::default();
    let mut sample = make_sample(1000, Some(7.0));
    let mut stranger = sample.gpus[0].clone();
    stranger.index = u32::MAX;
    sample.gpus.push(stranger);
    history.push(&sample);
    assert_eq!(
        history.read_line_values(power_line(), make_window(1000, 1, 1)),
        [Some(7.0)]
    );
    assert_eq!(
        history.read_line_values(ChartLine::Gpu(u32::MAX, 2), make_window(1000, 1, 1)),
        [None]
    );
}

/// Returns a server's history with hourly means up to the hour of `end_ms`. The power increases by
/// one watt per hour.
fn make_server_history(hours: u64, end_ms: u64) -> HistorySpan {
    const HOUR_MS: u64 = 3_600_000;
    let begin_ms = end_ms / HOUR_MS * HOUR_MS - (hours - 1) * HOUR_MS;
    let values = (0..hours)
        .map(|hour| (hour != 3).then_some(hour as f64))
        .collect();
    let metrics = [(
        "power.draw_watts".to_owned(),
        Series {
            values,
            ..Series::default()
        },
    )];
    let gpu = DeviceSpan {
        uuid: "a".to_owned(),
        metrics: metrics.into(),
        ..DeviceSpan::default()
    };
    HistorySpan {
        from_ms: begin_ms,
        to_ms: end_ms,
        resolution_ms: HOUR_MS,
        oldest_ms: begin_ms,
        times_ms: (0..hours).map(|hour| begin_ms + hour * HOUR_MS).collect(),
        gpus: vec![gpu],
        ..HistorySpan::default()
    }
}

#[test]
fn server_history_and_samples_join_without_gap() {
    const NOW_MS: u64 = 1_700_000_000_000;
    let mut history = History::default();
    for second in 0..300 {
        history.push(&make_sample(NOW_MS - (299 - second) * 1000, Some(100.0)));
    }
    history.set_server_rows(&make_server_history(24, NOW_MS), |uuid| {
        (uuid == "a").then_some(0)
    });
    let day = history.read_line_values(power_line(), make_window(NOW_MS, 86_400, 48));
    assert!(day[47].is_some_and(|watts| watts > 99.0), "{day:?}");
    assert!(day[20..].iter().all(Option::is_some), "{day:?}");
    assert_eq!(
        day[3..12].iter().filter(|value| value.is_none()).count(),
        3,
        "a gap is a gap: {day:?}"
    );
    // A second response replaces the rows of the first response.
    history.set_server_rows(&make_server_history(2, NOW_MS), |uuid| {
        (uuid == "a").then_some(0)
    });
    let day = history.read_line_values(power_line(), make_window(NOW_MS, 86_400, 48));
    assert!(day[..40].iter().all(Option::is_none), "{day:?}");
    // If the clock is set back, the existing history is in the future, so it is removed.
    history.push(&make_sample(NOW_MS - 86_400_000, Some(7.0)));
    let before = history.read_line_values(power_line(), make_window(NOW_MS - 86_400_000, 60, 4));
    assert_eq!(before[3], Some(7.0));
    assert!(
        history
            .read_line_values(power_line(), make_window(NOW_MS, 3600, 4))
            .iter()
            .all(Option::is_none)
    );
}
