use super::super::test_timeline::{START_MS, TestTimeline};
use super::*;
use crate::{
    derive::examples,
    model::{Absence, GpuDetails, Reading, ThrottleReason},
};

fn set_clock_and_power(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        examples::set_gpu_use(sample, 98.0, 90.0);
        sample.activity = Reading::Now(examples::make_activity(90.0, 55.0));
        sample.clocks.sm_mhz = Reading::Now(mhz);
        sample.power.draw_watts = Reading::Now(watts);
        sample.power.limit_watts = Reading::Now(700.0);
    }
}

fn set_clock_and_power_without_gpm(mhz: u32, watts: f64) -> impl Fn(&mut GpuSample) {
    move |sample| {
        set_clock_and_power(mhz, watts)(sample);
        sample.activity = Reading::Absent(Absence::NotSupported);
        sample.utilization.memory_percent = Reading::Now(40.0);
    }
}

fn make_other_gpus(change: impl Fn(&mut GpuSample)) -> Vec<GpuSample> {
    let other = |index| {
        let mut sample = GpuSample {
            index,
            ..examples::make_sample(START_MS)
        };
        change(&mut sample);
        sample
    };
    vec![other(1), other(2)]
}

#[test]
fn slow_clock_is_reported_after_ten_minutes() {
    let mut timeline = TestTimeline::new();
    timeline
        .advance_with_sample(400, set_clock_and_power(1980, 500.0))
        .advance_with_sample(660, set_clock_and_power(1410, 330.0));
    let [(began, word)] = &timeline.take_events()[..] else {
        panic!("{:?}", timeline.last.conditions)
    };
    assert!(
        word == "+slower_than_itself" && (1_000..=1_030).contains(began),
        "{began}"
    );
    let condition = timeline.only_condition();
    let text = "Slower than usual: 1410 MHz and 330 W at a load that usually gives 1976 MHz and \
                499 W. The driver reports no reason: check power cables and cooling, and reset \
                the GPU when it is idle.";
    assert_eq!(condition.text, text);
    timeline.advance_with_sample(30, |sample| examples::set_gpu_use(sample, 0.0, 0.0));
    assert_eq!(
        timeline.take_events(),
        [],
        "it is still so while nothing runs"
    );
    timeline.advance_with_sample(200, set_clock_and_power(1980, 500.0));
    assert_eq!(timeline.take_events().len(), 1);
}

#[test]
fn sibling_gpus_shorten_delay_or_prevent_slow_condition() {
    let slow = |others| {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(400, set_clock_and_power_without_gpm(1980, 500.0));
        timeline.others = others;
        timeline.advance_with_sample(800, set_clock_and_power_without_gpm(1410, 330.0));
        (timeline.take_events(), timeline.last)
    };
    let (events, last) = slow(make_other_gpus(set_clock_and_power_without_gpm(
        1980, 500.0,
    )));
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
    assert_eq!(
        slow(make_other_gpus(set_clock_and_power_without_gpm(
            1410, 330.0
        )))
        .0,
        []
    );
    let (events, _) = slow(make_other_gpus(|sample| {
        set_clock_and_power_without_gpm(1980, 500.0)(sample);
        sample.power.limit_watts = Reading::Now(400.0);
    }));
    assert!(
        matches!(&events[..], [(at, _)] if *at > 1_000),
        "others are of another kind: {events:?}"
    );
}

#[test]
fn low_power_is_reported_only_compared_with_siblings() {
    let low = |others| {
        let mut timeline = TestTimeline::new();
        timeline.advance_with_sample(400, set_clock_and_power(1980, 500.0));
        timeline.others = others;
        timeline.advance_with_sample(1_200, set_clock_and_power(1980, 300.0));
        let reported: String = timeline
            .last
            .conditions
            .iter()
            .map(|condition| condition.text.as_str())
            .collect();
        assert!(
            reported.is_empty()
                || reported.contains(" GPUs 1 and 2 draw more power at the same load."),
            "{reported}"
        );
        timeline.take_events().len()
    };
    assert_eq!(low(make_other_gpus(set_clock_and_power(1980, 500.0))), 1);
    assert_eq!(low(make_other_gpus(set_clock_and_power(1980, 310.0))), 0);
    assert_eq!(low(Vec::new()), 0);
}

#[test]
fn slow_clock_at_new_load_is_reported() {
    let busier = |mhz| {
        move |sample: &mut GpuSample| {
            set_clock_and_power(mhz, 330.0)(sample);
            sample.activity = Reading::Now(examples::make_activity(95.0, 75.0));
        }
    };
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(400, |sample| {
        set_clock_and_power(1980, 500.0)(sample);
        sample.activity = Reading::Now(examples::make_activity(78.0, 55.0));
    });
    timeline.advance_with_sample(1_200, busier(1410));
    assert!(
        matches!(&timeline.take_events()[..], [(at, _)] if (1_000..=1_030).contains(at)),
        "{:?}",
        timeline.last
    );
    assert!(
        timeline
            .only_condition()
            .text
            .contains("1410 MHz and 330 W at a load that usually gives 197"),
        "{:?}",
        timeline.last
    );
    timeline.advance_with_sample(200, busier(1980));
    assert_eq!(timeline.take_events().len(), 1);
}

