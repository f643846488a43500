use super::super::test_timeline::{START_MS, TestTimeline};
use super::*;
use crate::{
    derive::examples,
    model::{Absence, GpuDetails, Reading, ThrottleReason},
};

fn runs_at(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        examples::use_gpu(sample, 98.0, 90.0);
        sample.activity = Reading::Now(examples::activity(90.0, 55.0));
        sample.clocks.sm_mhz = Reading::Now(mhz);
        sample.power.draw_watts = Reading::Now(watts);
        sample.power.limit_watts = Reading::Now(700.0);
    }
}

fn without_gpm(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        runs_at(mhz, watts)(sample);
        sample.activity = Reading::Absent(Absence::NotSupported);
        sample.utilization.memory_percent = Reading::Now(40.0);
    }
}

fn others(change: impl Fn(&mut GpuSample)) -> Vec<GpuSample> {
    let other = |index| {
        let mut sample = GpuSample {
            index,
            ..examples::sample(START_MS)
        };
        change(&mut sample);
        sample
    };
    vec![other(1), other(2)]
}

#[test]
fn a_clock_below_its_own_is_told_after_ten_minutes_and_until_it_is_back() {
    let mut timeline = TestTimeline::new();
    timeline
        .show(400, runs_at(1980, 500.0))
        .show(660, runs_at(1410, 330.0));
    let [(began, word)] = &timeline.take_events()[..] else {
        panic!("{:?}", timeline.last.conditions)
    };
    assert!(
        word == "+slower_than_itself" && (1_000..=1_030).contains(began),
        "{began}"
    );
    let condition = timeline.only();
    let text = "Slower than itself: 1410 MHz and 330 W at a load at which 1976 MHz and 499 W are usual for it. The driver \
                gives no reason: check power cables and cooling, and reset the GPU when it is idle.";
    assert_eq!(condition.text, text);
    timeline.show(30, |sample| examples::use_gpu(sample, 0.0, 0.0));
    assert_eq!(
        timeline.take_events(),
        [],
        "it is still so while nothing runs"
    );
    timeline.show(200, runs_at(1980, 500.0));
    assert_eq!(timeline.take_events().len(), 1);
}

#[test]
fn beside_faster_gpus_it_is_told_sooner_and_beside_ones_as_slow_not_at_all() {
    let slow = |others| {
        let mut timeline = TestTimeline::new();
        timeline.show(400, without_gpm(1980, 500.0));
        timeline.others = others;
        timeline.show(800, without_gpm(1410, 330.0));
        (timeline.take_events(), timeline.last)
    };
    let (events, last) = slow(others(without_gpm(1980, 500.0)));
    assert!(
        matches!(&events[..], [(at, _)] if (580..=600).contains(at)),
        "{events:?}"
    );
    assert!(
        last.conditions[0]
            .text
            .contains(" GPUs 1 and 2 are faster at the same load."),
        "{last:?}"
    );
    assert_eq!(slow(others(without_gpm(1410, 330.0))).0, []);
    let (events, _) = slow(others(|sample| {
        without_gpm(1980, 500.0)(sample);
        sample.power.limit_watts = Reading::Now(400.0);
    }));
    assert!(
        matches!(&events[..], [(at, _)] if *at > 1_000),
        "others are of another kind: {events:?}"
    );
}

#[test]
fn power_counts_beside_others_alone() {
    let low = |others| {
        let mut timeline = TestTimeline::new();
        timeline.show(400, runs_at(1980, 500.0));
        timeline.others = others;
        timeline.show(1_200, runs_at(1980, 300.0));
        let told: String = timeline
            .last
            .conditions
            .iter()
            .map(|condition| condition.text.as_str())
            .collect();
        assert!(
            told.is_empty() || told.contains(" GPUs 1 and 2 draw more at the same load."),
            "{told}"
        );
        timeline.take_events().len()
    };
    assert_eq!(low(others(runs_at(1980, 500.0))), 1);
    assert_eq!(low(others(runs_at(1980, 310.0))), 0);
    assert_eq!(low(Vec::new()), 0);
}

#[test]
fn a_slow_clock_that_moves_the_work_into_a_load_never_seen_is_told() {
    let busier = |mhz| {
        move |sample: &mut GpuSample| {
            runs_at(mhz, 330.0)(sample);
            sample.activity = Reading::Now(examples::activity(95.0, 75.0));
        }
    };
    let mut timeline = TestTimeline::new();
    timeline.show(400, |sample| {
        runs_at(1980, 500.0)(sample);
        sample.activity = Reading::Now(examples::activity(78.0, 55.0));
    });
    timeline.show(1_200, busier(1410));
    assert!(
        matches!(&timeline.take_events()[..], [(at, _)] if (1_000..=1_030).contains(at)),
        "{:?}",
        timeline.last
    );
    assert!(
        timeline
            .only()
            .text
            .contains("1410 MHz and 330 W at a load at which 197"),
        "{:?}",
        timeline.last
    );
    timeline.show(200, busier(1980));
    assert_eq!(timeline.take_events().len(), 1);
}

