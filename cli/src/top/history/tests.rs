//! Gaps, thinning, and lines that keep their shape.

use gpumon_probe::model::Reading;

use super::*;
use crate::top::testing::sample;

const POWER: Line = Line::Gpu(0, 2);

fn at(at_ms: u64, watts: Option<f64>) -> Sample {
    let mut sample = sample(1);
    sample.at_ms = at_ms;
    sample.interval_ms = 1000;
    sample.gpus[0].at_ms = at_ms;
    sample.gpus[0].power.draw_watts =
        watts.map_or(Reading::Absent(gpumon_probe::model::Absence::GpuLost), Reading::Now);
    sample
}

fn window(end_ms: u64, span_s: u64, columns: usize) -> Window {
    Window { end_ms, span_ms: span_s * 1000, columns }
}

#[test]
fn power_is_where_the_tests_think_it_is() {
    assert_eq!(METRICS[2].id, "power");
}

#[test]
fn a_gap_in_the_data_is_a_gap_in_the_line() {
    let mut history = History::default();
    for second in 1..=20 {
        let absent = (5..=8).contains(&second);
        if second != 15 && second != 16 && second != 17 {
            history.push(&at(second * 1000, (!absent).then_some(second as f64)));
        }
    }
    let values = history.values(POWER, window(20_000, 20, 20));
    for second in 1..=20_u64 {
        let value = values[second as usize - 1];
        let is_gap = (5..=8).contains(&second) || (15..=17).contains(&second);
        assert_eq!(value.is_none(), is_gap, "second {second}: {values:?}");
    }
}

#[test]
fn columns_between_two_samples_lie_on_the_line_between_them() {
    let mut history = History::default();
    history.push(&at(1000, Some(0.0)));
    history.push(&at(2000, Some(10.0)));
    let values = history.values(POWER, window(2000, 2, 20));
    assert_eq!(values[9], Some(0.0));
    assert_eq!(values[14], Some(5.0));
    assert_eq!(values[19], Some(10.0));
}

#[test]
fn a_line_moves_by_whole_columns_and_keeps_its_shape() {
    let mut history = History::default();
    for second in 0..200_u64 {
        history.push(&at(second * 1000 + 137, Some((second * 7919 % 101) as f64)));
    }
    let before = history.values(POWER, window(190_000, 60, 25));
    let after = history.values(POWER, window(190_000 + 2400, 60, 25));
    assert_eq!(before[1..], after[..24]);
}

#[test]
fn an_hour_stays_and_no_more_than_a_bounded_number_of_rows() {
    let mut history = History::default();
    for tick in 0..80 * 600_u64 {
        history.push(&at(tick * 100, Some((tick / 600) as f64)));
    }
    let end = 80 * 60_000;
    let rows = history.fine.points(0, 0, u64::MAX).count() + history.coarse.points(0, 0, u64::MAX).count();
    assert!(rows < 1700, "{rows}");
    let hour = history.values(POWER, window(end, 3600, 60));
    assert_eq!(hour.iter().filter(|value| value.is_none()).count(), 0, "{hour:?}");
    assert!((hour[0].unwrap() - 20.0).abs() <= 1.0 && (hour[59].unwrap() - 79.0).abs() < 0.1, "{hour:?}");
}

#[test]
fn a_clock_that_is_set_back_does_not_stop_it() {
    let mut history = History::default();
    for at_ms in [1_000_000, 1_001_000, 501_000, 502_000] {
        history.push(&at(at_ms, Some(at_ms as f64)));
    }
    assert_eq!(history.values(POWER, window(502_000, 2, 2)), [Some(501_000.0), Some(502_000.0)]);
}

#[test]
fn what_a_server_remembers_stands_before_the_first_sample() {
    let mut history = History::default();
    let metrics = [("power.draw_watts".to_owned(), vec![Some(1.0), None, Some(3.0)])].into();
    let past = frame::History {
        times_ms: vec![1000, 2000, 3000],
        gpus: vec![frame::GpuHistory { uuid: "a".into(), metrics }],
    };
    history.extend(&past, 1000, |uuid| (uuid == "a").then_some(0));
    history.push(&at(4000, Some(4.0)));
    assert_eq!(history.values(POWER, window(4000, 4, 4)), [Some(1.0), None, Some(3.0), Some(4.0)]);
    assert_eq!(history.values(Line::Host(0), window(3000, 3, 3)), [None, None, None]);
    // After a restart, a server remembers less than what is on the screen.
    history.extend(&past, 1000, |_| Some(0));
    assert_eq!(history.values(POWER, window(4000, 4, 4)), [Some(1.0), None, Some(3.0), Some(4.0)]);
}