#[test]
fn persistent_throttle_reason_ends_condition() {
    let slow_with = |every_s: u64| {
        move |sample: &mut GpuSample| {
            set_clock_and_power(1410, 330.0)(sample);
            let reasons = if (sample.at_ms / 1_000).is_multiple_of(every_s) {
                vec![ThrottleReason::SwPowerCap]
            } else {
                vec![]
            };
            sample.throttle_reasons = Reading::Now(reasons);
        }
    };
    let reported = |timeline: &mut TestTimeline| -> Vec<_> {
        timeline
            .take_events()
            .into_iter()
            .filter(|(_, word)| word.ends_with("slower_than_itself"))
            .collect()
    };
    let mut timeline = TestTimeline::new();
    timeline
        .advance_with_sample(400, set_clock_and_power(1980, 500.0))
        .advance_with_sample(720, slow_with(50));
    let began = reported(&mut timeline);
    assert!(
        matches!(&began[..], [(at, _)] if (1_000..=1_060).contains(at)),
        "{began:?}"
    );
    timeline.advance_with_sample(600, slow_with(50));
    assert_eq!(reported(&mut timeline), [], "it lasts");
    timeline.advance_with_sample(60, slow_with(1));
    assert_eq!(reported(&mut timeline).len(), 1, "the driver tells why");
    let mut timeline = TestTimeline::new();
    timeline
        .advance_with_sample(400, set_clock_and_power(1980, 500.0))
        .advance_with_sample(3_600, slow_with(3));
    assert_eq!(
        reported(&mut timeline),
        [],
        "a reason of every third second is one that persists"
    );
}

#[test]
fn explained_slow_clock_is_not_reported() {
    for reason in [
        ThrottleReason::SwPowerCap,
        ThrottleReason::ApplicationsClocksSetting,
    ] {
        let mut timeline = TestTimeline::new();
        timeline
            .advance_with_sample(400, set_clock_and_power(1980, 500.0))
            .advance_with_sample(1_200, |sample| {
                set_clock_and_power(1410, 330.0)(sample);
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
        .advance_with_sample(400, set_clock_and_power(1980, 500.0))
        .advance_with_sample(1_200, |sample| {
            set_clock_and_power(1410, 330.0)(sample);
            sample.power.limit_watts = Reading::Now(400.0);
        });
    assert_eq!(timeline.take_events(), [], "another limit");
    let mut timeline = TestTimeline::new();
    let with_clock = |mhz| {
        let mut details = examples::make_details(START_MS);
        details.application_clocks.graphics_mhz = Reading::Now(mhz);
        Some(details)
    };
    timeline.details = with_clock(1980);
    timeline.advance_with_sample(40, set_clock_and_power(1980, 500.0));
    timeline.details = with_clock(1980).map(|details| GpuDetails {
        at_ms: timeline.now_ms,
        ..details
    });
    timeline.advance_with_sample(360, set_clock_and_power(1980, 500.0));
    timeline.details = with_clock(1410).map(|details| GpuDetails {
        at_ms: timeline.now_ms,
        ..details
    });
    timeline.advance_with_sample(1_200, set_clock_and_power(1410, 330.0));
    assert_eq!(timeline.take_events(), [], "another application clock");
}

#[test]
fn changing_load_and_short_dips_are_ignored() {
    let mut timeline = TestTimeline::new();
    timeline
        .advance_with_sample(400, set_clock_and_power(1980, 500.0))
        .advance_with_sample(600, set_clock_and_power(1860, 480.0))
        .advance_with_sample(600, |sample| {
            let dips = sample.at_ms / 1000 % 60 < 20;
            set_clock_and_power(if dips { 1410 } else { 1980 }, 450.0)(sample);
        });
    // The usual values at this other load are not known yet.
    timeline.advance_with_sample(1_200, |sample| {
        set_clock_and_power(1500, 300.0)(sample);
        sample.activity = Reading::Now(examples::make_activity(40.0, 0.0));
    });
    timeline.advance_with_sample(1_200, |sample| {
        set_clock_and_power(345, 80.0)(sample);
        examples::set_gpu_use(sample, 20.0, 10.0);
    });
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn restored_baseline_is_used_after_restart() {
    let mut before = TestTimeline::new();
    before.advance_with_sample(400, set_clock_and_power(1980, 500.0));
    let mut timeline = TestTimeline::new();
    timeline.tracker.restore(&before.tracker.baseline());
    timeline.advance_with_sample(660, set_clock_and_power(1410, 330.0));
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
fn tracker_returns_learned_baseline() {
    let mut timeline = TestTimeline::new();
    timeline.advance_with_sample(400, set_clock_and_power(1980, 500.0));
    let usual = timeline
        .tracker
        .baseline()
        .usual_band(Load::new(true, 90.0, 55.0))
        .unwrap();
    assert!(
        (usual.sm_mhz - 1980.0).abs() < 1.0 && (usual.watts - 500.0).abs() < 1.0,
        "{usual:?}"
    );
}