#[test]
fn a_reason_of_a_moment_neither_delays_nor_ends_it_and_one_that_persists_does() {
    let slow_with = |every_s: u64| {
        move |sample: &mut GpuSample| {
            runs_at(1410, 330.0)(sample);
            let reasons = if (sample.at_ms / 1_000).is_multiple_of(every_s) {
                vec![ThrottleReason::SwPowerCap]
            } else {
                vec![]
            };
            sample.throttle_reasons = Reading::Now(reasons);
        }
    };
    let told = |timeline: &mut TestTimeline| -> Vec<_> {
        timeline
            .take_events()
            .into_iter()
            .filter(|(_, word)| word.ends_with("slower_than_itself"))
            .collect()
    };
    let mut timeline = TestTimeline::new();
    timeline
        .show(400, runs_at(1980, 500.0))
        .show(720, slow_with(50));
    let began = told(&mut timeline);
    assert!(
        matches!(&began[..], [(at, _)] if (1_000..=1_060).contains(at)),
        "{began:?}"
    );
    timeline.show(600, slow_with(50));
    assert_eq!(told(&mut timeline), [], "it lasts");
    timeline.show(60, slow_with(1));
    assert_eq!(told(&mut timeline).len(), 1, "the driver tells why");
    let mut timeline = TestTimeline::new();
    timeline
        .show(400, runs_at(1980, 500.0))
        .show(3_600, slow_with(3));
    assert_eq!(
        told(&mut timeline),
        [],
        "a reason of every third second is one that persists"
    );
}

#[test]
fn what_is_set_and_what_has_a_reason_is_not_told() {
    for reason in [
        ThrottleReason::SwPowerCap,
        ThrottleReason::ApplicationsClocksSetting,
    ] {
        let mut timeline = TestTimeline::new();
        timeline
            .show(400, runs_at(1980, 500.0))
            .show(1_200, |sample| {
                runs_at(1410, 330.0)(sample);
                sample.throttle_reasons = Reading::Now(vec![reason]);
            });
        assert!(
            !timeline
                .take_events()
                .iter()
                .any(|(_, word)| word == "+slower_than_itself"),
            "{reason:?}"
        );
    }
    let mut timeline = TestTimeline::new();
    timeline
        .show(400, runs_at(1980, 500.0))
        .show(1_200, |sample| {
            runs_at(1410, 330.0)(sample);
            sample.power.limit_watts = Reading::Now(400.0);
        });
    assert_eq!(timeline.take_events(), [], "another limit");
    let mut timeline = TestTimeline::new();
    let with_clock = |mhz| {
        let mut details = examples::details(START_MS);
        details.application_clocks.graphics_mhz = Reading::Now(mhz);
        Some(details)
    };
    timeline.details = with_clock(1980);
    timeline.show(40, runs_at(1980, 500.0));
    timeline.details = with_clock(1980).map(|details| GpuDetails {
        at_ms: timeline.now_ms,
        ..details
    });
    timeline.show(360, runs_at(1980, 500.0));
    timeline.details = with_clock(1410).map(|details| GpuDetails {
        at_ms: timeline.now_ms,
        ..details
    });
    timeline.show(1_200, runs_at(1410, 330.0));
    assert_eq!(timeline.take_events(), [], "another application clock");
}

#[test]
fn work_that_changes_steps_of_the_clock_and_short_dips_are_usual() {
    let mut timeline = TestTimeline::new();
    timeline
        .show(400, runs_at(1980, 500.0))
        .show(600, runs_at(1860, 480.0))
        .show(600, |sample| {
            let dips = sample.at_ms / 1000 % 60 < 20;
            runs_at(if dips { 1410 } else { 1980 }, 450.0)(sample);
        });
    // The usual values at another load are not known yet.
    timeline.show(1_200, |sample| {
        runs_at(1500, 300.0)(sample);
        sample.activity = Reading::Now(examples::activity(40.0, 0.0));
    });
    timeline.show(1_200, |sample| {
        runs_at(345, 80.0)(sample);
        examples::use_gpu(sample, 20.0, 10.0);
    });
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn what_was_learned_before_a_restart_measures_what_comes_after_it() {
    let mut before = TestTimeline::new();
    before.show(400, runs_at(1980, 500.0));
    let mut timeline = TestTimeline::new();
    timeline.tracker.restore(&before.tracker.baseline());
    timeline.show(660, runs_at(1410, 330.0));
    assert!(
        matches!(&timeline.take_events()[..], [(at, _)] if (600..=630).contains(at)),
        "{:?}",
        timeline.last
    );
    let learned = timeline.tracker.baseline();
    timeline.tracker.restore(&Baseline::default());
    assert_eq!(
        timeline.tracker.baseline(),
        learned,
        "what was learned since counts"
    );
}

#[test]
fn what_was_learned_can_be_read() {
    let mut timeline = TestTimeline::new();
    timeline.show(400, runs_at(1980, 500.0));
    let usual = timeline
        .tracker
        .baseline()
        .usual(Load::new(true, 90.0, 55.0))
        .unwrap();
    assert!(
        (usual.sm_mhz - 1980.0).abs() < 1.0 && (usual.watts - 500.0).abs() < 1.0,
        "{usual:?}"
    );
}
