use super::{
    test_timeline::{self, START_MS, TestTimeline, event},
    *,
};
use crate::{
    derive::examples,
    model::{Absence, ConditionKind, Reading, RecoveryAction, Severity, ThrottleReason},
};

fn power_capped(sample: &mut GpuSample) {
    sample.throttle_reasons = Reading::Now(vec![ThrottleReason::SwPowerCap]);
}

#[test]
fn a_healthy_busy_gpu_has_no_condition() {
    let mut timeline = TestTimeline::new();
    timeline.show(3_600, |_| {}).show_details(60, |_| {});
    assert_eq!(timeline.take_events(), []);
    assert_eq!(timeline.last.conditions, []);
}

#[test]
fn nothing_is_concluded_from_absent_readings() {
    let mut timeline = TestTimeline::new();
    timeline.show(3_600, |sample| {
        *sample = GpuSample::absent(0, None, sample.at_ms, Health::Ok, &Absence::NotSupported);
    });
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn nothing_is_concluded_from_what_is_older_than_a_minute() {
    let mut timeline = TestTimeline::new();
    let old = |sample: &mut GpuSample, age_ms| {
        let at_ms = sample.at_ms - age_ms;
        sample.throttle_reasons = Reading::Earlier {
            value: vec![ThrottleReason::SwPowerCap],
            at_ms,
        };
    };
    timeline.show(100, |sample| old(sample, 61_000));
    assert_eq!(timeline.take_events(), []);
    timeline.show(10, |sample| old(sample, 50_000));
    assert_eq!(timeline.take_events(), [event(104, "+throttled")]);
    let mut timeline = TestTimeline::new();
    let mut details = examples::details(START_MS);
    details.ecc.volatile.uncorrected_total = Reading::Now(1);
    timeline.details = Some(details);
    timeline.show(200, |_| {});
    assert_eq!(
        timeline.take_events(),
        [event(1, "+ecc_uncorrected"), event(121, "-ecc_uncorrected")],
        "details are read no more"
    );
}

#[test]
fn the_worst_comes_first_and_then_the_oldest() {
    let full = |sample: &mut GpuSample| sample.memory.free_bytes = Reading::Now(0);
    let mut timeline = TestTimeline::new();
    timeline.show(10, full);
    timeline.xid(45, None);
    timeline.xid(13, None);
    timeline.show(1, full);
    timeline.xid(79, None);
    timeline.show(1, full);
    let names: Vec<_> = timeline
        .last
        .conditions
        .iter()
        .map(test_timeline::name)
        .collect();
    assert_eq!(names, ["xid 79", "memory_nearly_full", "xid 13", "xid 45"]);
}

#[test]
fn while_the_gpu_hangs_everything_stays_as_it_is() {
    let mut timeline = TestTimeline::new();
    timeline.show(10, power_capped);
    timeline.xid(13, None);
    timeline.show(1, power_capped);
    let before = timeline.last.conditions.clone();
    timeline.take_events();
    timeline.show(3_600, test_timeline::hung);
    assert_eq!(timeline.take_events(), []);
    assert_eq!(timeline.last.conditions, before);
    timeline.show(1, power_capped);
    assert_eq!(timeline.last.conditions.len(), 2);
    assert_eq!(
        timeline.last.conditions[0], before[0],
        "time in which it hung counts for nothing"
    );
}

#[test]
fn a_sample_that_is_shown_again_tells_nothing_new() {
    let mut timeline = TestTimeline::new();
    let mut sample = examples::sample(START_MS);
    power_capped(&mut sample);
    for _ in 0..20 {
        timeline.now_ms += 1_000;
        timeline.tick(sample.clone());
    }
    assert_eq!(timeline.take_events(), []);
}

#[test]
fn when_the_gpu_is_lost_its_readings_conditions_end_and_its_xids_stay_until_it_is_back() {
    let mut timeline = TestTimeline::new();
    timeline.show(10, power_capped);
    timeline.xid(79, None);
    timeline.xid(13, None);
    timeline.take_events();
    timeline.show(7_200, test_timeline::lost);
    assert_eq!(timeline.take_events(), [event(11, "-throttled")]);
    assert_eq!(timeline.last.conditions.len(), 2);
    timeline.show(1, |_| {});
    assert_eq!(
        timeline.take_events(),
        [event(7_211, "-xid 79"), event(7_211, "-xid 13")]
    );
    assert_eq!(timeline.last.conditions, []);
}

#[test]
fn a_gpu_that_sleeps_or_failed_has_no_conditions_of_readings() {
    let (meaning, advice) = ("refused".to_owned(), "ask".to_owned());
    let failed = Health::Failed {
        since_ms: 1,
        reason: Absence::Unknown,
        meaning,
        advice,
    };
    for health in [Health::Asleep { since_ms: 1 }, failed] {
        let mut timeline = TestTimeline::new();
        timeline.show(10, power_capped).show(1, |sample| {
            test_timeline::unreadable(sample, health.clone());
        });
        assert_eq!(
            timeline.take_events(),
            [event(4, "+throttled"), event(11, "-throttled")]
        );
    }
}

#[test]
fn an_xid_of_a_program_is_over_after_a_minute_and_another_after_ten() {
    let mut timeline = TestTimeline::new();
    timeline.show(1, |_| {});
    timeline.xid(31, Some(7));
    timeline.xid(94, None);
    timeline.show(1_000, |_| {});
    let events = timeline.take_events();
    assert_eq!(events[..2], [event(1, "+xid 31"), event(1, "+xid 94")]);
    assert_eq!(events[2..], [event(61, "-xid 31"), event(601, "-xid 94")]);
}

#[test]
fn an_xid_that_comes_again_is_renewed_and_counted() {
    let mut timeline = TestTimeline::new();
    for pid in 0..5 {
        timeline.xid(31, Some(pid));
        timeline.show(50, |_| {});
    }
    assert_eq!(timeline.take_events(), [event(0, "+xid 31")]);
    let condition = timeline.only();
    assert_eq!(
        condition.kind,
        ConditionKind::Xid {
            pid: Some(4),
            code: 31,
            count: 5,
            last_ms: START_MS + 200_000
        }
    );
    assert_eq!(
        (condition.since_ms, condition.severity),
        (START_MS, Severity::Warning)
    );
    assert!(
        condition
            .text
            .starts_with("Xid 31 (process 4): A program used an address"),
        "{}",
        condition.text
    );
    timeline.show(10, |_| {});
    assert_eq!(timeline.take_events(), [event(260, "-xid 31")]);
}

#[test]
fn an_xid_lasts_while_the_driver_asks_for_a_recovery() {
    let mut timeline = TestTimeline::new();
    timeline.xid(119, None);
    timeline.xid(45, None);
    timeline.show_details(3_000, |details| {
        details.recovery_action = Reading::Now(RecoveryAction::GpuReset);
    });
    assert_eq!(
        timeline.last.conditions.len(),
        2,
        "{:?}",
        timeline.last.conditions
    );
    timeline.take_events();
    timeline.show_details(1, |details| {
        details.recovery_action = Reading::Now(RecoveryAction::None);
    });
    assert_eq!(
        timeline.take_events(),
        [event(3_001, "-recovery_needed"), event(3_001, "-xid 119")]
    );
}

#[test]
fn a_gpu_that_reports_every_code_keeps_a_bounded_number() {
    let mut timeline = TestTimeline::new();
    for code in 0..1_000 {
        timeline.xid(code, None);
    }
    timeline.show(1, |_| {});
    assert_eq!(timeline.last.conditions.len(), 32);
    let ended = timeline
        .take_events()
        .iter()
        .filter(|(_, word)| word.starts_with('-'))
        .count();
    assert_eq!(ended, 968);
}

#[test]
fn a_clock_that_jumps_neither_begins_nor_ends_anything() {
    let mut timeline = TestTimeline::new();
    timeline.show(2, power_capped);
    timeline.now_ms -= 1_000_000;
    timeline.show(1, power_capped);
    assert_eq!(timeline.last.conditions, []);
    timeline.show(1, power_capped).show(1, power_capped);
    assert_eq!(timeline.only().since_ms, START_MS + 1_000);
}

#[test]
fn every_condition_has_its_time_to_be_found() {
    let settings = ConditionSettings {
        held_idle_after_ms: 7_000_000,
    };
    let rules = all_rules(&settings);
    for tag in ConditionKind::TAGS {
        let is_known = rules.iter().any(|state| state.tag == *tag);
        assert!(is_known || *tag == "xid", "{tag}");
    }
    assert_eq!(found_after_ms(Some("held_idle"), &settings), 7_015_000);
    assert_eq!(found_after_ms(None, &settings), 7_015_000);
    assert_eq!(found_after_ms(Some("row_remap"), &settings), 15_000);
}
